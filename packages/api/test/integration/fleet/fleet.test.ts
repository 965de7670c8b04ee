/** The state of the installation is for its operator alone; processes that are gone are not in it. */
import {
  deleteHeartbeat,
  listHeartbeats,
  writeHeartbeat,
  type ServiceName,
} from '@sluice/database/maintenance/process-heartbeats';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { createFleetReader } from '../../../src/fleet/read-fleet.ts';
import { expectProblem } from '../../support/error-shapes.ts';
import { insertToken } from '../support/inserted-rows.ts';
import { cookieOf, startConsole, type ConsoleWorld } from '../support/console-world.ts';

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
  // In the session of a token of the operator's, the token's scopes count.
  const opened = await world.call('POST', '/console/session', {
    body: { token: world.api.a.token },
  });
  const cookie = cookieOf(opened);
  expectProblem(await world.call('GET', '/v1/fleet', { cookie }), 403, 'forbidden');
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

test('unknown keys are counted by day, and the calls of a kind count while one came within 24 hours', async () => {
  const { database, clock } = world.api;
  const readUnknown = async () => {
    // A look is shared for two seconds.
    clock.nowMs += 3_000;
    return (await asStaff()).json().unknown_keys;
  };
  expect(await readUnknown()).toEqual({ count: 0, first_at: null, last_at: null, latest: [] });
  const insert = async (
    [environmentId, code, source, count]: readonly [number, string, string, number],
    [firstAt, lastAt]: readonly [string, string],
    sample: string | null,
  ) => {
    await sql`
      insert into ingestion_issues
        (environment_id, day, code, source, field, count, first_at, last_at, message, sample)
      values (${environmentId}, ${firstAt.slice(0, 10)}, ${code}, ${source}, '', ${count}, ${firstAt}, ${lastAt},
              'not in force', ${sample})`.execute(database);
  };
  const CODE = 'authentication_failed';
  // The clock stands at 12:00 on 1 March.
  const OLD = ['2026-02-28T01:00:00Z', '2026-02-28T11:59:00Z'] as const;
  const YESTERDAY = ['2026-02-28T02:00:00Z', '2026-02-28T23:00:00Z'] as const;
  const TODAY = ['2026-03-01T00:10:00Z', '2026-03-01T11:00:00Z'] as const;
  await insert([0, CODE, 'track.v1.event', 70], OLD, 'old!');
  await insert([0, CODE, 'pipelines.track', 3], YESTERDAY, 'rong');
  await insert([0, CODE, 'pipelines.track', 2], TODAY, null);
  await insert([0, CODE, 'pipelines.page', 1], YESTERDAY, null);
  await insert([world.api.a.environmentId, CODE, 'pipelines.track', 900], TODAY, 'site');
  await insert([0, 'invalid', 'pipelines.track', 900], TODAY, 'else');
  const page = { source: 'pipelines.page', hint: null, count: 1 };
  const track = { source: 'pipelines.track', hint: 'rong', count: 5 };
  const lastAt = { yesterday: '2026-02-28T23:00:00.000Z', today: '2026-03-01T11:00:00.000Z' };
  expect(await readUnknown()).toEqual({
    count: 6,
    first_at: '2026-02-28T02:00:00.000Z',
    last_at: lastAt.today,
    latest: [
      { ...track, last_at: lastAt.today },
      { ...page, last_at: lastAt.yesterday },
    ],
  });
  for (const source of ['a', 'b', 'c', 'd', 'e']) await insert([0, CODE, source, 1], TODAY, 'many');
  const many = await readUnknown();
  expect(many.count).toBe(11);
  const sources = many.latest.map(({ source }: { source: string }) => source);
  expect(sources).toEqual(['a', 'b', 'c', 'd', 'e']);
  clock.nowMs += 24 * 60 * 60 * 1_000;
  expect(await readUnknown()).toMatchObject({ count: 0, latest: [] });
});

test('the rest of the fleet is shown while the calls with unknown keys cannot be read', async () => {
  const { database, clock } = world.api;
  const rename = (from: string, to: string) =>
    sql`alter table ${sql.table(from)} rename to ${sql.id(to)}`.execute(database);
  // On Citus their node may be away, which the test cannot bring about on every Postgres.
  await rename('ingestion_issues', 'issues_away');
  onTestFinished(async () => void (await rename('issues_away', 'ingestion_issues')));
  // A look is shared for two seconds.
  clock.nowMs += 3_000;
  const answer = await asStaff();
  expect(answer.statusCode).toBe(200);
  expect(answer.json()).toMatchObject({ unknown_keys: null, parked_operations: 0 });

  const warnings: string[] = [];
  let nowMs = 0;
  const readFleet = createFleetReader({
    database,
    openFleetBroker: () => Promise.reject(new Error('no broker')),
    now: () => clock.nowMs,
    // A look is shared for two seconds.
    monotonicNow: () => (nowMs += 3_000),
    logger: { warn: (_details: object, message?: string) => void warnings.push(`${message}`) },
  });
  expect([await readFleet(), await readFleet()].map((each) => each.unknownKeys)).toEqual([
    undefined,
    undefined,
  ]);
  // A console asks every few seconds.
  expect(warnings).toEqual(['calls with unknown keys could not be read; the fleet omits them']);
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
