/** Batch calls on the fast path. */
import { describe, expect, test } from 'vitest';
import { bytesOf, isParsedAlike, plain } from '../support/parsed-alike.ts';

describe('a batch', () => {
  const item = (changes: Record<string, unknown> = {}) => ({ type: 'track', ...plain, ...changes });
  const batchOf = (items: unknown[], more: Record<string, unknown> = {}) =>
    bytesOf(
      JSON.stringify({ context: { a: 1 }, batch: items, sentAt: '2026-11-20T10:00:00Z', ...more }),
    );

  test.each([
    ['behind its items', { batch: [item()], sentAt: '2026-11-20T01:00:00Z' }],
    ['before its items', { sentAt: '2026-11-20T01:00:00Z', batch: [item()] }],
    [
      'and some items have their own',
      { batch: [item({ sentAt: '2026-11-20T02:00:00Z' }), item()], sentAt: '2026-11-20T01:00:00Z' },
    ],
    [
      'and some items have no time',
      { batch: [item({ timestamp: undefined }), item()], sentAt: '2026-11-20T01:00:00Z' },
    ],
    ['which is off by years', { batch: [item()], sentAt: '2020-11-20T01:00:00Z' }],
  ])('with a time of sending %s corrects the times of its items', (_, body) => {
    expect(isParsedAlike(bytesOf(JSON.stringify(body)), 'batch')).toBe(true);
  });

  test.each([
    ['no date', { batch: [item()], sentAt: 'now' }],
    ['empty', { batch: [item()], sentAt: '' }],
    ['a number', { batch: [item()], sentAt: 7 }],
    [
      'another number of digits away',
      { batch: [item({ timestamp: '2001-09-09T01:46:30Z' })], sentAt: '2026-11-19T23:00:00Z' },
    ],
  ])('whose sentAt is %s is declined', (_, body) => {
    expect(isParsedAlike(bytesOf(JSON.stringify(body)), 'batch')).toBe(false);
  });

  test('of track calls takes the fast path, each to its shard', () => {
    const items = Array.from({ length: 300 }, (_, index) => item({ userId: `user-${index}` }));
    expect(isParsedAlike(batchOf(items), 'batch')).toBe(true);
  });

  test('of as many as there may be takes the fast path, of one more declined', () => {
    const items = Array.from({ length: 2_501 }, () => ({ type: 'track', userId: 'u', event: 'e' }));
    expect(isParsedAlike(batchOf(items.slice(1)), 'batch')).toBe(true);
    expect(isParsedAlike(batchOf(items), 'batch')).toBe(false);
  });

  test('with an item of 64 KB takes the fast path, with a larger one declined', () => {
    const least = JSON.stringify(item({ properties: { a: '' } })).length;
    const ofSize = (sizeBytes: number) =>
      batchOf([item(), item({ properties: { a: 'x'.repeat(sizeBytes - least) } })]);
    expect(isParsedAlike(ofSize(65_536), 'batch')).toBe(true);
    expect(isParsedAlike(ofSize(65_537), 'batch')).toBe(false);
  });

  test.each([
    ['another call', [item(), { type: 'identify', userId: 'u' }]],
    ['a call of no type', [item(), plain]],
    ['a faulty call', [item(), item({ event: '' })]],
    ['a call that is none', [item(), 1]],
    ['nothing', []],
  ])('with %s in it is declined', (_, items) => {
    expect(isParsedAlike(batchOf(items), 'batch')).toBe(false);
  });

  test.each([
    '{}',
    '{"batch":{}}',
    '{"batch":[]}',
    '{"batch":null}',
    '{"batch":[{"type":"track","userId":"u","event":"e"}],"batch":[]}',
    '{"batch":[{"type":"track","userId":"u","event":"e"}],"batch":[{"type":"track","userId":"v","event":"f"}]}',
  ])('%s is declined', (body) => expect(isParsedAlike(bytesOf(body), 'batch')).toBe(false));

  test('of the largest allowed size fits into the memory of the parser', () => {
    const items = Array.from({ length: 2_500 }, (_, index) =>
      item({
        userId: `${index}`.padEnd(150, 'u'),
        anonymousId: 'a'.repeat(150),
        context: undefined,
        properties: undefined,
        event: 'e',
      }),
    );
    const bytes = batchOf(items);
    const whole = Buffer.alloc(1_048_576, 0x20);
    whole.set(bytes);
    expect(isParsedAlike(whole, 'batch')).toBe(true);
  });
});
