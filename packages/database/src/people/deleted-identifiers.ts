/**
 * Identifiers of people who were deleted or suppressed, for 30 days. Only late calls look at them, which waited in the
 * disk buffer of an intake or in the dead-letter table (`domain/src/state/replayed-calls.ts`).
 */
import type { DeletedIdentifier, IdentifierKey } from '@sluice/domain/state/loaded-state';
import { deletedKeysOf } from '@sluice/domain/state/replayed-calls';
import { sql } from 'kysely';
import { integerColumn, textColumn, timestampColumn } from '../connection/columns.ts';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { inTenantParts } from '../connection/tenant-statements.ts';

/** The given identifiers that a deleted person had. By the primary key. */
export async function listDeletedIdentifiers(
  database: DatabaseOrTransaction,
  identifiers: readonly IdentifierKey[],
): Promise<DeletedIdentifier[]> {
  if (identifiers.length === 0) return [];
  const keys = deletedKeysOf(identifiers);
  const rows = await inTenantParts(database, [keys], async (part) => {
    const own = part.only(keys);
    const found = await sql<Omit<DeletedIdentifier, 'deletedAtMs'> & { deletedAt: Date }>`
      select d.environment_id as "environmentId", d.kind, d.value, d.deleted_at as "deletedAt"
        from unnest(
          ${integerColumn(own, (key) => key.environmentId)}::int[],
          ${textColumn(own, (key) => key.kind)}::text[],
          ${textColumn(own, (key) => key.value)}::text[]
        ) as k (environment_id, kind, value)
        join deleted_identifiers d using (environment_id, kind, value)
       where ${part.isOf('d')}`.execute(database);
    return found.rows;
  });
  return rows.map(({ deletedAt, ...key }) => ({ ...key, deletedAtMs: deletedAt.getTime() }));
}

/** Remembers identifiers; of one that was deleted before, the later deletion. By the primary key. */
export async function rememberDeletedIdentifiers(
  transaction: DatabaseOrTransaction,
  deleted: readonly DeletedIdentifier[],
): Promise<void> {
  if (deleted.length === 0) return;
  await sql`
    insert into deleted_identifiers (environment_id, kind, value, deleted_at)
    select * from unnest(
      ${integerColumn(deleted, (row) => row.environmentId)}::int[],
      ${textColumn(deleted, (row) => row.kind)}::text[],
      ${textColumn(deleted, (row) => row.value)}::text[],
      ${timestampColumn(deleted, (row) => row.deletedAtMs)}::timestamptz[]
    ) as d (environment_id, kind, value, deleted_at)
    order by environment_id, kind collate "C", value collate "C"
    on conflict (environment_id, kind, value)
      do update set deleted_at = greatest(deleted_identifiers.deleted_at, excluded.deleted_at)`.execute(
    transaction,
  );
}

/**
 * Forgets the ones from before a time. By `deleted_identifiers_by_time`. @returns their number; `limit` means that
 * there may be more.
 */
export async function forgetDeletedIdentifiers(
  database: DatabaseOrTransaction,
  before: Date,
  limit: number,
): Promise<number> {
  const { numAffectedRows = 0n } = await sql`
    delete from deleted_identifiers where (environment_id, kind, value) in (
      select environment_id, kind, value from deleted_identifiers where deleted_at < ${before} limit ${limit}
    )`.execute(database);
  return Number(numAffectedRows);
}
