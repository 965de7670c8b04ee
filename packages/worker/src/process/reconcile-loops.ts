/**
 * Looks for due work, and for work whose wake-up may be lost.
 *
 * The broker was flushed, a wake-up was lost or a worker died. One statement a look asks for all of it
 * (`database/src/maintenance/due-work.ts`), and only a reconcile loop that has something to find is run. So an idle
 * fleet asks Postgres once a second.
 *
 * Reconcile loops do not wait for each other: an import takes minutes, a lane must not. Any number of workers may look
 * at the same time; each reconcile loop takes its finds by claims, or wakes work that runs once.
 *
 * Before: `main.ts`, which lists them. After: `reconcile-lanes.ts`, `purchases.ts`, `settle-provider-events.ts`,
 * `run-import.ts`, `replay-deliveries.ts`, `export-audit-logs.ts`.
 */
import type { DueKind } from '@sluice/database/maintenance/due-work';
import type { Logger } from '@sluice/platform/process/logger';
import { repeat, type Repetition } from '@sluice/platform/process/repeat';

/** Done when `kind` is due; never twice at the same time by one process. */
export interface ReconcileLoop {
  readonly name: string;
  readonly kind: DueKind;
  /** Minimum time between two starts. If absent, it runs at each look. */
  readonly intervalMs?: number;
  readonly run: (isStopping: () => boolean) => Promise<unknown>;
}

export interface ReconcileLoopsDeps {
  readonly findDueWork: () => Promise<ReadonlySet<DueKind>>;
  readonly reconcileLoops: readonly ReconcileLoop[];
  /** Between two looks, at most `LOOK_INTERVAL_MS_MAX`. */
  readonly intervalMs: number;
  readonly monotonicNow: () => number;
  readonly logger: Logger;
}

/** A replay is found within a second (`database/src/replays/replay-start.ts`). */
const LOOK_INTERVAL_MS_MAX = 1_000;
/** While replays run: how late a replay that waits for its rate or its retry probe may go on. */
const REPLAY_LOOK_INTERVAL_MS = 500;
/** While a worker process seems to be gone: how late it is found dead (`maintenance/departed-workers.ts`). */
const DEPARTED_LOOK_INTERVAL_MS = 100;
/** Looks end at marks; the question before this look may have taken longer. */
const LOOK_EARLY_MS_MAX = 250;

/** Begins to look. A reconcile loop that fails is logged, and runs again while something is due. */
export function startReconcileLoops(deps: ReconcileLoopsDeps): Repetition {
  const { findDueWork, reconcileLoops, monotonicNow, logger } = deps;
  const underWay = new Map<ReconcileLoop, Promise<void>>();
  const begunAtMs = new Map<ReconcileLoop, number>();
  let intervalMs = 0;

  const begin = (reconcileLoop: ReconcileLoop, isStopping: () => boolean): void => {
    begunAtMs.set(reconcileLoop, monotonicNow());
    const run = reconcileLoop
      .run(isStopping)
      .catch((error: unknown) =>
        logger.warn(
          { error, task: reconcileLoop.name },
          'a reconciliation loop failed; it runs again',
        ),
      )
      .then(() => void underWay.delete(reconcileLoop));
    underWay.set(reconcileLoop, run);
  };
  const mayBegin = (reconcileLoop: ReconcileLoop): boolean =>
    !underWay.has(reconcileLoop) &&
    monotonicNow() - (begunAtMs.get(reconcileLoop) ?? -Infinity) + LOOK_EARLY_MS_MAX >=
      (reconcileLoop.intervalMs ?? 0);

  const looks = repeat(
    'look for due work',
    () => intervalMs,
    logger,
    async (isStopping) => {
      intervalMs = Math.min(deps.intervalMs, LOOK_INTERVAL_MS_MAX);
      const due = await findDueWork();
      if (due.has('replays')) intervalMs = Math.min(intervalMs, REPLAY_LOOK_INTERVAL_MS);
      if (due.has('departed-workers')) intervalMs = Math.min(intervalMs, DEPARTED_LOOK_INTERVAL_MS);
      if (isStopping()) return;
      for (const reconcileLoop of reconcileLoops)
        if (due.has(reconcileLoop.kind) && mayBegin(reconcileLoop))
          begin(reconcileLoop, isStopping);
    },
  );
  return {
    wake: () => looks.wake(),
    async stop() {
      await looks.stop();
      await Promise.all(underWay.values());
    },
  };
}
