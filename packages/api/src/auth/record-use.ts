/** Last use of a token or an app key, with its address. Calls of a token's sessions count too. */
import { recordCredentialUse } from '@sluice/database/accounts/account-tokens';
import type { Database } from '@sluice/database/connection/connection';
import type { FastifyRequest } from 'fastify';

/** How often the last use of one is written, at most. */
const USE_INTERVAL_MS = 60_000;
const TOKEN_COUNT_MAX = 10_000;

export interface UseRecorderEffects {
  readonly database: Database;
  readonly now: () => number;
  readonly monotonicNow: () => number;
}

export type NoteUse = (
  request: FastifyRequest,
  credential: { readonly accountId: number; readonly credentialId: number },
) => void;

/** Not awaited: a call must neither wait for it nor fail with it. */
export function createUseRecorder({ database, now, monotonicNow }: UseRecorderEffects): NoteUse {
  const recordedAtMs = new Map<number, number>();
  return (request, { accountId, credentialId }) => {
    const atMs = monotonicNow();
    if (atMs - (recordedAtMs.get(credentialId) ?? -Infinity) < USE_INTERVAL_MS) return;
    if (recordedAtMs.size >= TOKEN_COUNT_MAX) recordedAtMs.clear();
    recordedAtMs.set(credentialId, atMs);
    recordCredentialUse(database, accountId, credentialId, request.ip, now()).catch(
      (error: unknown) =>
        request.log.warn(
          { error },
          'the last use of a token or key could not be stored; a later use stores it',
        ),
    );
  };
}
