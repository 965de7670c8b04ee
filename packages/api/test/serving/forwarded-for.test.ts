import { expect, test } from 'vitest';
import { withoutPorts } from '../../src/serving/forwarded-for.ts';

test.each([
  ['203.0.113.9:51324', '203.0.113.9'],
  ['203.0.113.9', '203.0.113.9'],
  ['[2001:db8::1]:51324', '2001:db8::1'],
  ['[2001:db8::1]', '2001:db8::1'],
  ['2001:db8::1', '2001:db8::1'],
  ['::ffff:203.0.113.9', '::ffff:203.0.113.9'],
  ['198.51.100.1:80, 203.0.113.9:51324', '198.51.100.1,203.0.113.9'],
  ['203.0.113.9:51324x', '203.0.113.9:51324x'],
  ['unknown', 'unknown'],
  ['', ''],
])('%s is read as %s', (text, expected) => {
  expect(withoutPorts(text)).toBe(expected);
});
