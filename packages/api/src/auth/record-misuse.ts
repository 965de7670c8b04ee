/**
 * Records that a token was used on another account.
 *
 * The entry is in the audit log of the account that owns the token. The log of the other account gets no entry: any
 * caller could fill it.
 *
 * At most once for each token and hour, over all API processes: their count in Postgres decides which one is first.
 */
import type { AccountToken } from '@sluice/database/accounts/account-tokens';
import { takeCalls } from '@sluice/database/changes/call-counts';
import { recordChange } from '@sluice/database/changes/record-change';
import type { Database } from '@sluice/database/connection/connection';
import type { FastifyRequest } from 'fastify';
import { sourceOf } from '../serving/call-source.ts';

const HOUR_MS = 3_600_000;

export async function recordMisuse(
  database: Database,
  request: FastifyRequest,
  {
    accountId,
    credentialId,
    serviceAccountId,
  }: Pick<AccountToken, 'accountId' | 'credentialId' | 'serviceAccountId'>,
  nowMs: number,
): Promise<void> {
  const hourMs = Math.floor(nowMs / HOUR_MS) * HOUR_MS;
  const { account_id: askedAccountId } = request.params as { account_id: string };
  await database.transaction().execute(async (transaction) => {
    const count = await takeCalls(transaction, `misuse ${credentialId}`, 1, hourMs, HOUR_MS);
    if (count > 1) return;
    const origin = {
      actor: { type: 'service_account' as const, serviceAccountId },
      credentialId,
      ...sourceOf(request),
      requestId: request.id,
    };
    const change = {
      objectType: 'credential_misuse' as const,
      objectId: credentialId,
      before: null,
      after: { credential_id: credentialId, asked_account_id: askedAccountId },
    };
    await recordChange(transaction, accountId, origin, change, nowMs);
  });
}
