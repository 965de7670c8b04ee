/**
 * Reads of objects for the app API: the types in use, the objects that a filter matches, one object and the people
 * related to it. Every list is a range of an index, and a filter reads a bounded number of rows for any number of
 * matches.
 */
import type { JsonObject } from '@sluice/domain/values/json';
import { sql, type RawBuilder } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

/**
 * The types of a workspace's objects, in order. By the unique key (environment_id, object_type_id, object_id), with one
 * probe for each type: each step asks for the next type.
 */
export async function listObjectTypes(
  database: DatabaseOrTransaction,
  page: {
    readonly environmentId: number;
    /** Types after this one. */
    readonly after: number | undefined;
    readonly limit: number;
  },
): Promise<number[]> {
  const next = (after: RawBuilder<unknown>) => sql`
    (select o.object_type_id from objects o
     where o.environment_id = ${page.environmentId} and o.object_type_id > ${after}
     order by o.object_type_id limit 1)`;
  const { rows } = await sql<{ objectTypeId: number }>`
    with recursive types (object_type_id) as (
      select ${next(sql`${page.after ?? 0}::int`)}
      union all
      select ${next(sql`t.object_type_id`)} from types t where t.object_type_id is not null
    )
    select object_type_id as "objectTypeId" from types
    where object_type_id is not null
    limit ${page.limit}`.execute(database);
  return rows.map(({ objectTypeId }) => objectTypeId);
}

/** Conditions on attributes, and on `object_id` as if it were one. `equals` compares texts: `1` is 1 and `true` is true. */
export type ObjectFilter =
  | { readonly kind: 'and' | 'or'; readonly filters: readonly ObjectFilter[] }
  | { readonly kind: 'not'; readonly filter: ObjectFilter }
  | { readonly kind: 'exists'; readonly field: string }
  | { readonly kind: 'equals'; readonly field: string; readonly value: string };

export interface ObjectIdentifiersRow {
  /** int8, in decimal digits. */
  readonly objectNumber: string;
  readonly objectId: string;
}

export interface ObjectMatches {
  readonly objects: ObjectIdentifiersRow[];
  /** The object id that the search came to; undefined if there are no more. */
  readonly nextAfter: string | undefined;
}

/**
 * Objects of one type that a filter matches, in the order of their ids. By the unique key, from the position on, at
 * most `scanLimit` rows: for a filter that matches rarely this takes several pages, which may be empty, and never a
 * long statement.
 */
export async function findObjects(
  database: DatabaseOrTransaction,
  page: {
    readonly environmentId: number;
    readonly objectTypeId: number;
    readonly filter: ObjectFilter;
    /** Objects after this object id. */
    readonly after: string | undefined;
    readonly limit: number;
    readonly scanLimit: number;
  },
): Promise<ObjectMatches> {
  const { environmentId, objectTypeId, filter, after, limit, scanLimit } = page;
  const { rows } = await sql<ObjectIdentifiersRow & { isMatch: boolean }>`
    with scanned as materialized (
      select o.object_number, o.object_id, ${conditionOf(filter)} as is_match,
             row_number() over (order by o.object_id) as place
      from (
        select object_number, object_id, attributes from objects
        where environment_id = ${environmentId} and object_type_id = ${objectTypeId}
          ${after === undefined ? sql`` : sql`and object_id > ${after}`}
        order by object_id
        limit ${scanLimit}
      ) o
    ),
    -- One more than is shown: its presence says that there is another page.
    matches as (select * from scanned where is_match order by object_id limit ${limit + 1})
    select object_number as "objectNumber", object_id as "objectId", true as "isMatch" from matches
    union all
    select object_number, object_id, false from scanned
    where place = ${scanLimit} and (select count(*) from matches) <= ${limit}
    order by "isMatch" desc, "objectId"`.execute(database);
  const matches = rows.filter(({ isMatch }) => isMatch);
  const scanEnd = rows.find(({ isMatch }) => !isMatch);
  const objects = matches
    .slice(0, limit)
    .map(({ objectNumber, objectId }) => ({ objectNumber, objectId }));
  const nextAfter = matches.length > limit ? objects.at(-1)?.objectId : scanEnd?.objectId;
  return { objects, nextAfter };
}

/** `attributes` are the attributes of `o`. */
function conditionOf(filter: ObjectFilter): RawBuilder<unknown> {
  switch (filter.kind) {
    case 'and':
    case 'or': {
      const parts = filter.filters.map(conditionOf);
      return sql`(${sql.join(parts, filter.kind === 'and' ? sql` and ` : sql` or `)})`;
    }
    case 'not':
      return sql`(not ${conditionOf(filter.filter)})`;
    case 'exists':
      return sql`(${textOf(filter.field)} is not null)`;
    case 'equals':
      return sql`(${textOf(filter.field)} is not distinct from ${filter.value}::text)`;
  }
}

const textOf = (field: string): RawBuilder<unknown> =>
  field === 'object_id' ? sql`o.object_id` : sql`o.attributes ->> ${field}::text`;

/** `value`: the object id as its owner wrote it, or the object number in decimal digits. */
export interface ObjectName {
  readonly environmentId: number;
  readonly objectTypeId: number;
  readonly kind: 'object_id' | 'object_number';
  readonly value: string;
}

export interface ObjectProfile {
  /** int8, in decimal digits. */
  readonly objectNumber: string;
  readonly objectTypeId: number;
  readonly objectId: string;
  readonly attributes: JsonObject;
  readonly createdAt: Date;
}

/** By the unique key, or the primary key; one row. */
export async function findObjectProfile(
  database: DatabaseOrTransaction,
  { environmentId, objectTypeId, kind, value }: ObjectName,
): Promise<ObjectProfile | undefined> {
  const { rows } = await sql<ObjectProfile>`
    select object_number as "objectNumber", object_type_id as "objectTypeId", object_id as "objectId",
           attributes, created_at as "createdAt"
    from objects
    where environment_id = ${environmentId} and object_type_id = ${objectTypeId}
      and ${kind === 'object_id' ? sql`object_id = ${value}` : sql`object_number = ${value}::bigint`}`.execute(
    database,
  );
  return rows[0];
}

export interface ObjectRelationshipRow {
  /** int8, in decimal digits; also the position in the list. */
  readonly personId: string;
  readonly id: string | null;
  readonly email: string | null;
  readonly attributes: JsonObject;
  readonly createdAt: Date;
}

/**
 * The people related to an object, in the order in which they were first seen. Index: `relationships_by_object
 * (environment_id, object_number, person_id)` as a range, the primary key of `people` for each row. The page is cut
 * before people are joined to it: otherwise Postgres may walk everybody before the position. Deleting a person deletes
 * these with it.
 */
export async function listObjectRelationships(
  database: DatabaseOrTransaction,
  page: {
    readonly environmentId: number;
    readonly objectNumber: string;
    /** Rows after this person. */
    readonly after: string | undefined;
    readonly limit: number;
  },
): Promise<ObjectRelationshipRow[]> {
  const { rows } = await sql<ObjectRelationshipRow>`
    with page as materialized (
      select person_id, attributes, created_at from relationships
      where environment_id = ${page.environmentId} and object_number = ${page.objectNumber}::bigint
        and person_id > ${page.after ?? '0'}::bigint
      order by person_id
      limit ${page.limit}
    )
    select r.person_id as "personId", p.id, p.email, r.attributes, r.created_at as "createdAt"
    from page r
    join people p on p.environment_id = ${page.environmentId} and p.person_id = r.person_id
    order by r.person_id`.execute(database);
  return rows;
}
