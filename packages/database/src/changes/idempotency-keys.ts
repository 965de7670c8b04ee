/**
 * Answers kept for calls that are sent again with the same key.
 *
 * States of a row: running (locked until a time) → done (it has an outcome) → answered. A row is deleted if the call
 * had no effect to keep. A call whose process died is taken over when its lock has run out, or at once if it is done.
 * Then only the answer has to be made again (`transact-once.ts`). Every statement uses the primary key (principal,
 * key_hash), unless its comment names another index.
 */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

export interface IdempotencyKey {
  /** Whose key it is. */
  readonly principal: string;
  readonly keyHash: Buffer;
}

export type KeyClaim =
  /** Run it. `isDone`: its change is made, and its outcome is kept. */
  | { readonly outcome: 'claimed'; readonly isDone: boolean }
  /** It was answered: send that again. */
  | { readonly outcome: 'answered'; readonly answer: Buffer }
  /** It runs now. */
  | { readonly outcome: 'running' }
  /** The key was used for something else. */
  | { readonly outcome: 'mismatch' };

/** Takes the key, or returns the state of its call. A key from before `forgottenBeforeMs` counts as new. */
export async function claimIdempotencyKey(
  database: DatabaseOrTransaction,
  { principal, keyHash }: IdempotencyKey,
  fingerprint: Buffer,
  times: {
    readonly nowMs: number;
    readonly lockedUntilMs: number;
    readonly forgottenBeforeMs: number;
  },
): Promise<KeyClaim> {
  const now = new Date(times.nowMs);
  const claimed = await sql<{ isDone: boolean }>`
    insert into idempotency_keys (principal, key_hash, fingerprint, started_at, locked_until)
    values (${principal}, ${keyHash}, ${fingerprint}, ${now}, ${new Date(times.lockedUntilMs)})
    on conflict (principal, key_hash) do update
      set fingerprint = excluded.fingerprint, started_at = excluded.started_at,
          locked_until = excluded.locked_until, answer = null,
          outcome = case when idempotency_keys.started_at < ${new Date(times.forgottenBeforeMs)}
                         then null else idempotency_keys.outcome end
      where idempotency_keys.started_at < ${new Date(times.forgottenBeforeMs)}
         or idempotency_keys.answer is null and idempotency_keys.fingerprint = excluded.fingerprint
            and (idempotency_keys.locked_until <= ${now} or idempotency_keys.outcome is not null)
    returning outcome is not null as "isDone"`.execute(database);
  const [claim] = claimed.rows;
  if (claim) return { outcome: 'claimed', isDone: claim.isDone };
  const { rows } = await sql<{ isSame: boolean; answer: Buffer | null }>`
    select fingerprint = ${fingerprint} as "isSame", answer from idempotency_keys
     where principal = ${principal} and key_hash = ${keyHash}`.execute(database);
  const [row] = rows;
  // Gone meanwhile: the other call had no effect to keep. The next try claims it.
  if (!row) return { outcome: 'running' };
  if (!row.isSame) return { outcome: 'mismatch' };
  return row.answer === null ? { outcome: 'running' } : { outcome: 'answered', answer: row.answer };
}

/** @returns the answer that is kept: the first one given, of calls that ran at the same time. */
export async function keepIdempotentAnswer(
  database: DatabaseOrTransaction,
  { principal, keyHash }: IdempotencyKey,
  answer: Buffer,
): Promise<Buffer> {
  const { rows } = await sql<{ answer: Buffer }>`
    update idempotency_keys set answer = coalesce(answer, ${answer})
     where principal = ${principal} and key_hash = ${keyHash} returning answer`.execute(database);
  return rows[0]?.answer ?? answer;
}

/** If the call had no effect, the key may be used again. */
export async function releaseIdempotencyKey(
  database: DatabaseOrTransaction,
  { principal, keyHash }: IdempotencyKey,
): Promise<void> {
  await sql`
    delete from idempotency_keys
     where principal = ${principal} and key_hash = ${keyHash} and answer is null and outcome is null`.execute(
    database,
  );
}

/** Index: `idempotency_keys_by_age`. At most `limit` at a time. */
export async function clearIdempotencyKeys(
  database: DatabaseOrTransaction,
  startedBeforeMs: number,
  limit: number,
): Promise<void> {
  await sql`
    delete from idempotency_keys where (principal, key_hash) in (
      select principal, key_hash from idempotency_keys
       where started_at < ${new Date(startedBeforeMs)} order by started_at limit ${limit})`.execute(
    database,
  );
}
