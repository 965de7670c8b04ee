/**
 * Finds and gives up secrets whose encryption key is lost. They are secrets of webhooks, users and identity providers
 * that no key of the installation opens. Afterwards the services start again.
 *
 * Each is a transaction of its own with its entry in the audit log. Cut at any moment and begun again, it continues
 * with the rest. A new key is shown when only the commit is left to do. So every key in force was shown, and of the
 * shown keys only the last may not be in force. It is in force if the secret that it replaces no longer counts as lost.
 *
 * Beside `encrypt-secrets.ts`, which encrypts the other secrets anew; `scripts/secrets.ts` is its door.
 */
import type { Database } from '@sluice/database/connection/connection';
import { forgetClientSecret } from '@sluice/database/users/identity-providers';
import { resetSecondFactor } from '@sluice/database/users/second-factors';
import {
  contextOf,
  listSecrets,
  type NamedSecret,
} from '@sluice/database/webhooks/encrypted-secrets';
import {
  cancelWebhookSecret,
  promoteWebhookSecret,
  replaceWebhookSecret,
  replaceWorkspaceSecret,
  type KeyReplacement,
} from '@sluice/database/webhooks/signing-key-changes';
import { findSigningKeys, promoteDueSigningKeys } from '@sluice/database/webhooks/signing-keys';
import { changeWebhook } from '@sluice/database/webhooks/webhook-changes';
import { AppError } from '@sluice/domain/values/errors';
import { encryptionKeyId, type EncryptedText } from '@sluice/platform/secrets/encrypted-text';

export interface LostSecret extends NamedSecret {
  /** Of the key that encrypted it. */
  readonly keyId: string;
}

type Replacement =
  | {
      readonly change: 'key_replaced';
      /** The new key, to be shown once. */
      readonly secret: string;
    }
  | {
      readonly change:
        | 'rotation_promoted'
        | 'rotation_cancelled'
        | 'headers_removed'
        | 'credentials_removed'
        | 'second_factor_removed'
        | 'client_secret_removed';
    };

export type ReplacedSecret = LostSecret & Replacement;

export interface ReplaceSecretsDeps {
  readonly database: Database;
  readonly encryptedText: EncryptedText;
  /** Makes a key that cannot be guessed. */
  readonly newSecret: () => string;
  /**
   * Called with the secret and its replacement. A new key is in force only after this returns, and never if it throws.
   */
  readonly tell: (replaced: ReplacedSecret) => Promise<void>;
  readonly now: () => number;
}

const BY_OPERATOR = { actor: { type: 'system' } } as const;

/** The secrets that do not open, and the number of all secrets. Only reads. */
export async function findLostSecrets(
  database: Database,
  encryptedText: EncryptedText,
): Promise<{ readonly lost: readonly LostSecret[]; readonly count: number }> {
  const secrets = await listSecrets(database);
  const lost = secrets
    .filter((secret) => !opens(encryptedText, secret))
    .map((secret) => ({ ...secret, keyId: encryptionKeyId(secret.stored) }));
  return { lost, count: secrets.length };
}

/**
 * Gives up the secrets that the key of this id encrypted and no key opens. Secrets that open are never touched, nor
 * ones that were deleted or changed at the same time.
 *
 * | lost secret | replacement |
 * |---|---|
 * | the key of a workspace, which webhooks made later sign with | a new one |
 * | the key of a webhook | a new one; during a rotation, the next one |
 * | the next key of a webhook | removed, and the rotation is cancelled |
 * | the headers of a webhook | removed |
 * | the client certificate, authority and OAuth2 client of a webhook | removed |
 * | the second factor of a user | removed; the user's sessions end, and the user sets up another |
 * | the client secret of an identity provider | removed; sign-in by it needs a new one from the account |
 *
 * @returns how many were given up.
 */
export async function replaceLostSecrets(deps: ReplaceSecretsDeps, keyId: string): Promise<number> {
  const { database, encryptedText, now } = deps;
  // The old key of a rotation that is over is not in use any more.
  await promoteDueSigningKeys(database, now());
  const { lost } = await findLostSecrets(database, encryptedText);
  let count = 0;
  for (const secret of lost) {
    const change = secret.keyId === keyId ? await replace(deps, secret) : undefined;
    if (change === undefined) continue;
    count += 1;
    if (change !== 'key_replaced') await deps.tell({ ...secret, change });
  }
  return count;
}

/** Calls `tell` for a new key itself. Undefined if it was changed meanwhile. */
async function replace(
  deps: ReplaceSecretsDeps,
  lost: LostSecret,
): Promise<Replacement['change'] | undefined> {
  const { database, now } = deps;
  const { place, environmentId, webhookId, accountId, userId, stored } = lost;
  const lane = { environmentId, webhookId };
  const by = [BY_OPERATOR, now()] as const;
  switch (place) {
    case 'headers': {
      const none = { customHeaders: null };
      const before = { stored: { customHeaders: stored } };
      const changed = await changeWebhook(database, environmentId, webhookId, none, ...by, before);
      return changed && 'headers_removed';
    }
    case 'credentials': {
      const none = { endpointCredentials: null };
      const before = { stored: { endpointCredentials: stored } };
      const changed = await changeWebhook(database, environmentId, webhookId, none, ...by, before);
      return changed && 'credentials_removed';
    }
    case 'next': {
      const { outcome } = await cancelWebhookSecret(database, lane, ...by, stored);
      return outcome === 'changed' ? 'rotation_cancelled' : undefined;
    }
    case 'webhook': {
      // A next key that was lost as well was given up before: it is listed before.
      if ((await findSigningKeys(database, lane, by[1]))?.next) {
        const { outcome } = await promoteWebhookSecret(database, lane, ...by, stored);
        return outcome === 'changed' ? 'rotation_promoted' : undefined;
      }
      const { outcome } = await replaceWebhookSecret(database, lane, newKeyFor(deps, lost), ...by);
      return outcome === 'changed' ? 'key_replaced' : undefined;
    }
    case 'environment': {
      const change = newKeyFor(deps, lost);
      const isReplaced = await replaceWorkspaceSecret(database, environmentId, change, ...by);
      return isReplaced ? 'key_replaced' : undefined;
    }
    case 'second_factor': {
      const user = { accountId, userId };
      const isReset = await resetSecondFactor(database, user, ...by, stored);
      return isReset ? 'second_factor_removed' : undefined;
    }
    case 'client_secret': {
      const isForgotten = await forgetClientSecret(database, accountId, stored, ...by);
      return isForgotten ? 'client_secret_removed' : undefined;
    }
  }
}

function newKeyFor(
  { encryptedText, newSecret, tell }: ReplaceSecretsDeps,
  lost: LostSecret,
): KeyReplacement {
  const secret = newSecret();
  return {
    stored: lost.stored,
    sealed: encryptedText.encrypt(secret, contextOf(lost)),
    beforeCommit: () => tell({ ...lost, change: 'key_replaced', secret }),
  };
}

function opens(encryptedText: EncryptedText, secret: NamedSecret): boolean {
  try {
    encryptedText.decrypt(secret.stored, contextOf(secret));
    return true;
  } catch (error) {
    if (error instanceof AppError && error.code === 'SECRET_UNREADABLE') return false;
    throw error;
  }
}
