/**
 * Makes a change once for any number of equal calls (`account-conventions.md` §3.5).
 *
 * The transaction that makes the change also keeps its outcome, in the row of the call's key. So a process may die at
 * any moment. Before the commit there is no effect. After it, the same call finds its outcome and goes on to the answer
 * that was never sent. Two callers of the same call at the same time wait for each other on that row.
 *
 * The outcome is kept whole, as a value, because an answer may show something random that was made for it, such as a
 * secret. It is encrypted under the caller's key, which is not kept. Before: `idempotency-keys.ts`, which claims the
 * row. Finding: its primary key.
 */
import { deserialize, serialize } from 'node:v8';
import { AppError } from '@sluice/domain/values/errors';
import { sql } from 'kysely';
import type { Database, Transaction } from '../connection/connection.ts';
import type { IdempotencyKey } from './idempotency-keys.ts';

/** A call that holds the row of its key. */
export interface HeldCall extends IdempotencyKey {
  readonly encrypt: (content: Buffer) => Buffer;
  /** @throws Error if it was not encrypted with this key. */
  readonly decrypt: (encrypted: Buffer) => Buffer;
}

/**
 * Makes the change, or gives the outcome of the same call before.
 *
 * @param call - absent: made without a key, so made each time.
 * @param isChange - false of an outcome that refuses: it is not kept, and the call may come again.
 * @returns plain values, with dates and buffers; no objects with methods of their own.
 * @throws AppError CALL_OVERTAKEN if the row is gone: the call took longer than its lock.
 */
export async function transactOnce<Outcome>(
  database: Database,
  call: HeldCall | undefined,
  isChange: (outcome: Outcome) => boolean,
  change: (transaction: Transaction) => Promise<Outcome>,
): Promise<Outcome> {
  return database.transaction().execute(async (transaction) => {
    if (!call) return change(transaction);
    const kept = await lockOutcome(transaction, call);
    if (kept !== null) return deserialize(call.decrypt(kept)) as Outcome;
    const outcome = await change(transaction);
    if (isChange(outcome)) await keepOutcome(transaction, call, call.encrypt(serialize(outcome)));
    return outcome;
  });
}

async function lockOutcome(
  transaction: Transaction,
  { principal, keyHash }: IdempotencyKey,
): Promise<Buffer | null> {
  const { rows } = await sql<{ outcome: Buffer | null }>`
    select outcome from idempotency_keys
     where principal = ${principal} and key_hash = ${keyHash} for update`.execute(transaction);
  const [row] = rows;
  if (!row)
    throw new AppError(
      'CALL_OVERTAKEN',
      'a repeated call with the same Idempotency-Key took over; use its answer',
    );
  return row.outcome;
}

async function keepOutcome(
  transaction: Transaction,
  { principal, keyHash }: IdempotencyKey,
  outcome: Buffer,
): Promise<void> {
  await sql`
    update idempotency_keys set outcome = ${outcome}
     where principal = ${principal} and key_hash = ${keyHash}`.execute(transaction);
}
