/** Leases of a whole range of delivery queues: the ones that are due, and only those. */
import { LANES_A_RANGE, rangeOf } from '@sluice/domain/wake-ups/lane-ranges';
import { sql } from 'kysely';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import type { Database } from '../../../src/connection/connection.ts';
import { claimLane, claimLaneRange, PROBE_WAIT_MS_MAX } from '../../../src/delivery/lanes.ts';
import { statementsSentBy } from '../../../src/testing/statements-sent.ts';
import { insertTestWebhook, insertTestWorkspace } from '../../../src/testing/test-tenants.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

const NOW_MS = Date.UTC(2026, 0, 15);
const MINUTE_MS = 60_000;
let database: Database;
let environmentId = 0;
/** In the order of their numbers; all in one range. */
let webhookIds: number[];

beforeAll(async () => {
  ({ database } = await createTestDatabase());
});

beforeEach(async () => {
  await insertTestWorkspace(database, ++environmentId);
  // A range of its own for each test.
  await sql`
    select setval(pg_get_serial_sequence('webhooks', 'webhook_id'), ${environmentId * LANES_A_RANGE}::bigint)`.execute(
    database,
  );
  webhookIds = [];
  for (let count = 0; count < 6; count++)
    webhookIds.push((await insertTestWebhook(database, environmentId)).webhookId);
  await sql`update lanes set last_sequence = 3 where environment_id = ${environmentId}`.execute(
    database,
  );
});

const idOf = (place: number): number => webhookIds[place] as number;
const claim = (webhookId = idOf(0), ofEnvironment = environmentId) =>
  claimLaneRange(
    database,
    {
      range: rangeOf({ environmentId: ofEnvironment, webhookId }),
      leaseMs: MINUTE_MS,
      holderProcessId: 42,
    },
    NOW_MS,
    PROBE_WAIT_MS_MAX,
  );
const claimedIds = async (): Promise<number[]> =>
  (await claim()).map(({ webhookId }) => webhookId).toSorted((one, other) => one - other);

test('the leases of a range are taken by one statement, each as a claim of its own would be', async () => {
  const statements = await statementsSentBy(claim);
  expect(statements).toHaveLength(1);
  await sql`
    update lanes set lease_until = null where webhook_id = ${idOf(0)}`.execute(database);
  const alone = await claimLane(database, { environmentId, webhookId: idOf(0) }, MINUTE_MS, NOW_MS);
  await sql`
    update lanes set lease_until = null, fencing = fencing - 1 where webhook_id = ${idOf(0)}`.execute(
    database,
  );
  const [found, ...others] = await claim();
  expect(others).toEqual([]);
  expect(found).toEqual({ environmentId, webhookId: idOf(0), ...alone });
});

test('a lane is held by one process: a second search of the range leaves it out', async () => {
  expect(await claimedIds()).toEqual(webhookIds);
  expect(await claimedIds()).toEqual([]);
  const { rows } = await sql<{ holder: number }>`
    select distinct holder_process_id::int as holder from lanes where environment_id = ${environmentId}`.execute(
    database,
  );
  expect(rows).toEqual([{ holder: 42 }]);
});

test('lanes that are empty, paused, held, or wait for a probe are left out, and one that waits for its rate is taken', async () => {
  const set = (place: number, change: ReturnType<typeof sql>) =>
    sql`update lanes set ${change} where webhook_id = ${idOf(place)}`.execute(database);
  const later = new Date(NOW_MS + 1_000);
  await set(0, sql`cursor_sequence = 3`);
  await set(1, sql`is_paused = true`);
  await set(2, sql`lease_until = clock_timestamp() + interval '1 hour'`);
  await set(3, sql`state = 'failing', next_probe_at = ${later}`);
  await set(4, sql`next_start_at = ${later}`);
  expect(await claimedIds()).toEqual([idOf(4), idOf(5)]);
});

test('lanes of another workspace and of another range are left alone', async () => {
  const mine = environmentId;
  await insertTestWorkspace(database, ++environmentId);
  const { webhookId: neighbour } = await insertTestWebhook(database, environmentId);
  await sql`
    select setval(pg_get_serial_sequence('webhooks', 'webhook_id'), ${(environmentId + 1) * LANES_A_RANGE}::bigint)`.execute(
    database,
  );
  const { webhookId: far } = await insertTestWebhook(database, mine);
  await sql`update lanes set last_sequence = 3`.execute(database);
  const found = await claim(idOf(0), mine);
  expect(found).toHaveLength(6);
  expect(found.map(({ webhookId }) => webhookId)).not.toContain(neighbour);
  expect(found.map(({ webhookId }) => webhookId)).not.toContain(far);
});

test('the lanes of a closed workspace are left out', async () => {
  await sql`
    update environments set deleted_at = now() where environment_id = ${environmentId}`.execute(
    database,
  );
  expect(await claim()).toEqual([]);
});
