/**
 * Rotates a webhook's signing key, and replaces a workspace's. The rows (`signing-keys.ts`) and the entry of the audit
 * log are one transaction. The entry has the key's id, the time and the actor, never a key.
 *
 * The webhook's row is locked before the account's audit chain, as everywhere (`record-change.ts`).
 */
import type { AuditState } from '@sluice/domain/accounts/audit-registry';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql } from 'kysely';
import { recordChange, type ChangeOrigin } from '../changes/record-change.ts';
import type { Database, DatabaseOrTransaction } from '../connection/connection.ts';
import { findAccountOf } from '../accounts/environments.ts';
import {
  cancelRotation,
  findSigningKeys,
  promoteSigningKey,
  replaceSigningKey,
  startRotation,
  type KeyChange,
  type KeyRotation,
  type SigningKeys,
} from './signing-keys.ts';
import { transactOnce } from '../changes/transact-once.ts';
import { lockWebhook } from './webhooks.ts';

/** Adds the next key; `not_now` while a rotation is under way. */
export function rotateWebhookSecret(
  database: Database,
  lane: LaneKey,
  rotation: KeyRotation,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<KeyChange> {
  return record(database, lane, origin, nowMs, (transaction) =>
    startRotation(transaction, lane, rotation, nowMs),
  );
}

/**
 * Ends a rotation: the next key becomes the key. `not_now` if no rotation is in progress, or another key than `stored`
 * is.
 */
export const promoteWebhookSecret = recordedEnd(promoteSigningKey);

/**
 * Ends a rotation: the old key stays the key. `not_now` if no rotation is in progress, or another next key than
 * `stored` is.
 */
export const cancelWebhookSecret = recordedEnd(cancelRotation);

function recordedEnd(end: typeof promoteSigningKey | typeof cancelRotation) {
  return (
    database: Database,
    lane: LaneKey,
    origin: ChangeOrigin,
    nowMs: number,
    stored?: string,
  ): Promise<KeyChange> =>
    record(database, lane, origin, nowMs, (transaction) => end(transaction, lane, nowMs, stored));
}

/** A key in the place of the one that is stored. */
export interface KeyReplacement {
  readonly stored: string;
  readonly sealed: string;
  /** Called when only the commit is left to do; if it throws, the key is not replaced. */
  readonly beforeCommit: () => Promise<void>;
}

/** Replaces a webhook's key at once, unless it was changed meanwhile: then `not_now`, as while a rotation is under way. */
export function replaceWebhookSecret(
  database: Database,
  lane: LaneKey,
  replacement: KeyReplacement,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<KeyChange> {
  return record(
    database,
    lane,
    origin,
    nowMs,
    (transaction) => replaceSigningKey(transaction, lane, replacement, nowMs),
    replacement.beforeCommit,
  );
}

/**
 * Replaces the key that webhooks made later sign with, unless it was changed meanwhile: then false. By the
 * unique index of `environment_id`.
 */
export function replaceWorkspaceSecret(
  database: Database,
  environmentId: number,
  { stored, sealed: encrypted, beforeCommit }: KeyReplacement,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<boolean> {
  return database.transaction().execute(async (transaction) => {
    const { rows } = await sql<{ accountId: number; name: string }>`
      update environments set webhook_signing_key = ${encrypted}
       where environment_id = ${environmentId} and webhook_signing_key = ${stored}
      returning account_id::int as "accountId", name`.execute(transaction);
    const [changed] = rows;
    if (!changed) return false;
    const { accountId, name } = changed;
    const change = {
      objectType: 'environment',
      objectId: environmentId,
      objectName: name,
      environmentId,
      before: { webhook_signing_key: stored },
      after: { webhook_signing_key: encrypted },
    } as const;
    await recordChange(transaction, accountId, origin, change, nowMs);
    await beforeCommit();
    return true;
  });
}

async function record(
  database: Database,
  lane: LaneKey,
  origin: ChangeOrigin,
  nowMs: number,
  change: (transaction: DatabaseOrTransaction) => Promise<KeyChange>,
  beforeCommit?: () => Promise<void>,
): Promise<KeyChange> {
  const { environmentId, webhookId } = lane;
  const isChange = ({ outcome }: KeyChange): boolean => outcome === 'changed';
  return transactOnce(database, origin.call, isChange, async (transaction) => {
    const accountId = await findAccountOf(transaction, environmentId);
    const webhook = await lockWebhook(transaction, environmentId, webhookId);
    const before = await findSigningKeys(transaction, lane, nowMs);
    if (accountId === undefined || !webhook || !before) return { outcome: 'not_found' };
    const changed = await change(transaction);
    if (changed.outcome !== 'changed') return changed;
    await recordChange(
      transaction,
      accountId,
      origin,
      {
        objectType: 'reporting_webhook',
        objectId: webhookId,
        objectName: webhook.name,
        environmentId,
        before: auditState(before),
        after: auditState(changed.keys),
      },
      nowMs,
    );
    await beforeCommit?.();
    return changed;
  });
}

const auditState = (keys: SigningKeys): AuditState<'reporting_webhook'> => ({
  signing_key: keys.signingKey,
  next_signing_key: keys.next?.signingKey ?? null,
});
