/**
 * The credit ledger in Postgres. Each change locks the account's row of that kind of credit, reads the
 * grants, asks the rules (`domain/src/credit-ledger.ts`) and writes the moves, all in the caller's
 * transaction; so changes of one kind of one account happen one after another, and a pool cannot fall
 * below nothing (the table's own checks would refuse it too).
 *
 * A change is named by the fact it comes of (`transaction_key`): the same fact changes nothing twice.
 * Index of every statement: the primary keys, which begin with the account; `credit_grants_live` for
 * reading the grants that may still change.
 */
import type { CreditKind } from '@sluice/domain/catalogue';
import {
  applyMoves,
  expireCredits,
  refundDebit,
  takeCredits,
  type Grant,
  type Move,
  type Place,
  type Pool,
} from '@sluice/domain/credit-ledger';
import { AppError } from '@sluice/domain/errors';
import { sql, type Transaction } from 'kysely';
import { bigintColumn, integerColumn, textColumn } from './columns.ts';
import { GRANT, toGrant, type GrantRow } from './credit-reads.ts';
import type { Tables } from './tables.ts';

/** One kind of credit of one account. */
export interface CreditAccount {
  readonly accountId: number;
  readonly kind: CreditKind;
}

type TransactionReason = 'grant' | 'debit' | 'refund' | 'expiry';

interface LockedAccount {
  readonly lastGrantId: number;
  readonly lastEntryId: number;
}

export interface NewGrant {
  readonly pool: Pool;
  readonly amount: number;
  readonly expiresAtMs: number | null;
  /** The fact that it comes of, `grant:invoice:<id>` say. */
  readonly key: string;
}

/** An amount of 0 only notes the fact. @returns false where nothing is granted, or this fact has granted before. */
export async function grantCredits(
  transaction: Transaction<Tables>,
  account: CreditAccount,
  grant: NewGrant,
  nowMs: number,
): Promise<boolean> {
  const locked = await lockAccount(transaction, account);
  if (!(await insertTransaction(transaction, account, grant.key, 'grant', nowMs))) return false;
  if (grant.amount === 0) return false;
  const grants = await listLiveGrants(transaction, account);
  const grantId = locked.lastGrantId + 1;
  await sql`
    insert into credit_grants
      (account_id, kind, grant_id, pool, granted, available, held, used, expired, expires_at, created_at)
    values (${account.accountId}, ${account.kind}, ${grantId}, ${grant.pool}, ${grant.amount},
            ${grant.amount}, 0, 0, 0, ${toDate(grant.expiresAtMs)}, ${new Date(nowMs)})`.execute(
    transaction,
  );
  const move: Move = { grantId, from: 'issued', to: 'available', amount: grant.amount };
  const made: Grant = {
    grantId,
    pool: grant.pool,
    granted: 0,
    available: 0,
    held: 0,
    used: 0,
    expired: 0,
    expiresAtMs: grant.expiresAtMs,
  };
  await insertEntries(transaction, account, locked, grant.key, [...grants, made], [move], nowMs);
  await sql`
    update credit_accounts set last_grant_id = ${grantId}
     where account_id = ${account.accountId} and kind = ${account.kind}`.execute(transaction);
  return true;
}

export type DebitOutcome =
  | { readonly outcome: 'debited' }
  /** This fact has been debited before. */
  | { readonly outcome: 'repeated' }
  | { readonly outcome: 'insufficient'; readonly available: number };

/** Takes `amount` in burn order, or nothing. */
export async function debitCredits(
  transaction: Transaction<Tables>,
  account: CreditAccount,
  debit: { readonly amount: number; readonly key: string; readonly hasAllowance: boolean },
  nowMs: number,
): Promise<DebitOutcome> {
  const locked = await lockAccount(transaction, account);
  if (await hasTransaction(transaction, account, debit.key)) return { outcome: 'repeated' };
  const grants = await listLiveGrants(transaction, account);
  const taken = takeCredits(grants, debit.amount, 'used', nowMs, debit.hasAllowance);
  if (taken.outcome === 'insufficient') return taken;
  await insertTransaction(transaction, account, debit.key, 'debit', nowMs);
  await write(transaction, account, locked, debit.key, grants, taken.moves, nowMs);
  return { outcome: 'debited' };
}

export type RefundOutcome =
  | { readonly outcome: 'refunded' }
  | { readonly outcome: 'repeated' }
  /** There is no such debit, or less than that is left of it. */
  | { readonly outcome: 'too-much'; readonly left: number };

/** Gives back part of a debit to the grants that it came from. */
export async function refundCredits(
  transaction: Transaction<Tables>,
  account: CreditAccount,
  refund: { readonly amount: number; readonly debitKey: string; readonly key: string },
  nowMs: number,
): Promise<RefundOutcome> {
  const locked = await lockAccount(transaction, account);
  if (await hasTransaction(transaction, account, refund.key)) return { outcome: 'repeated' };
  const debit = await listMoves(transaction, account, [refund.debitKey]);
  // Every refund of a debit has a key that begins with the debit's own.
  const { rows } = await sql<{ key: string }>`
    select transaction_key as key from credit_transactions
     where account_id = ${account.accountId} and kind = ${account.kind} and reason = 'refund'
       and transaction_key >= ${`${refund.debitKey}:refund:`}
       and transaction_key < ${`${refund.debitKey}:refund;`}`.execute(transaction);
  const refunds = await listMoves(
    transaction,
    account,
    rows.map((row) => row.key),
  );
  const grants = await listGrants(transaction, account, [
    ...new Set(debit.map((move) => move.grantId)),
  ]);
  const moves = refundDebit(debit, refunds, refund.amount, grants, nowMs);
  if (!moves) {
    const sum = (list: readonly Move[]) => list.reduce((total, move) => total + move.amount, 0);
    return { outcome: 'too-much', left: sum(debit) - sum(refunds) };
  }
  await insertTransaction(transaction, account, refund.key, 'refund', nowMs);
  await write(transaction, account, locked, refund.key, grants, moves, nowMs);
  return { outcome: 'refunded' };
}

/** Writes down what grants have ended with something left. @returns how much. */
export async function expireAccountCredits(
  transaction: Transaction<Tables>,
  account: CreditAccount,
  nowMs: number,
): Promise<number> {
  const locked = await lockAccount(transaction, account);
  const grants = await listLiveGrants(transaction, account);
  const moves = expireCredits(grants, nowMs);
  if (moves.length === 0) return 0;
  const key = `expiry:${locked.lastEntryId}`;
  await insertTransaction(transaction, account, key, 'expiry', nowMs);
  await write(transaction, account, locked, key, grants, moves, nowMs);
  return moves.reduce((sum, move) => sum + move.amount, 0);
}

const toDate = (atMs: number | null): Date | null => (atMs === null ? null : new Date(atMs));

/** `for update` locks nothing where there is no row, so there is one first. */
async function lockAccount(
  transaction: Transaction<Tables>,
  { accountId, kind }: CreditAccount,
): Promise<LockedAccount> {
  await sql`
    insert into credit_accounts (account_id, kind) values (${accountId}, ${kind})
    on conflict do nothing`.execute(transaction);
  const { rows } = await sql<{ lastGrantId: number; lastEntryId: string }>`
    select last_grant_id as "lastGrantId", last_entry_id as "lastEntryId" from credit_accounts
     where account_id = ${accountId} and kind = ${kind} for update`.execute(transaction);
  const [row] = rows;
  if (!row) throw new AppError('BUG', 'a credit account is gone');
  return { lastGrantId: row.lastGrantId, lastEntryId: Number(row.lastEntryId) };
}

async function insertTransaction(
  transaction: Transaction<Tables>,
  { accountId, kind }: CreditAccount,
  key: string,
  reason: TransactionReason,
  nowMs: number,
): Promise<boolean> {
  const { rows } = await sql`
    insert into credit_transactions (account_id, kind, transaction_key, reason, created_at)
    values (${accountId}, ${kind}, ${key}, ${reason}, ${new Date(nowMs)})
    on conflict do nothing returning 1`.execute(transaction);
  return rows.length > 0;
}

async function hasTransaction(
  transaction: Transaction<Tables>,
  { accountId, kind }: CreditAccount,
  key: string,
): Promise<boolean> {
  const { rows } = await sql`
    select 1 from credit_transactions
     where account_id = ${accountId} and kind = ${kind} and transaction_key = ${key}`.execute(
    transaction,
  );
  return rows.length > 0;
}

async function listLiveGrants(
  transaction: Transaction<Tables>,
  { accountId, kind }: CreditAccount,
): Promise<Grant[]> {
  const { rows } = await sql<GrantRow>`
    select ${GRANT} from credit_grants
     where account_id = ${accountId} and kind = ${kind} and (available > 0 or held > 0)
     order by grant_id`.execute(transaction);
  return rows.map(toGrant);
}

async function listGrants(
  transaction: Transaction<Tables>,
  account: CreditAccount,
  grantIds: readonly number[],
): Promise<Grant[]> {
  const { rows } = await sql<GrantRow>`
    select ${GRANT} from credit_grants
     where account_id = ${account.accountId} and kind = ${account.kind}
       and (grant_id = any(${[...grantIds]}::int[]) or available > 0)
     order by grant_id`.execute(transaction);
  return rows.map(toGrant);
}

async function listMoves(
  transaction: Transaction<Tables>,
  { accountId, kind }: CreditAccount,
  keys: readonly string[],
): Promise<Move[]> {
  if (keys.length === 0) return [];
  const { rows } = await sql<{ grantId: number; from: Place; to: Place; amount: string }>`
    select grant_id as "grantId", from_place as "from", to_place as "to", amount
      from credit_entries
     where account_id = ${accountId} and kind = ${kind} and transaction_key = any(${[...keys]}::text[])
     order by entry_id`.execute(transaction);
  return rows.map((row) => ({ ...row, amount: Number(row.amount) }));
}

/** The moves, and the grants as they leave them. */
async function write(
  transaction: Transaction<Tables>,
  account: CreditAccount,
  locked: LockedAccount,
  key: string,
  grants: readonly Grant[],
  moves: readonly Move[],
  nowMs: number,
): Promise<void> {
  await insertEntries(transaction, account, locked, key, grants, moves, nowMs);
  const changed = new Set(moves.map((move) => move.grantId));
  const after = applyMoves(grants, moves).filter((grant) => changed.has(grant.grantId));
  await sql`
    update credit_grants g
       set available = c.available, held = c.held, used = c.used, expired = c.expired
      from unnest(
        ${integerColumn(after, (grant) => grant.grantId)}::int[],
        ${bigintColumn(after, (grant) => grant.available)}::bigint[],
        ${bigintColumn(after, (grant) => grant.held)}::bigint[],
        ${bigintColumn(after, (grant) => grant.used)}::bigint[],
        ${bigintColumn(after, (grant) => grant.expired)}::bigint[]
      ) as c (grant_id, available, held, used, expired)
     where g.account_id = ${account.accountId} and g.kind = ${account.kind}
       and g.grant_id = c.grant_id`.execute(transaction);
}

async function insertEntries(
  transaction: Transaction<Tables>,
  { accountId, kind }: CreditAccount,
  locked: LockedAccount,
  key: string,
  grants: readonly Grant[],
  moves: readonly Move[],
  nowMs: number,
): Promise<void> {
  let after = [...grants];
  const entries = moves.map((move, index) => {
    after = applyMoves(after, [move]);
    return {
      ...move,
      entryId: locked.lastEntryId + index + 1,
      availableAfter: after.reduce((sum, grant) => sum + grant.available, 0),
    };
  });
  await sql`
    insert into credit_entries
      (account_id, kind, entry_id, transaction_key, grant_id, from_place, to_place, amount,
       available_after, created_at)
    select ${accountId}, ${kind}, e.entry_id, ${key}, e.grant_id, e.from_place, e.to_place, e.amount,
           e.available_after, ${new Date(nowMs)}
      from unnest(
        ${bigintColumn(entries, (entry) => entry.entryId)}::bigint[],
        ${integerColumn(entries, (entry) => entry.grantId)}::int[],
        ${textColumn(entries, (entry) => entry.from)}::text[],
        ${textColumn(entries, (entry) => entry.to)}::text[],
        ${bigintColumn(entries, (entry) => entry.amount)}::bigint[],
        ${bigintColumn(entries, (entry) => entry.availableAfter)}::bigint[]
      ) as e (entry_id, grant_id, from_place, to_place, amount, available_after)`.execute(
    transaction,
  );
  await sql`
    update credit_accounts set last_entry_id = ${locked.lastEntryId + entries.length}
     where account_id = ${accountId} and kind = ${kind}`.execute(transaction);
}
