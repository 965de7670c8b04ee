/** Objects. They are locked after people, in order of their number, and deleted with their relationships. */
import type { JsonObject } from '@sluice/domain/values/json';
import type { ObjectKey, ObjectRow, RowChanges } from '@sluice/domain/state/loaded-state';
import type { NamedObjects, ObjectName } from '@sluice/domain/state/state-needs';
import { objectKey } from '@sluice/domain/operations/shard';
import { svcObjectId } from '@sluice/domain/values/svc-id';
import { sql } from 'kysely';
import {
  bigintColumn,
  integerColumn,
  jsonColumn,
  textColumn,
  timestampColumn,
} from '../connection/columns.ts';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import {
  forTenantParts,
  inTenantParts,
  withReasons,
  type TenantPart,
} from '../connection/tenant-statements.ts';
import type { OwnedName } from './person-names.ts';

interface StoredObject {
  readonly environmentId: number;
  /** int8, in decimal digits. */
  readonly objectNumber: string;
  readonly objectTypeId: number;
  readonly objectId: string;
  readonly attributes: JsonObject;
  readonly attributesAt: Date | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/** Locks the objects that exist of those named, by type and id or by number. By the unique and the primary key. */
export async function lockObjects(
  transaction: DatabaseOrTransaction,
  names: readonly ObjectName[],
  keys: readonly ObjectKey[],
): Promise<ObjectRow[]> {
  if (names.length === 0 && keys.length === 0) return [];
  const rows = await inTenantParts(transaction, [names, keys], async (part) => {
    const found = await sql<StoredObject>`
      with wanted as (
        select o.environment_id, o.object_number
        from ${nameRows(part.only(names))} join objects o using (environment_id, object_type_id, object_id)
        where ${part.isOf('o')}
        union
        select * from ${keyRows(part.only(keys))}
      )
      select o.environment_id as "environmentId", o.object_number as "objectNumber", o.object_type_id as "objectTypeId",
             o.object_id as "objectId", o.attributes, o.attributes_at as "attributesAt",
             o.created_at as "createdAt", o.updated_at as "updatedAt"
      from wanted join objects o using (environment_id, object_number)
      where ${part.isOf('o')}
      order by o.environment_id, o.object_number
      for update of o`.execute(transaction);
    return found.rows;
  });
  return rows.map(({ objectNumber, attributesAt, createdAt, updatedAt, ...row }) => ({
    ...row,
    objectNumber: Number(objectNumber),
    attributesAtMs: attributesAt?.getTime() ?? null,
    createdAtMs: createdAt.getTime(),
    updatedAtMs: updatedAt.getTime(),
  }));
}

/** An object as a query finds it. */
export interface FoundObject extends ObjectName {
  /** int8, in decimal digits. */
  readonly objectNumber: string;
}

/** The two names of an object: type and id, and the svc object id. */
export const namesOfObject = ({
  environmentId,
  objectNumber,
  objectTypeId,
  objectId,
}: FoundObject): OwnedName[] => [
  { environmentId, key: objectKey({ objectTypeId, objectId }) },
  { environmentId, key: objectKey({ svcObjectId: svcObjectId(Number(objectNumber)) }) },
];

/**
 * Lists both names of the objects that operations name by either. They show whether two calls are about one object. By
 * the unique and the primary key.
 */
export async function listNamesOfObjects(
  database: DatabaseOrTransaction,
  named: NamedObjects,
): Promise<OwnedName[]> {
  const { objectNames, objects } = named;
  if (objectNames.length === 0 && objects.length === 0) return [];
  const found = await inTenantParts(database, [objectNames, objects], async (part) => {
    const { rows } = await foundObjects(part, named).execute(database);
    return rows;
  });
  return found.flatMap(namesOfObject);
}

/** Selects the existing objects that operations name by either name. By the unique and the primary key. */
export const foundObjects = (
  part: TenantPart,
  { objectNames, objects }: NamedObjects,
) => sql<FoundObject>`
  select o.environment_id as "environmentId", o.object_number as "objectNumber",
         o.object_type_id as "objectTypeId", o.object_id as "objectId"
    from ${nameRows(part.only(objectNames))} join objects o using (environment_id, object_type_id, object_id)
   where ${part.isOf('o')}
  union
  select o.environment_id, o.object_number, o.object_type_id, o.object_id
    from ${keyRows(part.only(objects))} join objects o using (environment_id, object_number)
   where ${part.isOf('o')}`;

/** Writes the changes of locked and new objects. By the primary key and `relationships_by_object`. */
export async function writeObjects(
  transaction: DatabaseOrTransaction,
  { inserted, updated, deleted }: RowChanges<ObjectRow, ObjectKey>,
): Promise<void> {
  if (deleted.length > 0) {
    await forTenantParts(transaction, [deleted], (part) => {
      // Each has the keys: Citus would send a list that they share to every node, also to one that is away.
      const gone = keyRows(part.only(deleted));
      return sql`
        with deleted_relationships as (
          delete from relationships r using ${gone}
          where r.environment_id = k.environment_id and r.object_number = k.object_number and ${part.isOf('r')})
        delete from objects o using ${gone}
        where o.environment_id = k.environment_id and o.object_number = k.object_number and ${part.isOf('o')}`.execute(
        transaction,
      );
    });
  }
  if (inserted.length > 0) {
    await sql`
      insert into objects (environment_id, object_number, object_type_id, object_id, attributes, attributes_at, created_at, updated_at)
      select * from ${fullRows(inserted)} order by environment_id, object_type_id, object_id collate "C"
      ${await withReasons(transaction)}`.execute(transaction);
  }
  if (updated.length > 0) {
    await forTenantParts(transaction, [updated], (part) =>
      sql`
        update objects o set attributes = f.attributes, attributes_at = f.attributes_at, updated_at = f.updated_at
        from ${fullRows(part.only(updated))}
        where o.environment_id = f.environment_id and o.object_number = f.object_number and ${part.isOf('o')}`.execute(
        transaction,
      ),
    );
  }
}

const nameRows = (names: readonly ObjectName[]) => sql`
  unnest(
    ${integerColumn(names, (name) => name.environmentId)}::int[],
    ${integerColumn(names, (name) => name.objectTypeId)}::int[],
    ${textColumn(names, (name) => name.objectId)}::text[]
  ) as n (environment_id, object_type_id, object_id)`;

const keyRows = (keys: readonly ObjectKey[]) => sql`
  unnest(
    ${integerColumn(keys, (key) => key.environmentId)}::int[],
    ${bigintColumn(keys, (key) => key.objectNumber)}::bigint[]
  ) as k (environment_id, object_number)`;

const fullRows = (objects: readonly ObjectRow[]) => sql`
  unnest(
    ${integerColumn(objects, (object) => object.environmentId)}::int[],
    ${bigintColumn(objects, (object) => object.objectNumber)}::bigint[],
    ${integerColumn(objects, (object) => object.objectTypeId)}::int[],
    ${textColumn(objects, (object) => object.objectId)}::text[],
    ${jsonColumn(objects, (object) => object.attributes)}::jsonb[],
    ${timestampColumn(objects, (object) => object.attributesAtMs)}::timestamptz[],
    ${timestampColumn(objects, (object) => object.createdAtMs)}::timestamptz[],
    ${timestampColumn(objects, (object) => object.updatedAtMs)}::timestamptz[]
  ) as f (environment_id, object_number, object_type_id, object_id, attributes, attributes_at, created_at, updated_at)`;
