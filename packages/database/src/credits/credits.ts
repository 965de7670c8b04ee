/**
 * The credit ledger in Postgres. Each change locks the account's row of that kind of credit, reads the grants, applies
 * the rules (`domain/src/billing/credit-ledger.ts`) and writes the moves, all in the caller's transaction. So changes
 * of one kind of one account happen one after another, and a pool cannot fall below 0 (the table's own checks would
 * refuse it too). Holds: `credit-holds.ts`.
 *
 * A change is named by the fact that it comes from (`transaction_key`), and is idempotent: the same fact changes the
 * ledger once. Every statement uses the primary keys, which begin with the account; `credit_grants_live` for reading
 * the grants that may still change; or `credit_refunds`.
 */
import { boughtAgainKey, type Allowance } from '@sluice/domain/billing/allowance';
import {
  capAllowance,
  expireCredits,
  refundDebit,
  reverseGrants,
  type Move,
  type Pool,
} from '@sluice/domain/billing/credit-ledger';
import { sql } from 'kysely';
import type { Transaction } from '../connection/connection.ts';
import { REVERSAL_PREFIX } from './credit-reads.ts';
import {
  findTransactions,
  insertEntries,
  insertTransaction,
  listGrants,
  listLiveGrants,
  listMoves,
  lockAccount,
  takeOnce,
  write,
  type CreditAccount,
  type LockedAccount,
} from './credit-transactions.ts';

export interface NewGrant {
  readonly pool: Pool;
  readonly amount: number;
  readonly expiresAtMs: number | null;
  /** The fact that it comes from, for example `grant:invoice:<id>`. */
  readonly key: string;
}

/** An amount of 0 only notes the fact. @returns false if no credits are granted, or this fact has granted before. */
export async function grantCredits(
  transaction: Transaction,
  account: CreditAccount,
  grant: NewGrant,
  nowMs: number,
): Promise<boolean> {
  return grantLocked(transaction, account, await lockAccount(transaction, account), grant, nowMs);
}

async function grantLocked(
  transaction: Transaction,
  account: CreditAccount,
  locked: LockedAccount,
  grant: NewGrant,
  nowMs: number,
): Promise<boolean> {
  if (!(await insertTransaction(transaction, account, grant.key, 'grant', nowMs))) return false;
  if (grant.amount === 0) return false;
  const before = await listLiveGrants(transaction, account);
  const availableAfter = before.reduce((sum, each) => sum + each.available, grant.amount);
  const grantId = locked.lastGrantId + 1;
  await sql`
    insert into credit_grants
      (account_id, kind, grant_id, pool, granted, available, held, used, expired, expires_at, created_at)
    values (${account.accountId}, ${account.kind}, ${grantId}, ${grant.pool}, ${grant.amount},
            ${grant.amount}, 0, 0, 0, ${toDate(grant.expiresAtMs)}, ${new Date(nowMs)})`.execute(
    transaction,
  );
  const move: Move = { grantId, from: 'issued', to: 'available', amount: grant.amount };
  const entry = { ...move, availableAfter };
  await insertEntries(transaction, account, locked, grant.key, [entry], nowMs);
  await sql`
    update credit_accounts set last_grant_id = ${grantId}
     where account_id = ${account.accountId} and kind = ${account.kind}`.execute(transaction);
  return true;
}

/**
 * Grants the month's allowance, less the part of it that earlier plans have granted: once, also when several grant it
 * at the same time.
 *
 * @param runId - of the purchase that began a subscription for it. If the plan's allowance has come before, it brings
 *   back the part that was taken back (`boughtAgainKey`).
 */
export async function giveAllowance(
  transaction: Transaction,
  account: CreditAccount,
  { included, endsAtMs, key: usualKey }: Allowance,
  nowMs: number,
  runId?: string,
): Promise<void> {
  // Before the sum: two plans' allowances given at the same time must see each other.
  const locked = await lockAccount(transaction, account);
  let key = usualKey;
  if (runId !== undefined && (await findTransactions(transaction, account, [key])).has(key))
    key = boughtAgainKey(key, runId);
  const given = await sumAllowance(transaction, account, endsAtMs);
  const amount = Math.max(0, included - given);
  const grant = { pool: 'monthly_allowance', amount, expiresAtMs: endsAtMs, key } as const;
  await grantLocked(transaction, account, locked, grant, nowMs);
}

/**
 * Takes back the part of the month's allowance beyond the account's present plan: a smaller plan has taken the place of
 * a greater one. The same change takes back once.
 *
 * @param runId - of the purchase that changed the plan.
 */
export async function capMonthAllowance(
  transaction: Transaction,
  account: CreditAccount,
  { included, endsAtMs }: Pick<Allowance, 'included' | 'endsAtMs'>,
  runId: string,
  nowMs: number,
): Promise<void> {
  const locked = await lockAccount(transaction, account);
  const { rows } = await sql<{ grantId: number }>`
    select grant_id as "grantId" from credit_grants
     where account_id = ${account.accountId} and kind = ${account.kind}
       and pool = 'monthly_allowance' and ${isOfMonth(endsAtMs)}`.execute(transaction);
  const grantIds = new Set(rows.map(({ grantId }) => grantId));
  const grants = await listGrants(transaction, account, [...grantIds]);
  const moves = capAllowance(grants, grantIds, included);
  if (moves.length === 0) return;
  // A version from before could show no reason that it does not know.
  const key = `${REVERSAL_PREFIX}allowance:${runId}`;
  if (!(await insertTransaction(transaction, account, key, 'expiry', nowMs))) return;
  await write(transaction, account, locked, key, grants, moves, nowMs);
}

/** A grant that is taken back ends within its month, later than every grant of the month before. */
const isOfMonth = (endsAtMs: number) => {
  const end = new Date(endsAtMs);
  const begin = new Date(Date.UTC(end.getUTCFullYear(), end.getUTCMonth() - 1, 1));
  return sql`(expires_at > ${begin} and expires_at <= ${end})`;
};

/**
 * Sum of the account's allowance of the month, by all plans. Of grants that were taken back (`reverseGrant`,
 * `capMonthAllowance`) only the spent part counts.
 */
async function sumAllowance(
  transaction: Transaction,
  { accountId, kind }: CreditAccount,
  endsAtMs: number,
): Promise<number> {
  const { rows } = await sql<{ given: string }>`
    select coalesce(sum(granted - expired), 0) as given
      from credit_grants
     where account_id = ${accountId} and kind = ${kind} and pool = 'monthly_allowance'
       and ${isOfMonth(endsAtMs)}`.execute(transaction);
  return Number(rows[0]?.given);
}

interface Debit {
  readonly amount: number;
  readonly key: string;
  /** Whether the plan's allowance may be spent. */
  readonly hasAllowance: boolean;
  /** The plan's allowance of this month; granted first if that has not been done yet. */
  readonly allowance?: Allowance | undefined;
}

export type DebitOutcome =
  | { readonly outcome: 'debited' }
  /** This fact has been debited before. */
  | { readonly outcome: 'repeated' }
  | { readonly outcome: 'insufficient'; readonly available: number };

/**
 * Takes the whole `amount` in burn order, or no credits. The allowance counts from the first moment of its month, not
 * from the next run of `worker/src/purchases/renew-credits.ts`: until then paid credits would be spent.
 */
export async function debitCredits(
  transaction: Transaction,
  account: CreditAccount,
  debit: Debit,
  nowMs: number,
): Promise<DebitOutcome> {
  const { allowance } = debit;
  const before = allowance && {
    key: allowance.key,
    make: () => giveAllowance(transaction, account, allowance, nowMs),
  };
  const taken = await takeOnce(transaction, account, { ...debit, before }, 'debit', nowMs);
  return taken.outcome === 'taken' ? { outcome: 'debited' } : taken;
}

export type RefundOutcome =
  | { readonly outcome: 'refunded' }
  | { readonly outcome: 'repeated' }
  /** There is no such debit, or less than that is left of it. */
  | { readonly outcome: 'too-much'; readonly left: number };

/** Gives back part of a debit to the grants that it came from. */
export async function refundCredits(
  transaction: Transaction,
  account: CreditAccount,
  refund: { readonly amount: number; readonly debitKey: string; readonly key: string },
  nowMs: number,
): Promise<RefundOutcome> {
  const locked = await lockAccount(transaction, account);
  const known = await findTransactions(transaction, account, [refund.key]);
  if (known.has(refund.key)) return { outcome: 'repeated' };
  const debit = await listMoves(transaction, account, [refund.debitKey]);
  // Every refund of a debit has a key that begins with the debit's own.
  const { rows } = await sql<{ key: string }>`
    select transaction_key as key from credit_transactions
     where account_id = ${account.accountId} and kind = ${account.kind} and reason = 'refund'
       and transaction_key collate "C" >= ${`${refund.debitKey}:refund:`}
       and transaction_key collate "C" < ${`${refund.debitKey}:refund;`}`.execute(transaction);
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

/**
 * Takes back the rest of a grant, whose time ends with it: credits that are held of it, or refunded to it, later do not
 * come back to life either.
 *
 * @returns the amount; 0 if there is no such grant, or it was taken back before.
 */
export async function reverseGrant(
  transaction: Transaction,
  account: CreditAccount,
  grantKey: string,
  nowMs: number,
): Promise<number> {
  const locked = await lockAccount(transaction, account);
  const issued = await listMoves(transaction, account, [grantKey]);
  const grantIds = new Set(issued.map((move) => move.grantId));
  if (grantIds.size === 0) return 0;
  const key = `${REVERSAL_PREFIX}${grantKey}`;
  // A version from before, which runs beside this one, could show no reason that it does not know.
  if (!(await insertTransaction(transaction, account, key, 'expiry', nowMs))) return 0;
  const grants = await listGrants(transaction, account, [...grantIds]);
  const moves = reverseGrants(grants, grantIds);
  if (moves.length > 0) await write(transaction, account, locked, key, grants, moves, nowMs);
  await sql`
    update credit_grants set expires_at = least(expires_at, ${new Date(nowMs)})
     where account_id = ${account.accountId} and kind = ${account.kind}
       and grant_id = any(${[...grantIds]}::int[])`.execute(transaction);
  return moves.reduce((sum, move) => sum + move.amount, 0);
}

/** Writes down the grants that have ended with credits left. @returns the amount. */
export async function expireAccountCredits(
  transaction: Transaction,
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
