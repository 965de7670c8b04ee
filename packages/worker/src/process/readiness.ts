/** `/readyz` of the worker: progress, not pulse. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '@sluice/database/connection/connection';
import { countDeadLetteredOperations } from '@sluice/database/events/dead-lettered-operations';
import type { Producer } from '@sluice/platform/queue/queue';
import type { ConsumerReport } from '@sluice/platform/consumers/queue-consumers';
import type { Readiness } from '@sluice/platform/telemetry/admin-server';

const DEADLINE_MS = 2_000;
/** Beyond it the exact number is of no more use. */
export const DEAD_LETTERED_COUNT_MAX = 1_000;

/** Of a worker that starts while Postgres is away. */
export const WAITING_FOR_DATABASE: Readiness = {
  isReady: false,
  details: { waiting_for: 'the database' },
};

/** Not ready while the broker does not answer, a queue stands or no commit batch gets through. Within two seconds. */
export async function readReadiness(
  database: Database,
  producer: Pick<Producer, 'commitBatchCounts'>,
  { isBrokerAnswering, stuckQueues, replacedWorkers, failing }: ConsumerReport,
): Promise<Readiness> {
  const late = sleep(DEADLINE_MS, undefined, { ref: false });
  const [counts, deadLettered] = await Promise.all([
    Promise.race([producer.commitBatchCounts().catch(() => undefined), late]),
    Promise.race([
      countDeadLetteredOperations(database, DEAD_LETTERED_COUNT_MAX).catch(() => undefined),
      late,
    ]),
  ]);
  return {
    isReady:
      counts !== undefined &&
      isBrokerAnswering &&
      stuckQueues.length === 0 &&
      failing === undefined,
    details: {
      queued_envelopes: counts ?? null,
      stuck_queues: stuckQueues,
      replaced_workers: replacedWorkers,
      ...(failing && { failing }),
      // Not a reason to be unready: the version that fixes it must be able to start.
      parked_operations: deadLettered ?? null,
    },
  };
}
