/** An envelope reads back as what was put into it, whatever its size and its letters. */
import type { Envelope } from '@sluice/domain/operation';
import { identify, track } from '@sluice/domain/testing';
import { expect, test } from 'vitest';
import { envelopeText, EnvelopeWriter } from '../src/envelope-writer.ts';

function written(operations: Envelope['operations'], traceparent?: string): unknown {
  const writer = new EnvelopeWriter('envelope-"1"');
  for (const operation of operations) writer.add(JSON.stringify(operation));
  expect(writer.operationCount).toBe(operations.length);
  return JSON.parse(envelopeText(writer.finish(traceparent)));
}

test('operations are kept in order, and the trace beside them', () => {
  const operations = [track('id:a', 'Paid'), identify('email:x@y', { plan: 'p' }), track(null, '')];
  expect(written(operations)).toEqual({ id: 'envelope-"1"', operations });
  expect(written(operations, '00-a-b-01')).toEqual({
    id: 'envelope-"1"',
    operations,
    traceparent: '00-a-b-01',
  });
});

test('every size is kept whole, in letters of one to four bytes, up to the last byte of a buffer', () => {
  for (const letter of ['a', 'ü', '€', '😀']) {
    for (const length of [1, 10_000, 10_850, 10_900, 32_000, 32_700, 500_000]) {
      const operations = [track('id:a', letter.repeat(length)), track('id:b', letter.repeat(7))];
      expect(written(operations)).toEqual({ id: 'envelope-"1"', operations });
    }
  }
});

test('a thousand operations are kept, whatever they are', () => {
  const operations = Array.from({ length: 1_000 }, (_, n) =>
    track(`id:${n}`, 'ü'.repeat(n % 200), { data: { n, text: '\u2028"\\' } }),
  );
  expect(written(operations)).toEqual({ id: 'envelope-"1"', operations });
});

test('an envelope that nobody has written yet reads the same', () => {
  const envelope = { id: 'e', operations: [track('id:a', 'Paid')] };
  expect(JSON.parse(envelopeText(envelope))).toEqual(envelope);
});
