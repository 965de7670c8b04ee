/** Messages that something was reported about: their channel, recipient and the person behind them. */
import type {
  MessageDeliveryKey,
  MessageDeliveryRow,
  RowChanges,
} from '@sluice/domain/state/loaded-state';
import { sql } from 'kysely';
import { bigintColumn, integerColumn, textColumn, timestampColumn } from '../connection/columns.ts';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';
import { forTenantParts, inTenantParts, withReasons } from '../connection/tenant-statements.ts';

interface StoredMessageDelivery {
  readonly environmentId: number;
  readonly deliveryId: string;
  readonly channel: string;
  readonly recipient: string | null;
  /** int8, in decimal digits. */
  readonly personId: string | null;
  readonly createdAt: Date;
}

/** The known ones of the given messages. Not locked: two reports of one message agree. By the primary key. */
export async function listMessageDeliveries(
  database: DatabaseOrTransaction,
  keys: readonly MessageDeliveryKey[],
): Promise<MessageDeliveryRow[]> {
  if (keys.length === 0) return [];
  const rows = await inTenantParts(database, [keys], async (part) => {
    const own = part.only(keys);
    const found = await sql<StoredMessageDelivery>`${PREPARED}
      select m.environment_id as "environmentId", m.delivery_id as "deliveryId", m.channel, m.recipient,
             m.person_id as "personId", m.created_at as "createdAt"
      from unnest(
        ${integerColumn(own, (key) => key.environmentId)}::int[],
        ${textColumn(own, (key) => key.deliveryId)}::text[]
      ) as k (environment_id, delivery_id)
      join message_deliveries m using (environment_id, delivery_id)
      where ${part.isOf('m')}`.execute(database);
    return found.rows;
  });
  return rows.map(({ personId, createdAt, ...row }) => ({
    ...row,
    personId: personId === null ? null : Number(personId),
    createdAtMs: createdAt.getTime(),
  }));
}

/**
 * The workspaces that know a delivery, at most `limit` of them. The one statement that names no workspace, because its
 * caller has no credentials that identify one; it only returns their numbers. Index: `message_deliveries_by_delivery`,
 * at most `limit` entries read.
 */
export async function listWorkspacesOfDelivery(
  database: DatabaseOrTransaction,
  deliveryId: string,
  limit: number,
): Promise<number[]> {
  const { rows } = await sql<{ environmentId: number }>`
    select environment_id as "environmentId" from message_deliveries
    where delivery_id = ${deliveryId}
    order by environment_id
    limit ${limit}`.execute(database);
  return rows.map(({ environmentId }) => environmentId);
}

/** Whether a workspace knows a delivery. By the primary key. */
export async function hasDelivery(
  database: DatabaseOrTransaction,
  environmentId: number,
  deliveryId: string,
): Promise<boolean> {
  const { rows } = await sql`
    select 1 from message_deliveries
    where environment_id = ${environmentId} and delivery_id = ${deliveryId}`.execute(database);
  return rows.length > 0;
}

/** Writes new facts about message deliveries. By the primary key. */
export async function writeMessageDeliveries(
  transaction: DatabaseOrTransaction,
  { inserted, updated }: RowChanges<MessageDeliveryRow, MessageDeliveryRow>,
): Promise<void> {
  if (inserted.length > 0) {
    await sql`${PREPARED}
      insert into message_deliveries (environment_id, delivery_id, channel, recipient, person_id, created_at)
      select * from ${fullRows(inserted)} order by environment_id, delivery_id collate "C"
      ${await withReasons(transaction)}`.execute(transaction);
  }
  if (updated.length > 0) {
    await forTenantParts(transaction, [updated], (part) =>
      sql`
        update message_deliveries m set channel = f.channel, recipient = f.recipient, person_id = f.person_id
        from ${fullRows(part.only(updated))}
        where m.environment_id = f.environment_id and m.delivery_id = f.delivery_id and ${part.isOf('m')}`.execute(
        transaction,
      ),
    );
  }
}

const fullRows = (rows: readonly MessageDeliveryRow[]) => sql`
  unnest(
    ${integerColumn(rows, (row) => row.environmentId)}::int[],
    ${textColumn(rows, (row) => row.deliveryId)}::text[],
    ${textColumn(rows, (row) => row.channel)}::text[],
    ${textColumn(rows, (row) => row.recipient)}::text[],
    ${bigintColumn(rows, (row) => row.personId)}::bigint[],
    ${timestampColumn(rows, (row) => row.createdAtMs)}::timestamptz[]
  ) as f (environment_id, delivery_id, channel, recipient, person_id, created_at)`;
