/**
 * Common parts of every change of credits.
 *
 * They lock the account's row, read the grants, name one transaction by its fact, write its moves, and update the
 * grants. Called by `credits.ts` and `credit-holds.ts`, in the caller's transaction.
 *
 * By the primary keys, which begin with the account, `credit_grants_live` and `credit_entries_of_transaction`.
 */
import type { CreditKind } from '@sluice/domain/billing/catalogue';
import {
  applyMoves,
  takeCredits,
  type Grant,
  type Move,
  type Place,
} from '@sluice/domain/billing/credit-ledger';
import { AppError } from '@sluice/domain/values/errors';
import { sql } from 'kysely';
import { bigintColumn, integerColumn, textColumn } from '../connection/columns.ts';
import type { Transaction } from '../connection/connection.ts';
import { GRANT, toGrant, type GrantRow } from './credit-reads.ts';

/** One kind of credit of one account. */
export interface CreditAccount {
  readonly accountId: number;
  readonly kind: CreditKind;
}

type TransactionReason = 'grant' | 'debit' | 'hold' | 'capture' | 'refund' | 'expiry';

export interface LockedAccount {
  readonly lastGrantId: number;
  readonly lastEntryId: number;
}

/** `for update` needs a row to lock, so the row is inserted first. */
export async function lockAccount(
  transaction: Transaction,
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

export type TakeOnceOutcome =
  | { readonly outcome: 'taken' }
  /** This fact has been written down before. */
  | { readonly outcome: 'repeated' }
  | { readonly outcome: 'insufficient'; readonly available: number };

interface Taking {
  readonly amount: number;
  readonly key: string;
  readonly hasAllowance: boolean;
  /** Another fact, which is made first if it is not there yet. Looked for in the same statement as `key`. */
  readonly before?: { readonly key: string; readonly make: () => Promise<void> } | undefined;
}

/** Takes the whole `amount` in burn order, used at once or held; or takes no credits. */
export async function takeOnce(
  transaction: Transaction,
  account: CreditAccount,
  taking: Taking,
  reason: 'debit' | 'hold',
  nowMs: number,
): Promise<TakeOnceOutcome> {
  const { amount, key, hasAllowance, before } = taking;
  let locked = await lockAccount(transaction, account);
  const known = await findTransactions(transaction, account, before ? [key, before.key] : [key]);
  if (known.has(key)) return { outcome: 'repeated' };
  if (before && !known.has(before.key)) {
    await before.make();
    // It has written entries.
    locked = await lockAccount(transaction, account);
  }
  const grants = await listLiveGrants(transaction, account);
  const to = reason === 'debit' ? 'used' : 'held';
  const taken = takeCredits(grants, amount, to, nowMs, hasAllowance);
  if (taken.outcome === 'insufficient') return taken;
  await insertTransaction(transaction, account, key, reason, nowMs);
  await write(transaction, account, locked, key, grants, taken.moves, nowMs);
  return { outcome: 'taken' };
}

export async function insertTransaction(
  transaction: Transaction,
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

/** @returns the given keys that have been written down. */
export async function findTransactions(
  transaction: Transaction,
  { accountId, kind }: CreditAccount,
  keys: readonly string[],
): Promise<ReadonlySet<string>> {
  const { rows } = await sql<{ key: string }>`
    select transaction_key as key from credit_transactions
     where account_id = ${accountId} and kind = ${kind}
       and transaction_key = any(${[...keys]}::text[])`.execute(transaction);
  return new Set(rows.map((row) => row.key));
}

/** The grants with credits left. */
export async function listLiveGrants(
  transaction: Transaction,
  { accountId, kind }: CreditAccount,
): Promise<Grant[]> {
  const { rows } = await sql<GrantRow>`
    select ${GRANT} from credit_grants
     where account_id = ${accountId} and kind = ${kind} and available > 0
     order by grant_id`.execute(transaction);
  return rows.map(toGrant);
}

/** The named grants, and all with credits left. */
export async function listGrants(
  transaction: Transaction,
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

export async function listMoves(
  transaction: Transaction,
  { accountId, kind }: CreditAccount,
  keys: readonly string[],
): Promise<Move[]> {
  const { rows } = await sql<{ grantId: number; from: Place; to: Place; amount: string }>`
    select grant_id as "grantId", from_place as "from", to_place as "to", amount
      from credit_entries
     where account_id = ${accountId} and kind = ${kind} and transaction_key = any(${[...keys]}::text[])
     order by entry_id`.execute(transaction);
  return rows.map((row) => ({ ...row, amount: Number(row.amount) }));
}

/** The moves, and the grants as they leave them. */
export async function write(
  transaction: Transaction,
  account: CreditAccount,
  locked: LockedAccount,
  key: string,
  grants: readonly Grant[],
  moves: readonly Move[],
  nowMs: number,
): Promise<void> {
  await insertEntries(transaction, account, locked, key, entriesOf(grants, moves), nowMs);
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

/** A move, with the account's available credits of that kind after it. */
interface Entry extends Move {
  readonly availableAfter: number;
}

function entriesOf(grants: readonly Grant[], moves: readonly Move[]): Entry[] {
  let after = grants;
  return moves.map((move) => {
    after = applyMoves(after, [move]);
    return { ...move, availableAfter: after.reduce((sum, grant) => sum + grant.available, 0) };
  });
}

export async function insertEntries(
  transaction: Transaction,
  { accountId, kind }: CreditAccount,
  locked: LockedAccount,
  key: string,
  made: readonly Entry[],
  nowMs: number,
): Promise<void> {
  const entries = made.map((entry, index) => ({
    ...entry,
    entryId: locked.lastEntryId + index + 1,
  }));
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
