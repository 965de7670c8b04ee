/** Failed sign-ins, in the audit log of the user's account. */
import { takeCalls } from '../changes/call-counts.ts';
import { recordChange } from '../changes/record-change.ts';
import type { Database } from '../connection/connection.ts';
import type { SignInCall } from './session-openings.ts';

const HOUR_MS = 3_600_000;

/** The factor that was given at a sign-in. */
export type SignInFactor = 'mailed_code' | 'app_code' | 'recovery_code' | 'provider';

/**
 * Records that a code was no good, wrong or used before, for a user, or that the answer of an identity provider was
 * refused. Once an hour at most for each user and kind of code, since any caller could fill the log. Everyone who knows
 * an address can give wrong mailed codes, and they must not hide the other kinds, which only a person with the user's
 * mails can give.
 */
export async function recordFailedSignIn(
  database: Database,
  { accountId, userId }: { readonly accountId: number; readonly userId: number },
  factor: SignInFactor,
  call: SignInCall,
  nowMs: number,
): Promise<void> {
  const hourMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
  await database.transaction().execute(async (transaction) => {
    const subject = `failed sign-in ${userId} ${factor}`;
    if ((await takeCalls(transaction, subject, 1, hourMs, HOUR_MS)) > 1) return;
    await recordChange(
      transaction,
      accountId,
      // The caller is not known to be the user.
      { ...call, actor: { type: 'system' } },
      {
        objectType: 'failed_sign_in',
        objectId: userId,
        before: null,
        after: { user_id: userId, factor },
      },
      nowMs,
    );
  });
}
