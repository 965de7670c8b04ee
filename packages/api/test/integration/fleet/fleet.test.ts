/** The state of the installation is for its operator alone; processes that are gone are not in it. */
import {
  deleteHeartbeat,
  listHeartbeats,
  writeHeartbeat,
  type ServiceName,
} from '@sluice/database/maintenance/process-heartbeats';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { insertToken } from '../support/api-under-test.ts';
import { startConsole, type ConsoleWorld } from '../support/console-world.ts';

let world: ConsoleWorld;
beforeAll(async () => {
  world = await startConsole({ operatorAccountIds: [1] });
  await insertToken(world.api.database, world.api.b.accountId, 'sa_live_fleet', {
    role: 'member',
    scopes: ['fleet:read'],
  });
});
afterAll(() => world.close());

const identity = (processId: string, service: ServiceName) => ({
  processId,
  service,
  version: '0.1.0',
  host: 'host',
  pid: 7,
});
const read = (headers: Record<string, string>) => world.call('GET', '/v1/fleet', { headers });
const asStaff = () => read({ authorization: 'Bearer sa_live_fleet' });

test('a token needs the scope, a user an account of the operator and its highest role', async () => {
  // The first tenant of an empty database.
  expect(world.api.a.accountId).toBe(1);
  expect((await asStaff()).statusCode).toBe(200);
  for (const token of [world.api.a.token, world.api.b.token])
    expectProblem(await read({ authorization: `Bearer ${token}` }), 403, 'forbidden');
  const session = async (tenant: 'a' | 'b', role: 'member' | 'account_admin') => {
    const { email } = await world.insertUser(world.api[tenant], role);
    return world.signIn(email);
  };
  for (const [tenant, role, isOperator] of [
    ['a', 'account_admin', true],
    ['a', 'member', false],
    ['b', 'account_admin', false],
  ] as const) {
    const cookie = await session(tenant, role);
    const { statusCode } = await world.call('GET', '/v1/fleet', { cookie });
    expect([tenant, role, statusCode]).toEqual([tenant, role, isOperator ? 200 : 403]);
    const { capabilities } = (await world.call('GET', '/console/me', { cookie })).json();
    expect(capabilities.includes('fleet.read')).toBe(isOperator);
  }
});

test('the fleet has each live process with its report, and leaves out stopped and silent processes', async () => {
  const { database } = world.api;
  const spill = { sizeBytes: 5, sizeBytesMax: 10, commitBatchCount: 2, oldestAgeMs: 31_000 };
  await writeHeartbeat(database, identity('one', 'intake'), { clockAheadMs: 1.5, spill });
  const stuck = { clockAheadMs: null, isBrokerAnswering: true, stuckQueues: ['events-1'] };
  await writeHeartbeat(database, identity('two', 'worker'), stuck);
  await writeHeartbeat(database, identity('killed', 'worker'), { clockAheadMs: 0 });
  await writeHeartbeat(database, identity('stopped', 'api'), { clockAheadMs: 0 });
  await deleteHeartbeat(database, 'stopped');
  await sql`update process_heartbeats set beat_at = beat_at - interval '61 seconds' where process_id = 'killed'`.execute(
    database,
  );
  // A look is shared for two seconds.
  world.api.clock.nowMs += 3_000;
  const fleet = (await asStaff()).json();
  expect(fleet.processes).toEqual([
    expect.objectContaining({
      id: 'one',
      service: 'intake',
      clock_ahead_ms: 2,
      broker_answers: null,
      spill: { size_bytes: 5, size_bytes_max: 10, commit_batches: 2, oldest_age_ms: 31_000 },
    }),
    expect.objectContaining({
      id: 'two',
      broker_answers: true,
      stuck_queues: ['events-1'],
      spill: null,
    }),
  ]);
  expect(fleet.broker).toBe(null);
  expect(fleet.shards).toBe(null);
  expect(fleet.alerts.map((alert: { name: string }) => alert.name)).toEqual([
    'BrokerIsAway',
    'ServiceIsGone',
    'AgesAreNotTold',
  ]);
});

test('a beat keeps the time of the start, and takes the rows of the killed with it', async () => {
  const { database } = world.api;
  const startedAt = async () =>
    (await listHeartbeats(database)).find(({ processId }) => processId === 'one')?.startedAt;
  const before = await startedAt();
  await Promise.all(
    ['one', 'two', 'three'].map((id) =>
      writeHeartbeat(database, identity(id, 'worker'), { clockAheadMs: 0 }),
    ),
  );
  expect(await startedAt()).toEqual(before);
  const { rows } = await sql<{ id: string }>`
    select process_id as id from process_heartbeats order by 1`.execute(database);
  expect(rows.map(({ id }) => id)).toEqual(['one', 'three', 'two']);
});
