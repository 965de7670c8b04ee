/** Lane with a failing head, and all its statements. Many deliveries wait behind the head. */
import type { Database } from '@sluice/database/connection/connection';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { listDeliveriesAfter } from '@sluice/database/delivery/logged-deliveries';
import { findLaneState } from '@sluice/database/delivery/lane-states';
import { recordProgress } from '@sluice/database/delivery/lane-progress';
import { claimLane, listLanesToWake, PROBE_WAIT_MS_MAX } from '@sluice/database/delivery/lanes';
import { DEMO } from '@sluice/database/demo/seed-demo';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql } from 'kysely';
import { replaceWebhooks } from './delivery-world.ts';

const LEASE_MS = 15_000;
const INSERT_SIZE = 200_000;
/** Of a body. */
export const BLOCKED_BYTES = 400;

/** Replaces all webhooks by one whose first delivery fails, with so many behind it. */
export async function makeFailingLane(database: Database, size: number): Promise<LaneKey> {
  const [webhookId = 0] = await replaceWebhooks(database, ['http://127.0.0.1:9/']);
  for (let from = 1; from <= size; from += INSERT_SIZE) {
    await sql`
      insert into delivery_log (environment_id, webhook_id, sequence, event_id, event_type, occurred_at, body)
      select ${DEMO.environmentId}, ${webhookId}, n, 'held-' || n, 'email_delivered', now(),
             repeat('x', ${BLOCKED_BYTES}::int)
        from generate_series(${from}::int, ${Math.min(from + INSERT_SIZE - 1, size)}::int) n`.execute(
      database,
    );
  }
  await sql`
    update lanes set last_sequence = ${size}, state = 'failing', attempted_sequence = 1, next_probe_at = now()
     where webhook_id = ${webhookId}`.execute(database);
  await sql`
    insert into delivery_attempts (environment_id, webhook_id, sequence, attempt, duration_ms, started_at, outcome, failure)
    values (${DEMO.environmentId}, ${webhookId}, 1, 1, 5, now(), 'retrying', 'connection_refused')`.execute(
    database,
  );
  await sql`vacuum analyze delivery_log`.execute(database);
  await sql`vacuum analyze lanes`.execute(database);
  return { environmentId: DEMO.environmentId, webhookId };
}

/** Runs one statement and records its cost under its name. */
export type Meter = <Result>(name: string, run: () => Promise<Result>) => Promise<Result>;

/**
 * Every statement of one probe, and of the readers of the lane. @param repetition another number each time.
 */
export async function exerciseLane(
  database: Database,
  lane: LaneKey,
  repetition: string,
  meter: Meter,
): Promise<void> {
  const nowMs = Date.now() + 60_000;
  await meter('sweep', () => listLanesToWake(database, nowMs, 100, PROBE_WAIT_MS_MAX));
  const claimed = await meter('claim', () => claimLane(database, lane, LEASE_MS, nowMs));
  if (!claimed) throw new Error('the delivery queue could not be claimed');
  const read = (limit: number, after: number) =>
    listDeliveriesAfter(database, [
      {
        lane,
        after,
        attemptedThrough: claimed.attemptedThrough,
        limit,
        readFromDay: claimed.readFromDay,
      },
    ]);
  await meter('read the head', () => read(1, claimed.cursor));
  await meter('read 256 in the middle', () => read(256, Math.floor(claimed.lastSequence / 2)));
  await meter('keep', () =>
    recordProgress(
      database,
      lane,
      claimed.fencing,
      {
        snapshot: { ...claimed, state: 'failing', nextProbeAtMs: nowMs },
        attempts: [],
        endpointVersion: 0,
        isLast: true,
      },
      LEASE_MS,
      nowMs,
    ),
  );
  await meter('state', () => findLaneState(database, lane));
  await meter('log 20 more', () =>
    database.transaction().execute((transaction) =>
      appendDeliveries(
        transaction,
        Array.from({ length: 20 }, (_, n) => ({
          environmentId: DEMO.environmentId,
          eventId: `more-${repetition}-${n}`,
          eventType: 'email_delivered' as const,
          objectType: 'email' as const,
          metric: 'delivered',
          occurredAtMs: nowMs,
          data: { customer_id: '42' },
        })),
      ),
    ),
  );
}
