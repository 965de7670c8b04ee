/**
 * Event types of a workspace, for their owner and for intake. Changes: `event-type-changes.ts`.
 *
 * Index: the primary key of `event_types`, or `event_types_current`, both of which begin with the workspace.
 */
import { sql, type RawBuilder } from 'kysely';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';
import { isListedIn, type WebhookScope } from './webhook-scopes.ts';

export interface EventType {
  readonly name: string;
  /** From 1, one more with each change of the schema. */
  readonly version: number;
  readonly description: string;
  /** JSON. Null: any payload. */
  readonly schema: string | null;
  /** Of this version. */
  readonly madeAt: Date;
  /** Publishing refuses the type, in every version. */
  readonly isArchived: boolean;
}

const COLUMNS = sql`name, version, description, schema, made_at as "madeAt"`;

/** A type is archived as a whole: the row of its newest version counts for every version. */
const IS_ARCHIVED = sql`
  exists (select from event_types c
           where c.environment_id = event_types.environment_id and c.name = event_types.name and c.is_current
             and c.is_archived) as "isArchived"`;

/** A part of the types. Absent: all. */
export interface EventTypeReach {
  /** Only types that a webhook of the set names. */
  readonly namedBy?: WebhookScope | undefined;
}

/**
 * By their names, each in its newest version.
 *
 * @param after - the last name that was seen.
 * @param withArchived - false: those alone that can be published.
 */
export async function listEventTypes(
  database: DatabaseOrTransaction,
  environmentId: number,
  limit: number,
  {
    after = '',
    withArchived = false,
    namedBy,
  }: EventTypeReach & { after?: string | undefined; withArchived?: boolean } = {},
): Promise<EventType[]> {
  const { rows } = await sql<EventType>`
    select ${COLUMNS}, is_archived as "isArchived" from event_types
     where environment_id = ${environmentId} and is_current and name > ${after}
       and (not is_archived or ${withArchived}) and ${isNamedBy(environmentId, namedBy)}
     order by name limit ${limit}`.execute(database);
  return rows;
}

/** Also one that is archived. @param version - absent: the newest. */
export async function findEventType(
  database: DatabaseOrTransaction,
  environmentId: number,
  name: string,
  version?: number,
  { namedBy }: EventTypeReach = {},
): Promise<EventType | undefined> {
  const { rows } = await sql<EventType>`
    select ${COLUMNS}, ${IS_ARCHIVED} from event_types
     where environment_id = ${environmentId} and name = ${name} and ${isNamedBy(environmentId, namedBy)}
       and case when ${version ?? null}::int is null then is_current else version = ${version ?? null}::int end
     order by version desc limit 1`.execute(database);
  return rows[0];
}

/** By webhooks that get messages. They are found as in `isListedIn`. */
const isNamedBy = (environmentId: number, scope: WebhookScope | undefined): RawBuilder<boolean> =>
  scope
    ? sql<boolean>`name = any (array(
        select unnest(w.event_names) from webhooks w
         where w.environment_id = ${environmentId} and w.deleted_at is null and w.events && '{message,*}'::text[]
           and ${isListedIn(environmentId, scope)}))`
    : sql<boolean>`true`;

/** Intake reads it to find the workspaces whose types have changed since its last read. */
export interface EventTypeRevision {
  readonly environmentId: number;
  /** int8, in decimal digits. */
  readonly revision: string;
}

/** Of all tenants that have ever had an event type, one short row each. A sequential read by design, as `listWorkspaceKeys`. */
export async function listEventTypeRevisions(
  database: DatabaseOrTransaction,
): Promise<EventTypeRevision[]> {
  const { rows } = await sql<EventTypeRevision>`${PREPARED}
    select environment_id as "environmentId", revision from event_type_sets`.execute(database);
  return rows;
}

export interface SchemaInForce {
  readonly environmentId: number;
  readonly name: string;
  readonly version: number;
  /** JSON. Null: an archived type, which may have no schema. */
  readonly schema: string | null;
  readonly isArchived: boolean;
}

/** Rules for publishing, of workspaces: types with a schema, and archived ones. By `event_types_current`. */
export async function listSchemasInForce(
  database: DatabaseOrTransaction,
  environmentIds: readonly number[],
): Promise<SchemaInForce[]> {
  if (environmentIds.length === 0) return [];
  const { rows } = await sql<SchemaInForce>`${PREPARED}
    select environment_id as "environmentId", name, version, schema, is_archived as "isArchived"
      from event_types
     where environment_id = any (${environmentIds}::int[]) and is_current
       and (schema is not null or is_archived)`.execute(database);
  return rows;
}
