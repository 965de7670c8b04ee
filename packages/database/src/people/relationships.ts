/**
 * Relationships between people and objects. A transaction that changes one holds the person's identifier and the
 * object.
 */
import type { JsonObject } from '@sluice/domain/values/json';
import type {
  ObjectKey,
  PersonKey,
  RelationshipKey,
  RelationshipRow,
  RowChanges,
} from '@sluice/domain/state/loaded-state';
import { sql } from 'kysely';
import { bigintColumn, integerColumn, jsonColumn, timestampColumn } from '../connection/columns.ts';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { forTenantParts, inTenantParts, withReasons } from '../connection/tenant-statements.ts';

interface StoredRelationship {
  readonly environmentId: number;
  /** int8, in decimal digits, like the object's. */
  readonly personId: string;
  readonly objectNumber: string;
  readonly attributes: JsonObject;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/**
 * The relationships that these people have with these objects; with any object if `objects` is 'all'. By the primary
 * key.
 */
export async function listRelationshipsOf(
  database: DatabaseOrTransaction,
  people: readonly PersonKey[],
  objects: readonly ObjectKey[] | 'all',
): Promise<RelationshipRow[]> {
  if (people.length === 0 || objects.length === 0) return [];
  const isWanted =
    objects === 'all'
      ? sql`true`
      : // Numbers are never given twice, so one that a workspace holds is no other's. "+ 0" makes it a
        // hashed filter: in the index it would be a search for each object of each person.
        sql`r.object_number + 0 = any(${bigintColumn(objects, (object) => object.objectNumber)}::bigint[])`;
  const rows = await inTenantParts(database, [people], async (part) => {
    const own = part.only(people);
    const found = await sql<StoredRelationship>`
      select r.environment_id as "environmentId", r.person_id as "personId", r.object_number as "objectNumber",
             r.attributes, r.created_at as "createdAt", r.updated_at as "updatedAt"
      from unnest(
        ${integerColumn(own, (person) => person.environmentId)}::int[],
        ${bigintColumn(own, (person) => person.personId)}::bigint[]
      ) as p (environment_id, person_id)
      join relationships r using (environment_id, person_id)
      where ${isWanted} and ${part.isOf('r')}`.execute(database);
    return found.rows;
  });
  return rows.map(({ personId, objectNumber, createdAt, updatedAt, ...row }) => ({
    ...row,
    personId: Number(personId),
    objectNumber: Number(objectNumber),
    createdAtMs: createdAt.getTime(),
    updatedAtMs: updatedAt.getTime(),
  }));
}

/** Writes the changes of relationships. By the primary key. */
export async function writeRelationships(
  transaction: DatabaseOrTransaction,
  { inserted, updated, deleted }: RowChanges<RelationshipRow, RelationshipKey>,
): Promise<void> {
  if (deleted.length > 0) {
    await forTenantParts(transaction, [deleted], (part) => {
      const gone = part.only(deleted);
      return sql`
        delete from relationships r using unnest(
          ${integerColumn(gone, (row) => row.environmentId)}::int[],
          ${bigintColumn(gone, (row) => row.personId)}::bigint[],
          ${bigintColumn(gone, (row) => row.objectNumber)}::bigint[]
        ) as k (environment_id, person_id, object_number)
        where r.environment_id = k.environment_id and r.person_id = k.person_id
          and r.object_number = k.object_number and ${part.isOf('r')}`.execute(transaction);
    });
  }
  if (inserted.length > 0) {
    await sql`
      insert into relationships (environment_id, person_id, object_number, attributes, created_at, updated_at)
      select * from ${fullRows(inserted)} ${await withReasons(transaction)}`.execute(transaction);
  }
  if (updated.length > 0) {
    await forTenantParts(transaction, [updated], (part) =>
      sql`
        update relationships r set attributes = f.attributes, updated_at = f.updated_at
        from ${fullRows(part.only(updated))}
        where r.environment_id = f.environment_id and r.person_id = f.person_id
          and r.object_number = f.object_number and ${part.isOf('r')}`.execute(transaction),
    );
  }
}

const fullRows = (rows: readonly RelationshipRow[]) => sql`
  unnest(
    ${integerColumn(rows, (row) => row.environmentId)}::int[],
    ${bigintColumn(rows, (row) => row.personId)}::bigint[],
    ${bigintColumn(rows, (row) => row.objectNumber)}::bigint[],
    ${jsonColumn(rows, (row) => row.attributes)}::jsonb[],
    ${timestampColumn(rows, (row) => row.createdAtMs)}::timestamptz[],
    ${timestampColumn(rows, (row) => row.updatedAtMs)}::timestamptz[]
  ) as f (environment_id, person_id, object_number, attributes, created_at, updated_at)`;
