/**
 * Credits as they are read: balances and the ledger. One range a read, of the primary keys, which begin
 * with the account and the kind. Write side: `credits.ts`.
 */
import type { CreditKind } from '@sluice/domain/billing/catalogue';
import type { Grant, Place, Pool } from '@sluice/domain/billing/credit-ledger';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

/** A grant as Postgres gives it. */
export interface GrantRow {
  readonly grantId: number;
  readonly pool: Pool;
  readonly granted: string;
  readonly available: string;
  readonly held: string;
  readonly used: string;
  readonly expired: string;
  readonly expiresAt: Date | null;
}

/** The columns of a {@link GrantRow}. */
export const GRANT = sql`
  grant_id as "grantId", pool, granted, available, held, used, expired, expires_at as "expiresAt"`;

/** int8 comes as text. */
export const toGrant = ({ expiresAt, ...row }: GrantRow): Grant => ({
  grantId: row.grantId,
  pool: row.pool,
  granted: Number(row.granted),
  available: Number(row.available),
  held: Number(row.held),
  used: Number(row.used),
  expired: Number(row.expired),
  expiresAtMs: expiresAt === null ? null : expiresAt.getTime(),
});

/** Every kind of the account that has grants. */
export async function listBalances(
  database: DatabaseOrTransaction,
  accountId: number,
  kinds: readonly CreditKind[],
): Promise<Map<CreditKind, Grant[]>> {
  const { rows } = await sql<GrantRow & { kind: CreditKind }>`
    select ${GRANT}, kind from credit_grants
     where account_id = ${accountId} and kind = any(${[...kinds]}::text[])
     order by kind, grant_id`.execute(database);
  const balances = new Map<CreditKind, Grant[]>(kinds.map((kind) => [kind, []]));
  for (const { kind, ...row } of rows) balances.get(kind)?.push(toGrant(row));
  return balances;
}

export interface LedgerEntry {
  readonly entryId: number;
  readonly transactionKey: string;
  readonly reason: string;
  readonly pool: Pool;
  readonly grantId: number;
  readonly from: Place;
  readonly to: Place;
  readonly amount: number;
  readonly availableAfter: number;
  readonly createdAt: Date;
}

/**
 * Prefix of the key of a reversal. It is kept as an expiry, which every version can show, and shown as a reversal; once
 * every running version knows both reasons, it may be kept as its own.
 */
export const REVERSAL_PREFIX = 'reversal:';
const REASON = sql`
  case when starts_with(t.transaction_key, ${REVERSAL_PREFIX}) then 'reversal' else t.reason end`;

/** Newest first. @param beforeEntryId - of the last entry of the page before. */
export async function listLedger(
  database: DatabaseOrTransaction,
  accountId: number,
  kind: CreditKind,
  beforeEntryId: number | undefined,
  limit: number,
): Promise<LedgerEntry[]> {
  const { rows } = await sql<
    Omit<LedgerEntry, 'entryId' | 'amount' | 'availableAfter'> & {
      entryId: string;
      amount: string;
      availableAfter: string;
    }
  >`
    select e.entry_id as "entryId", e.transaction_key as "transactionKey", ${REASON} as reason, g.pool,
           e.grant_id as "grantId", e.from_place as "from", e.to_place as "to", e.amount,
           e.available_after as "availableAfter", e.created_at as "createdAt"
      from credit_entries e
      join credit_transactions t using (account_id, kind, transaction_key)
      join credit_grants g using (account_id, kind, grant_id)
     where e.account_id = ${accountId} and e.kind = ${kind}
       and e.entry_id < ${beforeEntryId ?? Number.MAX_SAFE_INTEGER}
     order by e.entry_id desc limit ${limit}`.execute(database);
  return rows.map((row) => ({
    ...row,
    entryId: Number(row.entryId),
    amount: Number(row.amount),
    availableAfter: Number(row.availableAfter),
  }));
}
