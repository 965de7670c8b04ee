/** Results of drains that are written twice. The answer to the first write was lost. */
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql } from 'kysely';
import { beforeAll, expect, test } from 'vitest';
import type { Database } from '../../../src/connection/connection.ts';
import { appendDeliveries } from '../../../src/delivery/deliveries.ts';
import {
  recordProgressOfLanes,
  type AttemptRecord,
  type DrainReport,
} from '../../../src/delivery/lane-progress.ts';
import { claimLane } from '../../../src/delivery/lanes.ts';
import { statementsSentBy } from '../../../src/testing/statements-sent.ts';
import { insertTestWebhook, insertTestWorkspace } from '../../../src/testing/test-tenants.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

const NOW_MS = Date.UTC(2026, 0, 15);
let database: Database;

beforeAll(async () => {
  ({ database } = await createTestDatabase());
  await insertTestWorkspace(database, 1);
});

async function claimNewLane(): Promise<{ lane: LaneKey; fencing: number }> {
  const { webhookId } = await insertTestWebhook(database, 1);
  const lane = { environmentId: 1, webhookId };
  await appendDeliveries(
    database,
    [1, 2, 3].map((number) => ({
      environmentId: 1,
      eventType: 'customer_subscribed',
      eventId: `event-${number}`,
      objectType: 'customer',
      metric: 'subscribed',
      occurredAtMs: NOW_MS,
      data: {},
    })),
  );
  const claimed = await claimLane(database, lane, 60_000, NOW_MS);
  return { lane, fencing: claimed!.fencing };
}

const delivered = (sequence: number): AttemptRecord => ({
  sequence,
  attempt: 1,
  startedAtMs: NOW_MS,
  durationMs: 12,
  status: 200,
  outcome: 'delivered',
  failure: null,
  failureMessage: null,
  responseHead: 'HTTP/1.1 200 OK',
  responseBody: 'ok',
});

const reportOf = (
  { lane, fencing }: { lane: LaneKey; fencing: number },
  ...sequences: number[]
): DrainReport => {
  const cursor = sequences.at(-1) ?? 0;
  const snapshot = {
    state: 'healthy',
    cursor,
    attemptedThrough: cursor,
    concurrencyLimit: 1,
  } as const;
  return {
    lane,
    fencing,
    progress: {
      snapshot: { ...snapshot, nextProbeAtMs: null },
      attempts: sequences.map(delivered),
      endpointVersion: 0,
      isLast: false,
    },
    leaseMs: 60_000,
  };
};

async function keptOf({ webhookId }: LaneKey): Promise<number[]> {
  const { rows } = await sql<{ sequence: string }>`
    select sequence from delivery_attempts where webhook_id = ${webhookId} order by sequence`.execute(
    database,
  );
  return rows.map(({ sequence }) => Number(sequence));
}

test('attempts that are kept already are kept once, and those beside them too', async () => {
  const [one, other] = [await claimNewLane(), await claimNewLane()];
  const [first] = await recordProgressOfLanes(database, [reportOf(one, 1, 2)], NOW_MS);
  const again = await recordProgressOfLanes(
    database,
    [reportOf(one, 1, 2, 3), reportOf(other, 1)],
    NOW_MS,
  );
  expect(again).toMatchObject([{ endpoint: first!.endpoint }, { nextProbeAtMs: null }]);
  expect(await keptOf(one.lane)).toEqual([1, 2, 3]);
  expect(await keptOf(other.lane)).toEqual([1]);
  const { rows } = await sql`
    select cursor_sequence from lanes where webhook_id = ${one.lane.webhookId}`.execute(database);
  expect(rows).toEqual([{ cursor_sequence: '3' }]);
});

test('a repetition under an outdated fencing number of the lane writes no progress', async () => {
  const stale = await claimNewLane();
  await recordProgressOfLanes(database, [reportOf(stale, 1)], NOW_MS);
  await sql`
    update lanes set fencing = fencing + 1 where webhook_id = ${stale.lane.webhookId}`.execute(
    database,
  );
  expect(await recordProgressOfLanes(database, [reportOf(stale, 1, 2)], NOW_MS)).toEqual([
    undefined,
  ]);
  expect(await keptOf(stale.lane)).toEqual([1]);
});

test('attempts are kept with one statement, and only a repetition takes a second', async () => {
  const lane = await claimNewLane();
  const keep = () =>
    statementsSentBy(() => recordProgressOfLanes(database, [reportOf(lane, 1, 2)], NOW_MS));
  expect(await keep()).toHaveLength(1);
  expect(await keep()).toHaveLength(2);
});
