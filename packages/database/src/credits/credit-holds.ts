/**
 * Holds: credits set aside for work whose cost is not known yet.
 *
 * Other work cannot spend them meanwhile. A hold ends once: part of it is used, and the rest goes back to the grants it
 * came from. If it is not captured, it goes back whole when its time is over (`worker/src/purchases/renew-credits.ts`).
 *
 *     hold ──captured (any part, from 0 to all)────▶ ended
 *       └──────────────time is over────────────────▶ ended
 *
 * By the primary key, and by `credit_holds_ending` for the reconcile loop.
 */
import { captureHold } from '@sluice/domain/billing/credit-ledger';
import { sql } from 'kysely';
import type { DatabaseOrTransaction, Transaction } from '../connection/connection.ts';
import {
  insertTransaction,
  listGrants,
  listMoves,
  lockAccount,
  takeOnce,
  write,
  type CreditAccount,
} from './credit-transactions.ts';

export type HoldOutcome =
  | { readonly outcome: 'held' }
  /** This fact has been held for before, whether that has ended or not. */
  | { readonly outcome: 'repeated' }
  | { readonly outcome: 'insufficient'; readonly available: number };

/** Sets the whole `amount` aside in burn order, or leaves all grants as they are. */
export async function holdCredits(
  transaction: Transaction,
  account: CreditAccount,
  hold: {
    readonly amount: number;
    readonly key: string;
    readonly hasAllowance: boolean;
    readonly expiresAtMs: number;
  },
  nowMs: number,
): Promise<HoldOutcome> {
  const taken = await takeOnce(transaction, account, hold, 'hold', nowMs);
  if (taken.outcome !== 'taken') return taken;
  await sql`
    insert into credit_holds (account_id, kind, hold_key, amount, expires_at)
    values (${account.accountId}, ${account.kind}, ${hold.key}, ${hold.amount},
            ${new Date(hold.expiresAtMs)})`.execute(transaction);
  return { outcome: 'held' };
}

export type HoldEnding =
  | { readonly outcome: 'ended' }
  /** It has ended before; its result stays. */
  | { readonly outcome: 'repeated'; readonly captured: number }
  | { readonly outcome: 'unknown' }
  | { readonly outcome: 'too-much'; readonly held: number };

/** @param captured - how much of it is used; the rest goes back. 0: all of it. */
export async function endHold(
  transaction: Transaction,
  account: CreditAccount,
  holdKey: string,
  captured: number,
  nowMs: number,
): Promise<HoldEnding> {
  const locked = await lockAccount(transaction, account);
  const { rows } = await sql<{ amount: string; captured: string | null }>`
    select amount, captured from credit_holds
     where account_id = ${account.accountId} and kind = ${account.kind} and hold_key = ${holdKey}`.execute(
    transaction,
  );
  const [hold] = rows;
  if (!hold) return { outcome: 'unknown' };
  if (hold.captured !== null) return { outcome: 'repeated', captured: Number(hold.captured) };
  if (captured > Number(hold.amount)) return { outcome: 'too-much', held: Number(hold.amount) };
  const moves = await listMoves(transaction, account, [holdKey]);
  const grants = await listGrants(transaction, account, [
    ...new Set(moves.map((move) => move.grantId)),
  ]);
  const key = `${holdKey}:end`;
  await insertTransaction(transaction, account, key, 'capture', nowMs);
  const ending = captureHold(moves, captured, grants, nowMs);
  await write(transaction, account, locked, key, grants, ending, nowMs);
  await sql`
    update credit_holds set captured = ${captured}, ended_at = ${new Date(nowMs)}
     where account_id = ${account.accountId} and kind = ${account.kind}
       and hold_key = ${holdKey}`.execute(transaction);
  return { outcome: 'ended' };
}

/** Of all accounts: holds whose time is over. */
export async function listOverdueHolds(
  database: DatabaseOrTransaction,
  nowMs: number,
  limit: number,
): Promise<(CreditAccount & { readonly holdKey: string })[]> {
  const { rows } = await sql<CreditAccount & { holdKey: string }>`
    select account_id::int as "accountId", kind, hold_key as "holdKey" from credit_holds
     where ended_at is null and expires_at <= ${new Date(nowMs)}
     order by expires_at limit ${limit}`.execute(database);
  return rows;
}
