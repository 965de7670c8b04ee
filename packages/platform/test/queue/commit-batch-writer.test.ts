/**
 * A commit batch reads back as it was written.
 *
 * That holds for any size and any letters.
 */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { identify, track } from '@sluice/domain/testing/sample-operations';
import { expect, test } from 'vitest';
import {
  CommitBatchBuffers,
  commitBatchText,
  CommitBatchWriter,
} from '../../src/queue/commit-batch-writer.ts';

const buffers = new CommitBatchBuffers();

function written(operations: CommitBatch['operations'], traceparent?: string): unknown {
  const writer = new CommitBatchWriter('envelope-"1"', buffers);
  for (const operation of operations) writer.add(JSON.stringify(operation));
  expect(writer.operationCount).toBe(operations.length);
  return JSON.parse(commitBatchText(writer.finish(traceparent)));
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

test('a thousand operations of any content are kept', () => {
  const operations = Array.from({ length: 1_000 }, (_, n) =>
    track(`id:${n}`, 'ü'.repeat(n % 200), { data: { n, text: '\u2028"\\' } }),
  );
  expect(written(operations)).toEqual({ id: 'envelope-"1"', operations });
});

test('bytes that fill a buffer to its last byte, and those around them, are kept whole', () => {
  for (let length = 32_650; length < 32_768; length++) {
    const operation = track('id:a', 'x');
    const bytes = Buffer.from(JSON.stringify(operation).padEnd(length));
    const writer = new CommitBatchWriter('e', new CommitBatchBuffers());
    writer.addBytes(bytes, 0, bytes.length);
    const text = commitBatchText(writer.finish());
    expect(text).toHaveLength('{"id":"e","operations":[]}'.length + length);
    expect(JSON.parse(text)).toEqual({ id: 'e', operations: [operation] });
  }
});

test('letters of three bytes alone are kept whole around the end of a buffer', () => {
  for (let length = 10_900; length < 10_920; length++) {
    const letters = '€'.repeat(length);
    const writer = new CommitBatchWriter('e', new CommitBatchBuffers());
    writer.add(letters);
    expect(commitBatchText(writer.finish())).toBe(`{"id":"e","operations":[${letters}]}`);
  }
});

test('a batch has each key once, and is free of order until an operation is not', () => {
  const writer = new CommitBatchWriter('e', buffers);
  // The highest hash is negative as a signed integer.
  for (const hash of [7, 0xffff_ffff, 7, 2]) writer.addKey(hash);
  writer.add('{}');
  const { keys, isOrderFree } = writer.finish();
  expect([...keys].toSorted((one, other) => one - other)).toEqual([2, 7, 0xffff_ffff]);
  expect(isOrderFree).toBe(true);
  const ordered = new CommitBatchWriter('f', buffers);
  ordered.isOrderFree = false;
  ordered.add('{}');
  expect(ordered.finish()).toMatchObject({ isOrderFree: false, keys: new Uint32Array(0) });
});

test('a part of a flush has the id of the flush and the places of its operations, beside its own id', () => {
  const writer = new CommitBatchWriter('e', buffers);
  writer.add('{}');
  const part = writer.finish(undefined, 'flush', '03');
  expect(part).toMatchObject({ id: 'e', flushId: 'flush' });
  expect(JSON.parse(commitBatchText(part))).toEqual({
    id: 'e',
    operations: [{}],
    flushId: 'flush',
    places: '03',
  });
  const alone = new CommitBatchWriter('e', buffers);
  alone.add('{}');
  expect(alone.finish()).not.toHaveProperty('flushId');
});

test('a batch holds 32 KiB, more only if it needs more, and then at least twice as much', () => {
  const writer = new CommitBatchWriter('e', new CommitBatchBuffers());
  expect(writer.heldSizeBytes).toBe(32_768);
  // In the worst case 30,000 bytes.
  writer.add('x'.repeat(10_000));
  expect(writer.heldSizeBytes).toBe(32_768);
  const held = new Set<number>();
  for (let n = 0; n < 1_000; n++) {
    writer.add('x'.repeat(1_000));
    held.add(writer.heldSizeBytes);
  }
  expect([...held]).toEqual([32_768, 65_536, 131_072, 262_144, 524_288, 1_048_576]);
});

test('bytes take their own length, up to the last byte of a buffer, also if they are copied from the end of another', () => {
  const source = Buffer.alloc(100_000, 'x');
  const start = '{"id":"e","operations":['.length;
  for (const [length, heldSizeBytes] of [
    [32_768 - start, 32_768],
    [32_769 - start, 65_536],
  ] as const) {
    const writer = new CommitBatchWriter('e', new CommitBatchBuffers());
    writer.addBytes(source, source.length - length, source.length);
    expect(writer.heldSizeBytes).toBe(heldSizeBytes);
  }
});

test('a commit batch that is not written yet reads the same', () => {
  const commitBatch = { id: 'e', operations: [track('id:a', 'Paid')] };
  expect(JSON.parse(commitBatchText(commitBatch))).toEqual(commitBatch);
});

test('arrays, single operations and bytes follow one another, at any size', () => {
  const operations = Array.from({ length: 300 }, (_, n) => track(`id:${n}`, 'ü'.repeat(n)));
  const writer = new CommitBatchWriter('e', buffers);
  writer.addAll(JSON.stringify(operations.slice(0, 40)), 40);
  writer.add(JSON.stringify(operations[40]));
  const bytes = Buffer.from(`..${JSON.stringify(operations[41])}..`);
  writer.addBytes(bytes, 2, bytes.length - 2);
  writer.addAll(JSON.stringify(operations.slice(42, 43)), 1);
  writer.addAll(JSON.stringify(operations.slice(43)), 257);
  expect(writer.operationCount).toBe(300);
  expect(JSON.parse(commitBatchText(writer.finish()))).toEqual({ id: 'e', operations });
});

test('the next commit batch gets a returned buffer without its earlier content', () => {
  const own = new CommitBatchBuffers();
  const long = new CommitBatchWriter('long', own);
  long.add(JSON.stringify(track('id:a', 'x'.repeat(100_000))));
  const { bytes } = long.finish();
  long.release();
  const short = new CommitBatchWriter('short', own);
  const paid = track('id:b', 'Paid');
  short.add(JSON.stringify(paid));
  const second = short.finish();
  expect(second.bytes.buffer).toBe(bytes.buffer);
  expect(JSON.parse(commitBatchText(second))).toEqual({ id: 'short', operations: [paid] });
});

test('no more than 8 MB of buffers are kept', () => {
  const own = new CommitBatchBuffers();
  const given = Array.from({ length: 5 }, () => Buffer.alloc(2 * 1_048_576));
  for (const buffer of given) own.release(buffer);
  const taken = Array.from({ length: 5 }, () => own.take());
  expect(given.filter((buffer) => taken.includes(buffer))).toHaveLength(4);
});

test('a buffer is kept again after each use, and the one returned last is used first', () => {
  const own = new CommitBatchBuffers();
  const [first, last] = [Buffer.alloc(3 * 1_048_576), Buffer.alloc(4 * 1_048_576)];
  own.release(first);
  for (let use = 0; use < 5; use++) {
    own.release(last);
    expect(own.take()).toBe(last);
  }
  expect(own.take()).toBe(first);
});
