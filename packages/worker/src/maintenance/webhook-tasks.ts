/**
 * Work of a worker about webhooks, beside their deliveries.
 *
 * It has the reconciliation loops of delivery queues and replays. By the clock it cares for alerts, secrets, the days
 * of the log, and the remains of deleted webhooks.
 *
 * Each task may run on any number of workers at the same time. Replays have drains and requests of their own, so they
 * take no drain of the lanes.
 */
import type { Database } from '@sluice/database/connection/connection';
import { deleteEndedLaneMerges } from '@sluice/database/delivery/lane-merges';
import { clearReplays } from '@sluice/database/replays/replays';
import { clearDeletedWebhook } from '@sluice/database/webhooks/webhooks';
import { longestWaitMs } from '@sluice/domain/delivery/delivery-schedule';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import { repeat } from '@sluice/platform/process/repeat';
import type { Producer } from '@sluice/platform/queue/queue';
import type { EncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { FairPermits } from '../scheduling/fair-permits.ts';
import { disableFailing } from './disable-failing.ts';
import { keepDeliveryDays } from './keep-delivery-days.ts';
import { FEED_BOUNDS, keepFeeds } from './keep-feeds.ts';
import { encryptSecrets } from './encrypt-secrets.ts';
import { raiseAlerts } from './raise-alerts.ts';
import { replayDeliveries, type ReplayDeps } from '../delivery/replay-deliveries.ts';
import { createLaneReconciler } from './reconcile-lanes.ts';
import type { ReconcileLoop } from '../process/reconcile-loops.ts';

export interface WebhookTaskDeps {
  readonly database: Database;
  /** Dependencies of the drains. */
  readonly draining: Omit<ReplayDeps, 'database' | 'permits'>;
  readonly encryptedText: EncryptedText;
  readonly producer: Pick<Producer, 'wakeLane' | 'wakeLanes'>;
  readonly reconcileIntervalMs: number;
  readonly alertAfterMs: number;
  readonly retentionDays: number;
  readonly newId: () => string;
  readonly lifecycle: Lifecycle;
}

const SECRETS_INTERVAL_MS = 60_000;
const ALERTS_INTERVAL_MS = 10_000;
const DISABLING_INTERVAL_MS = 60_000;
const REPLAY_DRAINS = 2;
const REPLAY_REQUESTS_MAX = 16;
const REPLAY_SLOW_AFTER_MS = 50;
const CLEARING_INTERVAL_MS = 60_000;
const CLEARING_STEPS_MAX = 1_000;
const CLEARED_ROWS_PER_STEP = 1_000;
const RETENTION_INTERVAL_MS = 3_600_000;
/** A feed may exceed its bound by the events of so long. */
const FEEDS_INTERVAL_MS = 300_000;
const REPLAYS_KEPT_MS = 30 * 24 * 3_600_000;
const REPLAYS_CLEARED_MAX = 10;

/**
 * Starts the periodic tasks, which stop with `lifecycle`.
 *
 * @returns the loops that run when work is due.
 */
export function startWebhookTasks(deps: WebhookTaskDeps): ReconcileLoop[] {
  const { database, draining, lifecycle, producer } = deps;
  const wakeLane = (lane: LaneKey): Promise<void> => producer.wakeLane(lane);
  const { logger, now, monotonicNow, idleTime } = draining;
  const start = (
    name: string,
    intervalMs: number,
    step: (isStopping: () => boolean) => Promise<unknown>,
  ): void => {
    const repetition = repeat(name, intervalMs, logger, step);
    lifecycle.defer(name, () => repetition.stop());
  };

  start('keep secrets', SECRETS_INTERVAL_MS, () =>
    encryptSecrets({ database, encryptedText: deps.encryptedText, now }),
  );
  start('raise alerts', ALERTS_INTERVAL_MS, () => raiseAlerts({ ...deps, wakeLane, now, logger }));
  start('disable failing webhooks', DISABLING_INTERVAL_MS, () =>
    disableFailing({ ...deps, wakeLane, now, logger }),
  );
  start('clear replays', CLEARING_INTERVAL_MS, () =>
    clearReplays(database, now() - REPLAYS_KEPT_MS, REPLAYS_CLEARED_MAX),
  );
  start('clear deleted webhooks', CLEARING_INTERVAL_MS, () =>
    clearDeletedWebhooks(database, CLEARING_STEPS_MAX),
  );
  start('clear merges of delivery queues', CLEARING_INTERVAL_MS, () =>
    deleteEndedLaneMerges(database),
  );
  start('keep feeds', FEEDS_INTERVAL_MS, (isStopping) =>
    keepFeeds({ database, logger }, FEED_BOUNDS, isStopping),
  );
  start('keep days of deliveries', RETENTION_INTERVAL_MS, () =>
    keepDeliveryDays({ database, now, logger }, deps.retentionDays),
  );
  const permits = new FairPermits({
    permitsMax: REPLAY_REQUESTS_MAX,
    slowMax: REPLAY_REQUESTS_MAX,
    slowAfterMs: REPLAY_SLOW_AFTER_MS,
    monotonicNow,
    idleTimeMs: () => idleTime.totalMs(),
  });
  const replaying = { ...draining, database, permits: { deliveries: permits, probes: permits } };
  const replayAll = async (isStopping: () => boolean): Promise<void> => {
    let wasDue = true;
    while (wasDue && !isStopping()) wasDue = await replayDeliveries(replaying);
  };
  return [
    {
      name: 'sweep lanes',
      kind: 'lanes',
      intervalMs: deps.reconcileIntervalMs,
      run: createLaneReconciler({
        database,
        wakeLanes: (lanes) => producer.wakeLanes(lanes),
        now,
        probeWaitMsMax: longestWaitMs(draining.policy),
      }),
    },
    ...Array.from({ length: REPLAY_DRAINS }, (_, drain): ReconcileLoop => ({
      name: `replay deliveries ${drain + 1}`,
      kind: 'replays',
      run: replayAll,
    })),
  ];
}

/**
 * Clears the log of deleted webhooks, in steps that are too small to disturb other work, until it is empty or
 * `stepsMax` steps are made. A deleted webhook is gone for its owner at once, but its log may have millions of rows.
 *
 * @returns the steps made.
 */
export async function clearDeletedWebhooks(database: Database, stepsMax: number): Promise<number> {
  for (let steps = 0; steps < stepsMax; steps++) {
    const hasMore = await clearDeletedWebhook(database, CLEARED_ROWS_PER_STEP);
    if (!hasMore) return steps;
  }
  return stepsMax;
}
