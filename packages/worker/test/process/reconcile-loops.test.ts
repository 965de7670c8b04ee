/** Reconcile loops: run only if work is due, each by itself, never twice at the same time. */
import type { DueKind } from '@sluice/database/maintenance/due-work';
import { createLogger } from '@sluice/platform/process/logger';
import { afterEach, expect, test, vi } from 'vitest';
import { startReconcileLoops, type ReconcileLoop } from '../../src/process/reconcile-loops.ts';

const WAIT = { timeout: 30_000, interval: 1 };
const logger = createLogger('test', 'silent');
let stop = (): Promise<void> => Promise.resolve();
afterEach(() => stop());

/** Looks each millisecond; the test decides which kinds are due. */
function start(reconcileLoops: readonly ReconcileLoop[], monotonicNow = () => 0) {
  const due = new Set<DueKind>();
  const findDueWork = vi.fn<() => Promise<Set<DueKind>>>(() => Promise.resolve(new Set(due)));
  const looks = startReconcileLoops({
    findDueWork,
    reconcileLoops,
    intervalMs: 1,
    monotonicNow,
    logger,
  });
  stop = () => looks.stop();
  const looked = async () => {
    const before = findDueWork.mock.calls.length;
    await vi.waitFor(() => expect(findDueWork.mock.calls.length).toBeGreaterThan(before + 2), WAIT);
  };
  return { due, looked, looks, findDueWork };
}

/** The test decides when it ends. */
function createReconciler(kind: DueKind, intervalMs = 0) {
  const ends: (() => void)[] = [];
  const run = vi.fn<() => Promise<void>>(() => new Promise((resolve) => ends.push(resolve)));
  return {
    reconcileLoop: { name: kind, kind, intervalMs, run } satisfies ReconcileLoop,
    run,
    ends,
  };
}

test('without due work only the look runs', async () => {
  const { reconcileLoop, run } = createReconciler('lanes');
  const { looked } = start([reconcileLoop]);
  await looked();
  expect(run).not.toHaveBeenCalled();
});

test('one under way is not begun again and holds up no other', async () => {
  const slow = createReconciler('imports');
  const other = createReconciler('lanes');
  const { due, looked } = start([slow.reconcileLoop, other.reconcileLoop]);
  due.add('imports').add('lanes');
  await looked();
  expect([slow.run.mock.calls.length, other.run.mock.calls.length]).toEqual([1, 1]);
  other.ends[0]?.();
  await vi.waitFor(() => expect(other.run).toHaveBeenCalledTimes(2), WAIT);
  expect(slow.run).toHaveBeenCalledTimes(1);
  for (const end of [...slow.ends, ...other.ends]) end();
  due.clear();
});

test('one that fails runs again', async () => {
  const run = vi
    .fn<() => Promise<void>>()
    .mockRejectedValueOnce(new Error('away'))
    .mockResolvedValue(undefined);
  const { due } = start([{ name: 'sweep lanes', kind: 'lanes', run }]);
  due.add('lanes');
  await vi.waitFor(() => expect(run.mock.calls.length).toBeGreaterThan(1), WAIT);
});

test('a look that fails is followed by the next', async () => {
  const { reconcileLoop, run, ends } = createReconciler('lanes');
  const { due, findDueWork } = start([reconcileLoop]);
  findDueWork.mockRejectedValueOnce(new Error('Postgres is away'));
  due.add('lanes');
  await vi.waitFor(() => expect(run).toHaveBeenCalledTimes(1), WAIT);
  ends[0]?.();
  due.clear();
});

test('one has its interval, however often is looked', async () => {
  let nowMs = 0;
  const run = vi.fn<() => Promise<void>>(() => Promise.resolve());
  const { due, looked } = start(
    [{ name: 'sweep exports', kind: 'exports', intervalMs: 2_000, run }],
    () => nowMs,
  );
  due.add('exports');
  await looked();
  expect(run).toHaveBeenCalledTimes(1);
  nowMs = 1_700;
  await looked();
  expect(run).toHaveBeenCalledTimes(1);
  nowMs = 2_000;
  await looked();
  expect(run).toHaveBeenCalledTimes(2);
});

test('one runs at each mark, though the question before an earlier run took 5 ms longer', async () => {
  let nowMs = 7;
  const run = vi.fn<() => Promise<void>>(() => Promise.resolve());
  const { due, looked } = start(
    [{ name: 'sweep lanes', kind: 'lanes', intervalMs: 1_000, run }],
    () => nowMs,
  );
  due.add('lanes');
  await looked();
  expect(run).toHaveBeenCalledTimes(1);
  nowMs = 1_002;
  await looked();
  expect(run).toHaveBeenCalledTimes(2);
});

test('a stop asks the loops under way to end and waits for them', async () => {
  let asks: (() => boolean) | undefined;
  let end = (): void => {};
  const { due, looks } = start([
    {
      name: 'replay deliveries',
      kind: 'replays',
      run(isStopping) {
        asks = isStopping;
        return new Promise<void>((resolve) => (end = resolve));
      },
    },
  ]);
  due.add('replays');
  await vi.waitFor(() => expect(asks?.()).toBe(false), WAIT);
  let isStopped = false;
  const stopped = looks.stop().then(() => (isStopped = true));
  await vi.waitFor(() => expect(asks?.()).toBe(true), WAIT);
  expect(isStopped).toBe(false);
  end();
  await stopped;
});
