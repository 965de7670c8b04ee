import { createLogger } from '@sluice/platform/process/logger';
import { afterEach, expect, test, vi } from 'vitest';
import { keepRelaying, type RelayKeeper } from '../../src/outbox/keep-relaying.ts';

const WAIT = { timeout: 5_000, interval: 1 };
/** Longer than any wait here: a look that comes was called for. */
const SELDOM = { intervalMs: 1, seldomIntervalMs: 2_000_000_000 };
const logger = createLogger('test', 'silent');
let keeper: RelayKeeper | undefined;
afterEach(() => keeper?.stop());

const turns = async (count: number): Promise<void> => {
  for (let turn = 0; turn < count; turn++) await new Promise((resolve) => setImmediate(resolve));
};

test('an empty outbox is looked at seldom, but at once after a call that may have filled it', async () => {
  const relay = vi.fn<() => Promise<number>>(() => Promise.resolve(0));
  keeper = keepRelaying(relay, logger, SELDOM);
  await vi.waitFor(() => expect(relay).toHaveBeenCalledTimes(4), WAIT);
  await turns(20);
  expect(relay).toHaveBeenCalledTimes(4);
  keeper.noteChange();
  await vi.waitFor(() => expect(relay).toHaveBeenCalledTimes(8), WAIT);
});

test('a change during a look at an empty outbox causes another look', async () => {
  const ends: (() => void)[] = [];
  const relay = vi.fn<() => Promise<number>>(
    () => new Promise((resolve) => ends.push(() => resolve(0))),
  );
  keeper = keepRelaying(relay, logger, SELDOM);
  for (let look = 0; look < 4; look++) {
    await vi.waitFor(() => expect(ends).toHaveLength(look + 1), WAIT);
    if (look === 3) keeper.noteChange();
    ends[look]?.();
  }
  await vi.waitFor(() => expect(ends).toHaveLength(5), WAIT);
  ends[4]?.();
  relay.mockResolvedValue(0);
});

test('a filled outbox is looked at often, and calls do not make the looks more frequent', async () => {
  let told = 0;
  const relay = vi.fn<() => Promise<number>>(() => Promise.resolve(++told < 12 ? 1 : 0));
  keeper = keepRelaying(relay, logger, SELDOM);
  keeper.noteChange();
  keeper.noteChange();
  expect(relay).toHaveBeenCalledTimes(1);
  await vi.waitFor(() => expect(relay.mock.calls.length).toBeGreaterThan(12), WAIT);
});
