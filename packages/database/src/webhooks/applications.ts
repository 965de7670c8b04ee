/**
 * Applications: the customers of a workspace, each with endpoints of its own.
 *
 * Endpoints are webhooks. A published message that names an application is for its endpoints alone. Indexes, which all
 * begin with the workspace: the primary key of `applications`, and `webhooks_of_applications` for endpoints.
 */
import { sql } from 'kysely';
import { lockEnvironment } from '../accounts/environments.ts';
import { recordWorkspaceChange } from '../accounts/workspace-audit.ts';
import type { ChangeOrigin } from '../changes/record-change.ts';
import { transactOnce } from '../changes/transact-once.ts';
import type { Database, DatabaseOrTransaction, Transaction } from '../connection/connection.ts';
import { WEBHOOK_COLUMNS, type Webhook } from './webhooks.ts';

export interface Application {
  /** The workspace's own word for its customer. */
  readonly applicationId: string;
  readonly name: string;
  readonly createdAt: Date;
}

/** Of a workspace. Counted by an index alone, in 15 ms at the bound. */
export const APPLICATION_COUNT_MAX = 100_000;

const COLUMNS = sql`application_id as "applicationId", name, created_at as "createdAt"`;

/** Behind each text that begins with it, byte by byte: no text has this character. */
const AFTER_ALL = '\u{10FFFF}';

/**
 * By their ids.
 *
 * @param after - the last id that was seen.
 * @param prefix - beginning of their ids. Empty: all of them.
 */
export async function listApplications(
  database: DatabaseOrTransaction,
  environmentId: number,
  limit: number,
  after = '',
  prefix = '',
): Promise<Application[]> {
  const { rows } = await sql<Application>`
    select ${COLUMNS} from applications
     where environment_id = ${environmentId} and application_id > ${after}
       and application_id >= ${prefix} and application_id < ${prefix + AFTER_ALL}
     order by application_id limit ${limit}`.execute(database);
  return rows;
}

export async function findApplication(
  database: DatabaseOrTransaction,
  environmentId: number,
  applicationId: string,
): Promise<Application | undefined> {
  const { rows } = await sql<Application>`
    select ${COLUMNS} from applications
     where environment_id = ${environmentId} and application_id = ${applicationId}`.execute(
    database,
  );
  return rows[0];
}

/** Oldest first. @param after - the last id that was seen. */
export async function listEndpoints(
  database: DatabaseOrTransaction,
  environmentId: number,
  applicationId: string,
  limit: number,
  after = 0,
): Promise<Webhook[]> {
  const { rows } = await sql<Webhook>`
    select ${WEBHOOK_COLUMNS} from webhooks
     where environment_id = ${environmentId} and application_id = ${applicationId} and deleted_at is null
       and webhook_id > ${after}
     order by webhook_id limit ${limit}`.execute(database);
  return rows;
}

export type ApplicationOutcome =
  | { readonly outcome: 'made'; readonly application: Application }
  | { readonly outcome: 'no_workspace' }
  | { readonly outcome: 'too_many' }
  /** There is one with this id. */
  | { readonly outcome: 'taken' };

export async function makeApplication(
  database: Database,
  environmentId: number,
  { applicationId, name }: Pick<Application, 'applicationId' | 'name'>,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<ApplicationOutcome> {
  return transactOnce<ApplicationOutcome>(
    database,
    origin.call,
    ({ outcome }) => outcome === 'made',
    async (transaction) => {
      if ((await lockEnvironment(transaction, environmentId)) === undefined)
        return { outcome: 'no_workspace' };
      if (await findApplication(transaction, environmentId, applicationId))
        return { outcome: 'taken' };
      const { rows: counted } = await sql<{ count: number }>`
        select count(*)::int as count from applications where environment_id = ${environmentId}`.execute(
        transaction,
      );
      if ((counted[0]?.count ?? 0) >= APPLICATION_COUNT_MAX) return { outcome: 'too_many' };
      const { rows } = await sql<Application>`
        insert into applications (environment_id, application_id, name)
        values (${environmentId}, ${applicationId}, ${name}) returning ${COLUMNS}`.execute(
        transaction,
      );
      const application = rows[0] as Application;
      await record(transaction, environmentId, { before: null, after: application }, origin, nowMs);
      return { outcome: 'made', application };
    },
  );
}

/** Undefined if there is no such application. */
export async function renameApplication(
  database: Database,
  environmentId: number,
  { applicationId, name }: Pick<Application, 'applicationId' | 'name'>,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<Application | undefined> {
  return transactOnce(database, origin.call, isFound, async (transaction) => {
    const before = await lockApplication(transaction, environmentId, applicationId);
    if (!before) return undefined;
    await sql`
      update applications set name = ${name}
       where environment_id = ${environmentId} and application_id = ${applicationId}`.execute(
      transaction,
    );
    const after = { ...before, name };
    await record(transaction, environmentId, { before, after }, origin, nowMs);
    return after;
  });
}

/**
 * Deletes it with its endpoints and the links to the portal that open them. Undelivered events are not sent any more.
 * False if there is no such application. Endpoints are deleted and cleared like a webhook of `deleteWebhook`.
 */
export async function deleteApplication(
  database: Database,
  environmentId: number,
  applicationId: string,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<boolean> {
  return database.transaction().execute(async (transaction) => {
    // Making an endpoint takes the same lock, so no endpoint is made meanwhile.
    if ((await lockEnvironment(transaction, environmentId)) === undefined) return false;
    const before = await lockApplication(transaction, environmentId, applicationId);
    if (!before) return false;
    await sql`
      with gone as (
        update webhooks set deleted_at = now(), disabled = true
         where environment_id = ${environmentId} and application_id = ${applicationId} and deleted_at is null
        returning environment_id, webhook_id
      ), links as (
        update portal_links set ends_at = least(ends_at, now())
         where environment_id = ${environmentId} and application_id = ${applicationId}
      ), tokens as (
        delete from webhook_tokens using gone
         where webhook_tokens.environment_id = gone.environment_id and webhook_tokens.webhook_id = gone.webhook_id
      ), locked as (
        -- In the order of their key, as everywhere.
        select lanes.environment_id, lanes.webhook_id from lanes join gone using (environment_id, webhook_id)
         order by environment_id, webhook_id
           for update of lanes
      )
      delete from lanes using locked
       where lanes.environment_id = locked.environment_id and lanes.webhook_id = locked.webhook_id`.execute(
      transaction,
    );
    await sql`
      delete from applications
       where environment_id = ${environmentId} and application_id = ${applicationId}`.execute(
      transaction,
    );
    await record(transaction, environmentId, { before, after: null }, origin, nowMs);
    return true;
  });
}

async function lockApplication(
  transaction: Transaction,
  environmentId: number,
  applicationId: string,
): Promise<Application | undefined> {
  const { rows } = await sql<Application>`
    select ${COLUMNS} from applications
     where environment_id = ${environmentId} and application_id = ${applicationId}
       for update`.execute(transaction);
  return rows[0];
}

async function record(
  transaction: Transaction,
  environmentId: number,
  { before, after }: { before: Application | null; after: Application | null },
  origin: ChangeOrigin,
  nowMs: number,
): Promise<void> {
  const { applicationId = '', name: objectName = '' } = after ?? before ?? {};
  const audited = (each: Application | null) => each && { name: each.name };
  await recordWorkspaceChange(
    transaction,
    environmentId,
    origin,
    {
      objectType: 'application',
      objectId: applicationId,
      objectName,
      before: audited(before),
      after: audited(after),
    },
    nowMs,
  );
}

const isFound = (application: Application | undefined): boolean => application !== undefined;
