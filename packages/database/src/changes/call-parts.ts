/**
 * Parts of a call with an `Idempotency-Key`: changes in transactions of their own, each made once.
 *
 * Each part has a row of its own beside the call's, with the part's outcome. So a process may die between two parts:
 * the same call finds the outcomes of the first ones, and makes the rest. After: `transact-once.ts`.
 */
import { createHash } from 'node:crypto';
import type { Database } from '../connection/connection.ts';
import { claimIdempotencyKey } from './idempotency-keys.ts';
import type { HeldCall } from './transact-once.ts';

/**
 * The call for one of its parts. Its row has no lock that lasts: the call's own keeps others away.
 *
 * @param part - its name with the call's body. The key may come again with another body after a failure.
 * @returns `undefined` for a call without a key.
 */
export async function partOfCall(
  database: Database,
  call: HeldCall | undefined,
  part: string,
  times: { readonly nowMs: number; readonly forgottenBeforeMs: number },
): Promise<HeldCall | undefined> {
  if (!call) return undefined;
  const keyHash = createHash('sha256').update(call.keyHash).update(part).digest();
  const { principal, encrypt, decrypt } = call;
  const own = { principal, keyHash, encrypt, decrypt };
  await claimIdempotencyKey(database, own, keyHash, { ...times, lockedUntilMs: times.nowMs });
  return own;
}
