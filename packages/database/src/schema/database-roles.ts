/**
 * The database roles of the services, with the rights of each. They cannot log in; an operator's login users are
 * members of them (`grant sluice_api to my_api_login`). The owner of the schema does not need them.
 *
 * Roles belong to the whole server, grants to a database. They are made with each `npm run migrate`, and only if
 * something has changed since (`grantDatabaseRoles`). New partitions are the owner's, and get the worker's and the API's
 * rights by default privileges and by the table that they are part of. `role-grants.ts` has the rights.
 */
import { createHash } from 'node:crypto';
import { AppError } from '@sluice/domain/values/errors';
import { sql } from 'kysely';
import pg from 'pg';
import type { Database, DatabaseOrTransaction, Transaction } from '../connection/connection.ts';
import { listTablesWithoutColumnGrants } from './distribute.ts';
import { ALL, DATABASE_ROLES, GRANTS, WORKER_FUNCTIONS, type DatabaseRole } from './role-grants.ts';

/**
 * BullMQ's functions act as their caller, so a role that adds or takes a job needs its tables too. No secret is in a
 * job.
 */
const QUEUE_SCHEMA = 'bullmq';

export type RolesOutcome =
  /** They are as this version has them. `isChanged`: they were not before. */
  | { readonly outcome: 'granted'; readonly isChanged: boolean }
  /** The database's user may make no roles; somebody who may has to run `statements` first. */
  | { readonly outcome: 'not-allowed'; readonly statements: string };

const INSUFFICIENT_PRIVILEGE = '42501';

/**
 * Makes missing roles, and gives all roles the rights that this version needs, in one transaction. If the state is the
 * same as at its last call on this database, it is one read.
 *
 * Call it after the migrations, the queues' too, as the schema's owner.
 */
export async function grantDatabaseRoles(database: Database): Promise<RolesOutcome> {
  try {
    return await database.transaction().execute(grantOnce);
  } catch (error) {
    const missing = await missingRoles(database);
    const isRefused = error instanceof pg.DatabaseError && error.code === INSUFFICIENT_PRIVILEGE;
    if (!isRefused || missing.length === 0) throw error;
    const statements = missing.map((role) => `create role ${role} nologin;`).join(' ');
    return { outcome: 'not-allowed', statements };
  }
}

async function grantOnce(transaction: Transaction): Promise<RolesOutcome> {
  await sql`select pg_advisory_xact_lock(hashtext('sluice: database roles'))`.execute(transaction);
  const missing = await missingRoles(transaction);
  const coarse = await listTablesWithoutColumnGrants(transaction);
  const mark = await markOf(transaction);
  const { rows } = await sql<{ mark: string | null }>`
    select obj_description('installation'::regclass, 'pg_class') as mark`.execute(transaction);
  if (missing.length === 0 && rows[0]?.mark === mark)
    return { outcome: 'granted', isChanged: false };
  for (const role of missing)
    // Another database of this server may be making it at this moment.
    await sql`${sql.raw(`do $$ begin create role ${role} nologin;
      exception when duplicate_object or unique_violation then null; end $$`)}`.execute(
      transaction,
    );
  const { rows: places } = await sql<{ schema: string }>`
    select quote_ident(current_schema()) as schema`.execute(transaction);
  const schema = places[0]?.schema ?? 'public';
  const partitions = await listPartitions(transaction);
  const statements = [
    ...DATABASE_ROLES.flatMap((role) => grantsOf(role, schema, partitions, coarse)),
    ...WORKER_FUNCTIONS.map((name) => `grant execute on function ${name} to sluice_worker`),
    // Of partitions, which the functions above make as the owner.
    `alter default privileges in schema ${schema} grant ${ALL} on tables to sluice_worker`,
    `comment on table installation is ${pg.escapeLiteral(mark)}`,
  ];
  await sql`${sql.raw(statements.join(';\n'))}`.execute(transaction);
  await grantQueues(transaction);
  return { outcome: 'granted', isChanged: true };
}

async function missingRoles(database: DatabaseOrTransaction): Promise<string[]> {
  const { rows } = await sql<{ role: string }>`
    select role from unnest(${[...DATABASE_ROLES]}::text[]) with ordinality as listed (role, place)
     where not exists (select from pg_roles where rolname = role) order by place`.execute(database);
  return rows.map(({ role }) => role);
}

/**
 * Changes with the grants of this version, with the migrations that were run, with the place of the queues, and with
 * Citus: nodes get rights with a grant.
 */
async function markOf(transaction: Transaction): Promise<string> {
  const { rows } = await sql<{ state: string }>`
    select concat_ws(' ', count(*), max(name), to_regnamespace(${QUEUE_SCHEMA})::oid,
                     (select extversion from pg_extension where extname = 'citus')) as state
      from kysely_migration`.execute(transaction);
  const text = JSON.stringify([GRANTS, WORKER_FUNCTIONS, rows[0]?.state]);
  return `grants ${createHash('sha256').update(text).digest('hex')}`;
}

async function listPartitions(
  transaction: Transaction,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const { rows } = await sql<{ parent: string; partitions: string[] }>`
    select inhparent::regclass::text as parent, array_agg(inhrelid::regclass::text) as partitions
      from pg_inherits join pg_class on pg_class.oid = inhparent
     where relkind = 'p' group by 1`.execute(transaction);
  return new Map(rows.map(({ parent, partitions }) => [parent, partitions]));
}

function grantsOf(
  role: DatabaseRole,
  schema: string,
  partitions: ReadonlyMap<string, readonly string[]>,
  coarse: ReadonlySet<string>,
): string[] {
  return [
    `revoke all on all tables in schema ${schema} from ${role}`,
    `grant usage on schema ${schema} to ${role}`,
    ...(role === 'sluice_intake'
      ? []
      : [`grant usage on all sequences in schema ${schema} to ${role}`]),
    ...Object.entries(GRANTS[role]).map(([table, granted]) => {
      const privileges = coarse.has(table) ? granted.replaceAll(/ \([^()]*\)/g, '') : granted;
      const tables = [table, ...(role === 'sluice_worker' ? (partitions.get(table) ?? []) : [])];
      return `grant ${privileges} on ${tables.join(', ')} to ${role}`;
    }),
  ];
}

async function grantQueues(transaction: Transaction): Promise<void> {
  const { rows } = await sql<{ isThere: boolean }>`
    select to_regnamespace(${QUEUE_SCHEMA}) is not null as "isThere"`.execute(transaction);
  if (rows[0]?.isThere !== true) return;
  const roles = DATABASE_ROLES.join(', ');
  await sql`${sql.raw(`
    grant usage on schema ${QUEUE_SCHEMA} to ${roles};
    grant ${ALL} on all tables in schema ${QUEUE_SCHEMA} to ${roles};
    grant usage on all sequences in schema ${QUEUE_SCHEMA} to ${roles};
    grant execute on all functions in schema ${QUEUE_SCHEMA} to ${roles}`)}`.execute(transaction);
}

/** A login user that is a member of one role. */
export interface ServiceLogin {
  readonly role: DatabaseRole;
  readonly name: string;
  readonly password: string;
}

/** Makes the logins, or gives them these passwords. For a server of our own, the embedded one. @throws AppError BUG */
export async function makeServiceLogins(
  database: Database,
  logins: readonly ServiceLogin[],
): Promise<void> {
  const { rows } = await sql<{ name: string }>`
    select rolname as name from pg_roles where rolname = any(${logins.map(({ name }) => name)}::text[])`.execute(
    database,
  );
  const existing = new Set(rows.map(({ name }) => name));
  const statements = logins.map(({ role, name, password }) => {
    if (!DATABASE_ROLES.includes(role)) throw new AppError('BUG', `no database role: ${role}`);
    const verb = existing.has(name) ? 'alter role' : 'create role';
    const user = pg.escapeIdentifier(name);
    return `${verb} ${user} login inherit password ${pg.escapeLiteral(password)}; grant ${role} to ${user}`;
  });
  await sql`${sql.raw(statements.join(';\n'))}`.execute(database);
}
