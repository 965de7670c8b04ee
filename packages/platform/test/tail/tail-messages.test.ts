import { expect, test } from 'vitest';
import { readTailMessage } from '../../src/tail/tail-messages.ts';

const message = (line: object): string => JSON.stringify({ dropped: 0, lines: [line] });

test('a message whose lines have all members that filters look at is read', () => {
  const line = { people: [{ id: '1' }], details: { source: 'pipelines.track' } };
  expect(readTailMessage(message(line))).toEqual({ dropped: 0, lines: [line] });
});

// The first line without `details` ended the process.
test.each([
  ['no details', { people: [] }],
  ['details that are no object', { people: [], details: 'x' }],
  ['no people', { details: {} }],
  ['a person who is no object', { people: ['ada'], details: {} }],
])('a line with %s makes the message no message', (_name, line) => {
  expect(readTailMessage(message(line))).toBeUndefined();
});
