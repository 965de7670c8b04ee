/**
 * The use cases that make, change, archive and delete an event type.
 *
 * Each writes in one transaction its rows, the revision of the workspace's types, by which intake notices the change,
 * and the audit entry. The workspace's row is locked first, so that two changes of its types come after each other.
 *
 * Index: as `event-types.ts`, and the primary key of `event_type_sets`.
 */
import { canonicalJson } from '@sluice/domain/values/json';
import { sql } from 'kysely';
import { lockEnvironment } from '../accounts/environments.ts';
import { recordWorkspaceChange } from '../accounts/workspace-audit.ts';
import type { ChangeOrigin } from '../changes/record-change.ts';
import { transactOnce } from '../changes/transact-once.ts';
import type { Database, Transaction } from '../connection/connection.ts';
import { findEventType, type EventType } from './event-types.ts';

/** A workspace's catalogue, not its data. */
export const EVENT_TYPE_COUNT_MAX = 1_000;
/** Of the schemas in force of one workspace, which each intake keeps in memory. */
export const EVENT_TYPE_SCHEMAS_LENGTH_MAX = 262_144;
/** Older ones are forgotten. */
const EVENT_TYPE_VERSION_COUNT_MAX = 100;

export interface EventTypeSettings {
  readonly description: string;
  /** JSON. Null: any payload. */
  readonly schema: string | null;
}

export type EventTypeOutcome =
  | { readonly outcome: 'put'; readonly eventType: EventType }
  | { readonly outcome: 'no_workspace' }
  | { readonly outcome: 'too_many' }
  /** The workspace's schemas would be too large together. */
  | { readonly outcome: 'too_large' };

/** Makes the type, or changes it: another schema is another version, and another description is not. An archived type is brought back. */
export async function putEventType(
  database: Database,
  environmentId: number,
  name: string,
  { description, schema }: EventTypeSettings,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<EventTypeOutcome> {
  return transactOnce<EventTypeOutcome>(
    database,
    origin.call,
    ({ outcome }) => outcome === 'put',
    async (transaction) => {
      if ((await lockEnvironment(transaction, environmentId)) === undefined)
        return { outcome: 'no_workspace' };
      const before = await findEventType(transaction, environmentId, name);
      const isSameSchema = before !== undefined && isSame(before.schema, schema);
      if (before && !before.isArchived && isSameSchema && before.description === description)
        return { outcome: 'put', eventType: before };
      const room = await measure(transaction, environmentId, name);
      if (!before && room.count >= EVENT_TYPE_COUNT_MAX) return { outcome: 'too_many' };
      if (room.schemasLength + (schema?.length ?? 0) > EVENT_TYPE_SCHEMAS_LENGTH_MAX)
        return { outcome: 'too_large' };
      const eventType = isSameSchema
        ? await describeAnew(transaction, environmentId, name, description)
        : await putVersion(transaction, environmentId, name, { description, schema });
      await noteChange(transaction, environmentId);
      await recordWorkspaceChange(
        transaction,
        environmentId,
        origin,
        { ...nameOf(name), before: before ? audited(before) : null, after: audited(eventType) },
        nowMs,
      );
      return { outcome: 'put', eventType };
    },
  );
}

/** Publishing refuses it from then on; its versions stay. Twice is once. @returns false if there is no such type. */
export const archiveEventType = (
  database: Database,
  environmentId: number,
  name: string,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<boolean> =>
  changeKnown(database, environmentId, name, origin, nowMs, async (transaction, before) => {
    if (before.isArchived) return undefined;
    await sql`
      update event_types set is_archived = true
       where environment_id = ${environmentId} and name = ${name} and is_current`.execute(
      transaction,
    );
    return { ...before, isArchived: true };
  });

/** With all its versions, archived or not. @returns false if there is no such type. */
export const deleteEventType = (
  database: Database,
  environmentId: number,
  name: string,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<boolean> =>
  changeKnown(database, environmentId, name, origin, nowMs, async (transaction) => {
    await sql`
      delete from event_types where environment_id = ${environmentId} and name = ${name}`.execute(
      transaction,
    );
    return null;
  });

/**
 * Changes a type that is there, with its entry of the audit log.
 *
 * @param change - returns the type after it, null after a deletion, `undefined` if the type is that way already.
 * @returns false if the workspace has no such type.
 */
async function changeKnown(
  database: Database,
  environmentId: number,
  name: string,
  origin: ChangeOrigin,
  nowMs: number,
  change: (transaction: Transaction, before: EventType) => Promise<EventType | null | undefined>,
): Promise<boolean> {
  return database.transaction().execute(async (transaction) => {
    if ((await lockEnvironment(transaction, environmentId)) === undefined) return false;
    const before = await findEventType(transaction, environmentId, name);
    if (!before) return false;
    const after = await change(transaction, before);
    if (after === undefined) return true;
    await noteChange(transaction, environmentId);
    await recordWorkspaceChange(
      transaction,
      environmentId,
      origin,
      { ...nameOf(name), before: audited(before), after: after && audited(after) },
      nowMs,
    );
    return true;
  });
}

/** How many types the workspace has, and how long the schemas of all but one are together. */
async function measure(
  transaction: Transaction,
  environmentId: number,
  except: string,
): Promise<{ readonly count: number; readonly schemasLength: number }> {
  const { rows } = await sql<{ count: number; schemasLength: number }>`
    select count(*)::int as count,
           coalesce(sum(length(schema)) filter (where name <> ${except}), 0)::int as "schemasLength"
      from event_types where environment_id = ${environmentId} and is_current`.execute(transaction);
  return rows[0] ?? { count: 0, schemasLength: 0 };
}

async function describeAnew(
  transaction: Transaction,
  environmentId: number,
  name: string,
  description: string,
): Promise<EventType> {
  await sql`
    update event_types set description = ${description}, is_archived = false
     where environment_id = ${environmentId} and name = ${name} and is_current`.execute(
    transaction,
  );
  return (await findEventType(transaction, environmentId, name)) as EventType;
}

/** Two statements: the index of current ones allows one at a time. */
async function putVersion(
  transaction: Transaction,
  environmentId: number,
  name: string,
  { description, schema }: EventTypeSettings,
): Promise<EventType> {
  await sql`
    update event_types set is_current = false, is_archived = false
     where environment_id = ${environmentId} and name = ${name} and is_current`.execute(
    transaction,
  );
  await sql`
    with made as (
      insert into event_types (environment_id, name, version, description, schema, is_current)
      select ${environmentId}, ${name}, coalesce(max(version), 0) + 1, ${description}, ${schema}, true
        from event_types where environment_id = ${environmentId} and name = ${name}
      returning version)
    delete from event_types using made
     where environment_id = ${environmentId} and name = ${name}
       and event_types.version <= made.version - ${EVENT_TYPE_VERSION_COUNT_MAX}`.execute(
    transaction,
  );
  return (await findEventType(transaction, environmentId, name)) as EventType;
}

async function noteChange(transaction: Transaction, environmentId: number): Promise<void> {
  await sql`
    insert into event_type_sets (environment_id, revision) values (${environmentId}, 1)
    on conflict (environment_id) do update set revision = event_type_sets.revision + 1`.execute(
    transaction,
  );
}

const isSame = (before: string | null, after: string | null): boolean =>
  before === after ||
  (before !== null &&
    after !== null &&
    canonicalJson(JSON.parse(before)) === canonicalJson(JSON.parse(after)));

const nameOf = (name: string) =>
  ({ objectType: 'event_type', objectId: name, objectName: name }) as const;

const audited = ({ description, version, schema, isArchived }: EventType) => ({
  description,
  version,
  schema,
  archived: isArchived,
});
