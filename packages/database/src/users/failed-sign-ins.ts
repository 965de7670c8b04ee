/** Failed sign-ins, in the audit log of the user's account. */
import { takeCalls } from '../changes/call-counts.ts';
import { recordChange } from '../changes/record-change.ts';
import type { Database } from '../connection/connection.ts';
import type { SignInCall } from './session-openings.ts';

const HOUR_MS = 3_600_000;

/** What was given at a sign-in. */
export type SignInFactor = 'mailed_code' | 'app_code' | 'recovery_code' | 'provider';

/**
 * Records that a code was no good, wrong or used before, for a user, or that what an identity provider said was refused: once an hour for each user and kind of code at most,
 * since anybody could fill the log. Whoever knows an address gives wrong mailed codes, and they must not hide the others,
 * which are given by somebody who has the mails of the user.
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
    if ((await takeCalls(transaction, `failed sign-in ${userId} ${factor}`, 1, hourMs)) > 1) return;
    await recordChange(
      transaction,
      accountId,
      // Whoever it was, it is not known to have been the user.
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
