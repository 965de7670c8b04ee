/** Devices of people. A transaction that changes one holds its person. */
import type { JsonObject } from '@sluice/domain/values/json';
import type {
  DeviceKey,
  DeviceRow,
  PersonKey,
  RowChanges,
} from '@sluice/domain/state/loaded-state';
import { sql } from 'kysely';
import {
  bigintColumn,
  integerColumn,
  jsonColumn,
  textColumn,
  timestampColumn,
} from '../connection/columns.ts';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';
import { forTenantParts, inTenantParts, withReasons } from '../connection/tenant-statements.ts';

interface StoredDevice {
  readonly environmentId: number;
  /** int8, in decimal digits. */
  readonly personId: string;
  readonly token: string;
  readonly platform: string;
  readonly lastUsedAt: Date | null;
  readonly attributes: JsonObject;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

/**
 * Devices of these people, of these tokens or all. By the primary key.
 *
 * A person may have any number of devices, and each added one asks, so only the wanted ones are read. Of 50,000
 * devices reading one takes 13 ms, reading all 240, and the shard stands still that long.
 */
export async function listDevicesOf(
  database: DatabaseOrTransaction,
  people: readonly PersonKey[],
  tokens: readonly string[] | 'all',
): Promise<DeviceRow[]> {
  if (people.length === 0 || tokens.length === 0) return [];
  const isWanted =
    tokens === 'all'
      ? sql`true`
      : // A hashed filter, as in `relationships.ts`: in the index each token would be looked for, for each person.
        sql`d.token || '' = any(${textColumn(tokens, (token) => token)}::text[])`;
  const rows = await inTenantParts(database, [people], async (part) => {
    const own = part.only(people);
    const found = await sql<StoredDevice>`${PREPARED}
      select d.environment_id as "environmentId", d.person_id as "personId", d.token, d.platform,
             d.last_used_at as "lastUsedAt", d.attributes, d.created_at as "createdAt", d.updated_at as "updatedAt"
      from unnest(
        ${integerColumn(own, (person) => person.environmentId)}::int[],
        ${bigintColumn(own, (person) => person.personId)}::bigint[]
      ) as p (environment_id, person_id)
      join devices d using (environment_id, person_id)
      where ${isWanted} and ${part.isOf('d')}`.execute(database);
    return found.rows;
  });
  return rows.map(({ personId, lastUsedAt, createdAt, updatedAt, ...row }) => ({
    ...row,
    personId: Number(personId),
    lastUsedAtMs: lastUsedAt?.getTime() ?? null,
    createdAtMs: createdAt.getTime(),
    updatedAtMs: updatedAt.getTime(),
  }));
}

/** Writes the changes of devices. By the primary key. */
export async function writeDevices(
  transaction: DatabaseOrTransaction,
  { inserted, updated, deleted }: RowChanges<DeviceRow, DeviceKey>,
): Promise<void> {
  if (deleted.length > 0) {
    await forTenantParts(transaction, [deleted], (part) => {
      const gone = part.only(deleted);
      return sql`
        delete from devices d using unnest(
          ${integerColumn(gone, (row) => row.environmentId)}::int[],
          ${bigintColumn(gone, (row) => row.personId)}::bigint[],
          ${textColumn(gone, (row) => row.token)}::text[]
        ) as k (environment_id, person_id, token)
        where d.environment_id = k.environment_id and d.person_id = k.person_id and d.token = k.token
          and ${part.isOf('d')}`.execute(transaction);
    });
  }
  if (inserted.length > 0) {
    await sql`${PREPARED}
      insert into devices (environment_id, person_id, token, platform, last_used_at, attributes, created_at, updated_at)
      select * from ${fullRows(inserted)} ${await withReasons(transaction)}`.execute(transaction);
  }
  if (updated.length > 0) {
    await forTenantParts(transaction, [updated], (part) =>
      sql`${PREPARED}
        update devices d
        set platform = f.platform, last_used_at = f.last_used_at, attributes = f.attributes, updated_at = f.updated_at
        from ${fullRows(part.only(updated))}
        where d.environment_id = f.environment_id and d.person_id = f.person_id and d.token = f.token
          and ${part.isOf('d')}`.execute(transaction),
    );
  }
}

const fullRows = (rows: readonly DeviceRow[]) => sql`
  unnest(
    ${integerColumn(rows, (row) => row.environmentId)}::int[],
    ${bigintColumn(rows, (row) => row.personId)}::bigint[],
    ${textColumn(rows, (row) => row.token)}::text[],
    ${textColumn(rows, (row) => row.platform)}::text[],
    ${timestampColumn(rows, (row) => row.lastUsedAtMs)}::timestamptz[],
    ${jsonColumn(rows, (row) => row.attributes)}::jsonb[],
    ${timestampColumn(rows, (row) => row.createdAtMs)}::timestamptz[],
    ${timestampColumn(rows, (row) => row.updatedAtMs)}::timestamptz[]
  ) as f (environment_id, person_id, token, platform, last_used_at, attributes, created_at, updated_at)`;
