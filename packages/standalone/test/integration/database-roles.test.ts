/** The database roles of the services: each may run its own statements, and no other service's. */
import { execFile } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { createDatabase, type Database } from '@sluice/database/connection/connection';
import {
  dropOldDeliveries,
  makeDeliveryPartitions,
} from '@sluice/database/maintenance/delivery-retention';
import { startEmbeddedPostgres } from '@sluice/database/embedded/embedded-postgres';
import { dropOldVisitors } from '@sluice/database/people/visitors';
import { grantDatabaseRoles, makeServiceLogins } from '@sluice/database/schema/database-roles';
import { DATABASE_ROLES, type DatabaseRole } from '@sluice/database/schema/role-grants';
import { pretendCitus } from '@sluice/database/testing/pretend-citus';
import { createTestDatabase, type TestDatabase } from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { beforeAll, expect, onTestFinished, test } from 'vitest';
import { withoutProgress } from './program-under-test.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
let owner: TestDatabase;
beforeAll(async () => {
  owner = await createTestDatabase();
  await grantDatabaseRoles(owner.database);
});

/** A connection of a login that is a member of the role. */
async function connectAs(role: DatabaseRole): Promise<Database> {
  const name = `${owner.name}_${role}`;
  await makeServiceLogins(owner.database, [{ role, name, password: 'of the test' }]);
  const url = new URL(owner.url);
  url.username = name;
  url.password = 'of the test';
  const database = createDatabase({
    url: url.href,
    poolMax: 1,
    applicationName: 'role',
    onError: () => {},
  });
  onTestFinished(async () => {
    await database.destroy();
    await sql`drop role ${sql.id(name)}`.execute(owner.database);
  });
  return database;
}

const refusal = { code: '42501' };

test.each([
  ['13.0-1', true],
  ['13.2-1', false],
])(
  'on Citus %s, which may refuse a grant of columns on a distributed table, intake reads the messages that it needs',
  async (version, isWhole) => {
    const { database } = await createTestDatabase();
    await grantDatabaseRoles(database);
    await pretendCitus(database, version);
    // The nodes need the rights that the coordinator has already.
    expect(await grantDatabaseRoles(database)).toEqual({ outcome: 'granted', isChanged: true });
    const { rows } = await sql`
      select has_table_privilege('sluice_intake', 'message_deliveries', 'select') as "isWhole",
             has_column_privilege('sluice_intake', 'message_deliveries', 'delivery_id', 'select') as "isEnough",
             -- A table of the coordinator.
             has_table_privilege('sluice_intake', 'environments', 'select') as "isOfSecrets"`.execute(
      database,
    );
    expect(rows).toEqual([{ isWhole, isEnough: true, isOfSecrets: false }]);
    expect(await grantDatabaseRoles(database)).toEqual({ outcome: 'granted', isChanged: false });
  },
);

const LOGINS = ['sluice_intake_login', 'sluice_api_login', 'sluice_worker_login'];

/** Runs `infra/postgres/logins.sql` as an operator does. */
const makeLogins = (passwords: Readonly<Record<string, string>>) =>
  promisify(execFile)('psql', [owner.url, '-qf', join(ROOT, 'infra/postgres/logins.sql')], {
    env: { PATH: process.env['PATH'], ...passwords },
  });

async function readAs(login: string, password: string, columns: string): Promise<unknown> {
  const url = new URL(owner.url);
  url.username = login;
  url.password = password;
  const options = { poolMax: 1, applicationName: 'role', onError: () => {} };
  const database = createDatabase({ url: url.href, ...options });
  try {
    return await sql`select ${sql.raw(columns)} limit 1`.execute(database);
  } finally {
    await database.destroy();
  }
}

test('the logins that an operator makes have the rights of their services alone, and their last passwords', async () => {
  onTestFinished(async () => {
    for (const login of LOGINS)
      await sql`drop role if exists ${sql.id(login)}`.execute(owner.database);
  });
  const passwords = {
    INTAKE_POSTGRES_PASSWORD: 'of intake',
    API_POSTGRES_PASSWORD: `it's the API's`,
    WORKER_POSTGRES_PASSWORD: 'of the worker',
  };
  const { API_POSTGRES_PASSWORD: missing, ...others } = passwords;
  await expect(makeLogins(others)).rejects.toThrow('syntax error');
  await expect(makeLogins({ ...passwords, API_POSTGRES_PASSWORD: '' })).rejects.toThrow('zero');
  const { rows } = await sql`
    select from pg_roles where rolname = any(${LOGINS}::text[])`.execute(owner.database);
  expect(rows).toEqual([]);

  await makeLogins(passwords);
  await readAs('sluice_intake_login', 'of intake', 'secret_hash from api_credentials');
  await readAs('sluice_api_login', missing, '* from service_accounts');
  await readAs('sluice_worker_login', 'of the worker', 'signing_key from webhooks');
  await expect(
    readAs('sluice_intake_login', 'of intake', 'signing_key from webhooks'),
  ).rejects.toMatchObject(refusal);
  await expect(
    readAs('sluice_worker_login', 'of the worker', '* from console_sessions'),
  ).rejects.toMatchObject(refusal);

  await makeLogins({ ...passwords, INTAKE_POSTGRES_PASSWORD: 'a new one' });
  await readAs('sluice_intake_login', 'a new one', 'secret_hash from api_credentials');
});

test('intake reads no secret, no person and no event, and writes no row of billing', async () => {
  const intake = await connectAs('sluice_intake');
  for (const columns of [
    sql`webhook_signing_key from environments`,
    sql`* from environments`,
    sql`signing_key from webhooks`,
    sql`* from second_factors`,
    sql`* from identity_providers`,
    sql`* from console_sessions`,
    sql`* from service_accounts`,
    sql`* from people`,
    sql`* from events`,
    sql`* from runs`,
    sql`secret_hint from api_credentials`,
  ])
    await expect(sql`select ${columns} limit 1`.execute(intake)).rejects.toMatchObject(refusal);
  for (const statement of [
    sql`insert into credit_grants default values`,
    sql`update runs set status = 'success'`,
    sql`insert into receipts default values`,
    sql`update accounts set plan_id = 'x'`,
    sql`update api_credentials set revoked_at = null`,
    sql`delete from vendor_events`,
    sql`create table mine (a int)`,
  ])
    await expect(statement.execute(intake)).rejects.toMatchObject(refusal);
  // Its own purpose.
  await sql`select kind, site_id, secret_hash from api_credentials`.execute(intake);
  await sql`update api_credentials set is_test = false where environment_id = 0`.execute(intake);
});

test('the API settles no purchase and applies no event; the worker opens no session', async () => {
  const api = await connectAs('sluice_api');
  for (const statement of [
    sql`update runs set status = 'success', finished_at = now()`,
    sql`update runs set result = '{}'`,
    sql`update runs set invoice_id = 'in_1'`,
    sql`update run_steps set state = 'done'`,
    sql`insert into receipts default values`,
    sql`update vendor_events set settled_at = now()`,
    sql`delete from credit_entries`,
    sql`update audit_logs set object_id = '1'`,
    sql`insert into events default values`,
    sql`delete from people`,
    sql`select make_event_partitions(now()::date, 1)`,
    sql`select drop_visitor_partition('visitors_default')`,
  ])
    await expect(statement.execute(api)).rejects.toMatchObject(refusal);
  await sql`update runs set expires_at = now() where account_id = 0`.execute(api);
  const worker = await connectAs('sluice_worker');
  for (const statement of [
    sql`select * from console_sessions`,
    sql`select * from sign_in_codes`,
    sql`select * from user_identities`,
    sql`insert into console_sessions default values`,
    sql`update service_accounts set role = 'owner'`,
    sql`delete from audit_logs`,
    sql`drop table events`,
  ])
    await expect(statement.execute(worker)).rejects.toMatchObject(refusal);
});

test('the worker makes and drops partitions, and it alone reads a partition by its own name', async () => {
  const worker = await connectAs('sluice_worker');
  const day = new Date(Date.now() + 20 * 86_400_000);
  expect(await makeDeliveryPartitions(worker, day, 2)).toBe(4);
  await sql`select make_event_partitions((now() + interval '1 year')::date, 1)`.execute(worker);
  await sql`select make_visitor_partitions('2020-01-06', 1)`.execute(worker);
  const name = `delivery_log_${day.toISOString().slice(0, 10).replaceAll('-', '_')}`;
  await sql`select * from ${sql.table(name)}`.execute(worker);
  const { rows } = await sql<{ owners: number }>`
    select count(distinct relowner)::int as owners from pg_class
     where relname like 'delivery\\_log%' and relkind in ('r', 'p')`.execute(owner.database);
  expect(rows).toEqual([{ owners: 1 }]);
  const dropped = await dropOldDeliveries(worker, new Date(day.getTime() + 2 * 86_400_000), 1);
  expect(dropped.dropped).toContain(name);
  expect(await dropOldVisitors(worker, new Date(), 86_400_000)).toContain('visitors_2020_01_02');
  // Only partitions of theirs.
  for (const call of [
    sql`select drop_visitor_partition('accounts')`,
    sql`select drop_delivery_partition('delivery_log', 'accounts', '2026-01-01', false)`,
    sql`select drop_delivery_partition('accounts', 'accounts_2026_01_01', '2026-01-01', false)`,
  ])
    await expect(call.execute(worker)).rejects.toThrow(/is no partition of|is no day of/);
  const api = await connectAs('sluice_api');
  await expect(sql`select * from delivery_attempts_default`.execute(api)).rejects.toMatchObject(
    refusal,
  );
});

test('the roles cannot log in, are given once, and again only if something has changed', async () => {
  const { rows } = await sql`
    select rolname from pg_roles where rolname = any(${[...DATABASE_ROLES]}::text[])
       and not rolcanlogin and not rolsuper and not rolcreatedb and not rolcreaterole`.execute(
    owner.database,
  );
  expect(rows).toHaveLength(DATABASE_ROLES.length);
  expect(await grantDatabaseRoles(owner.database)).toEqual({
    outcome: 'granted',
    isChanged: false,
  });
  await sql`comment on table installation is null`.execute(owner.database);
  await sql`grant select on second_factors to sluice_intake`.execute(owner.database);
  expect(await grantDatabaseRoles(owner.database)).toEqual({ outcome: 'granted', isChanged: true });
  const intake = await connectAs('sluice_intake');
  await expect(sql`select * from second_factors`.execute(intake)).rejects.toMatchObject(refusal);
});

test('for an owner who may make no roles, `migrate` prints the statements to run, and later grants their rights', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-test-roles-'));
  const server = await startEmbeddedPostgres({
    directory,
    durability: 'none',
    onProgress: () => undefined,
  });
  onTestFinished(async () => {
    await server.remove();
    await rm(directory, { recursive: true, force: true });
  });
  const superuser = createDatabase({
    url: server.url('postgres'),
    poolMax: 1,
    applicationName: 'superuser',
    onError: () => undefined,
  });
  onTestFinished(() => superuser.destroy());
  await sql`create role plain login password 'of the test'`.execute(superuser);
  await sql`create database shop owner plain`.execute(superuser);
  const url = new URL(server.url('shop'));
  url.username = 'plain';
  url.password = 'of the test';
  const migrate = () =>
    promisify(execFile)(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', join(ROOT, 'scripts/migrate.ts')],
      { env: { ...process.env, DATABASE_URL: url.href } },
    );
  const first = await migrate();
  expect(first.stdout).toContain('migrated:');
  const [, statements = ''] =
    /run as a superuser, then migrate again: (.*;)/.exec(first.stderr) ?? [];
  expect(statements).toBe(DATABASE_ROLES.map((role) => `create role ${role} nologin;`).join(' '));
  await sql.raw(statements).execute(superuser);
  const second = await migrate();
  expect(second.stdout).toContain('already up to date');
  expect(withoutProgress(second.stderr)).toBe('');
  const mine = createDatabase({
    url: url.href,
    poolMax: 1,
    applicationName: 'owner',
    onError: () => undefined,
  });
  onTestFinished(() => mine.destroy());
  const { rows } = await sql`
    select has_table_privilege('sluice_worker', 'people', 'delete') as worker,
           has_table_privilege('sluice_api', 'people', 'delete') as api,
           has_schema_privilege('sluice_intake', 'bullmq', 'usage') as queues`.execute(mine);
  expect(rows).toEqual([{ worker: true, api: false, queues: true }]);
}, 300_000);
