/**
 * Secrets of webhooks that none of the installation's keys opens, because the key that sealed them is lost:
 * finds them, and gives them up, so that the services start again.
 *
 * | what does not open | what takes its place |
 * |---|---|
 * | the key of a workspace, which webhooks made later sign with | a new one |
 * | the key of a webhook | a new one; where a rotation is under way, the next one |
 * | the next key of a webhook | nothing: the rotation is cancelled |
 * | the headers of a webhook | nothing |
 *
 * Each is a transaction of its own with its entry of the audit log. Cut at any moment and begun again, it goes
 * on with what is left.
 *
 * Beside `keep-secrets.ts`, which seals anew what does open; `scripts/secrets.ts` is its door.
 */
import type { Database } from '@sluice/database/connection';
import { listSecrets, type NamedSecret } from '@sluice/database/sealed-secrets';
import {
  cancelWebhookSecret,
  promoteWebhookSecret,
  replaceWorkspaceSecret,
  rotateWebhookSecret,
} from '@sluice/database/signing-key-changes';
import { findSigningKeys, promoteDueSigningKeys } from '@sluice/database/signing-keys';
import { changeWebhook } from '@sluice/database/webhook-changes';
import { AppError } from '@sluice/domain/errors';
import { secretContext } from '@sluice/domain/webhook';
import { sealingKeyId, type SealedText } from '@sluice/platform/sealed-text';

export interface LostSecret extends NamedSecret {
  /** Of the key that sealed it. */
  readonly keyId: string;
}

type Replacement =
  | {
      readonly change: 'key_replaced';
      /** The new key, to be shown once. */
      readonly secret: string;
    }
  | { readonly change: 'rotation_promoted' | 'rotation_cancelled' | 'headers_removed' };

export type ReplacedSecret = LostSecret & Replacement;

export interface ReplaceSecretsDeps {
  readonly database: Database;
  readonly sealedText: SealedText;
  /** Nobody can guess it. */
  readonly newSecret: () => string;
  readonly now: () => number;
}

const BY_OPERATOR = { actor: { type: 'system' } } as const;

/** What does not open, and how many secrets there are. Changes nothing. */
export async function findLostSecrets(
  database: Database,
  sealedText: SealedText,
): Promise<{ readonly lost: readonly LostSecret[]; readonly count: number }> {
  const secrets = await listSecrets(database);
  const lost = secrets
    .filter(({ environmentId, stored }) => !opens(sealedText, environmentId, stored))
    .map((secret) => ({ ...secret, keyId: sealingKeyId(secret.stored) }));
  return { lost, count: secrets.length };
}

/**
 * Gives up what the key of this id sealed and no key opens; what opens is never touched. Yields each once it
 * is done; none of a webhook that was deleted, or whose keys were changed, at the same time.
 */
export async function* replaceLostSecrets(
  deps: ReplaceSecretsDeps,
  keyId: string,
): AsyncGenerator<ReplacedSecret> {
  const { database, sealedText, now } = deps;
  // What a rotation that is over has left is in use no more.
  await promoteDueSigningKeys(database, now());
  const { lost } = await findLostSecrets(database, sealedText);
  for (const secret of lost) {
    const replacement = secret.keyId === keyId ? await replace(deps, secret) : undefined;
    if (replacement) yield { ...secret, ...replacement };
  }
}

async function replace(
  { database, sealedText, newSecret, now }: ReplaceSecretsDeps,
  { place, environmentId, webhookId, stored }: LostSecret,
): Promise<Replacement | undefined> {
  const lane = { environmentId, webhookId };
  const nowMs = now();
  switch (place) {
    case 'headers': {
      const none = { customHeaders: null };
      return (await changeWebhook(database, environmentId, webhookId, none, BY_OPERATOR, nowMs))
        ? { change: 'headers_removed' }
        : undefined;
    }
    case 'next': {
      const { outcome } = await cancelWebhookSecret(database, lane, BY_OPERATOR, nowMs);
      return outcome === 'changed' ? { change: 'rotation_cancelled' } : undefined;
    }
    case 'webhook': {
      // A next key that was lost as well was given up before: it is listed before.
      if ((await findSigningKeys(database, lane, nowMs))?.next) {
        const { outcome } = await promoteWebhookSecret(database, lane, BY_OPERATOR, nowMs);
        return outcome === 'changed' ? { change: 'rotation_promoted' } : undefined;
      }
      const secret = newSecret();
      const signingKey = sealedText.seal(secret, secretContext(environmentId));
      const rotation = { signingKey, signsFromMs: nowMs };
      const { outcome } = await rotateWebhookSecret(database, lane, rotation, BY_OPERATOR, nowMs);
      await promoteDueSigningKeys(database, nowMs);
      return outcome === 'changed' ? { change: 'key_replaced', secret } : undefined;
    }
    case 'environment': {
      const secret = newSecret();
      const sealed = sealedText.seal(secret, secretContext(environmentId));
      const change = { stored, sealed };
      return (await replaceWorkspaceSecret(database, environmentId, change, BY_OPERATOR, nowMs))
        ? { change: 'key_replaced', secret }
        : undefined;
    }
  }
}

function opens(sealedText: SealedText, environmentId: number, stored: string): boolean {
  try {
    sealedText.open(stored, secretContext(environmentId));
    return true;
  } catch (error) {
    if (error instanceof AppError && error.code === 'SECRET_UNREADABLE') return false;
    throw error;
  }
}
