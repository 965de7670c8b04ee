/** Large answers to callers who do not read them. */
import type { Issue } from '@sluice/domain/operations/issue';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Outcome } from '../../src/calls/outcome.ts';
import type { ServerState } from '../../src/http/server-state.ts';
import { begin, MEBIBYTE, stateWith } from '../support/simulated-callers.ts';

beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
});
afterEach(() => {
  vi.useRealTimers();
});

const issues: Issue[] = Array.from({ length: 2_500 }, (_, batchIndex) => ({
  code: 'required',
  field: 'userId',
  message: 'userId or anonymousId is required',
  batchIndex,
}));
const REFUSED: Outcome = { outcome: 'rejected', issues };

/** A caller of whose answer no byte is taken, unless its reader takes all. */
function call(
  state: ServerState,
  { outcome = REFUSED, isFull = true, transferEncodingCount = 0 } = {},
) {
  const caller = begin(state, '', () => undefined, '1', transferEncodingCount, outcome);
  caller.isFull = isFull;
  caller.receive(new TextEncoder().encode('{"batch":[]}').buffer, true);
  return caller;
}

const detailCount = (text: string): number =>
  (JSON.parse(text) as { errors?: unknown[] }).errors?.length ?? 0;

// An answer of half a megabyte was copied whole for each call of a sender who did not read.
test('an unread answer takes the memory of one piece, and comes whole as its reader reads on', () => {
  const state = stateWith(MEBIBYTE);
  const caller = call(state);
  expect(caller.text.length).toBeLessThanOrEqual(65_536);
  expect(state.unread.totalSize).toBeGreaterThan(300_000);
  for (let n = 0; n < 20 && !caller.isEnded; n++) caller.drain();
  expect(detailCount(caller.text)).toBe(2_500);
  expect(state).toMatchObject({ unread: { totalSize: 0 }, inFlightCount: 0 });
});

test('an answer that ends its connection has that in its head, and its body is whole', () => {
  const caller = call(stateWith(MEBIBYTE), { isFull: false, transferEncodingCount: 1 });
  expect(caller.headers.get('Connection')).toBe('close');
  expect(caller.isEnded).toBe(true);
  expect(detailCount(caller.text)).toBe(2_500);
});

test('beyond the bound an answer has no details, until an earlier one is read or its caller is gone', () => {
  const state = stateWith(MEBIBYTE);
  const callers = Array.from({ length: 5 }, () => call(state));
  const last = callers.at(-1);
  expect(last).toMatchObject({ status: '400 Bad Request', isEnded: true });
  expect(detailCount(last?.text ?? '')).toBe(1);
  expect(last?.text).toMatch(/2500 problems in the request; the details are left out/);
  expect(state.unread.totalSize).toBeLessThanOrEqual(MEBIBYTE);
  for (const caller of callers) if (!caller.isEnded) caller.abort();
  expect(state).toMatchObject({ unread: { totalSize: 0 }, inFlightCount: 0 });
  expect(detailCount(call(state, { isFull: false }).text)).toBe(2_500);
});

test('a reader who takes a byte now and then is cut once the answer is overdue', () => {
  const state = stateWith(MEBIBYTE);
  const caller = call(state);
  vi.advanceTimersByTime(30_000);
  expect(caller.isCut).toBe(false);
  vi.advanceTimersByTime(120_000);
  expect(caller.isCut).toBe(true);
  expect(state.cuts.counts.get('unread_answer')).toBe(1);
  expect(state).toMatchObject({ unread: { totalSize: 0 }, inFlightCount: 0 });
});
