/**
 * Keeps the secrets in the database encrypted, by the first key. They are the signing keys and headers of webhooks and
 * the second factors of users. It also removes signing keys that a rotation has put out of use.
 *
 * Run it before the first delivery is sent, and every minute. It encrypts secrets that are older than the key, secrets
 * that a person wrote by hand, and all of them again when the installation's key is replaced. Without work it looks
 * into five indexes. Safe to run anywhere at the same time: a secret is replaced only if it is unchanged
 * since it was read.
 */
import type { Database } from '@sluice/database/connection/connection';
import {
  contextOf,
  listSecretsWithout,
  replaceSecrets,
} from '@sluice/database/webhooks/encrypted-secrets';
import { promoteDueSigningKeys } from '@sluice/database/webhooks/signing-keys';
import { secretContext } from '@sluice/domain/delivery/webhook';
import type { EncryptedText } from '@sluice/platform/secrets/encrypted-text';

export interface EncryptSecretsDeps {
  readonly database: Database;
  readonly encryptedText: EncryptedText;
  readonly now: () => number;
}

const SECRETS_PER_STEP = 500;

/** @throws AppError SECRET_UNREADABLE when a secret was encrypted with a key that the installation does not have. */
export async function encryptSecrets(deps: EncryptSecretsDeps): Promise<void> {
  const { database, encryptedText } = deps;
  await promoteDueSigningKeys(database, deps.now());
  for (;;) {
    const secrets = await listSecretsWithout(database, encryptedText.prefix, SECRETS_PER_STEP);
    if (secrets.length === 0) return;
    const changes = secrets.map((secret) => {
      const context = contextOf(secret);
      return {
        ...secret,
        sealed: encryptedText.encrypt(encryptedText.decrypt(secret.stored, context), context),
      };
    });
    await replaceSecrets(database, changes);
  }
}

/** Opens and encrypts the secrets of webhooks, each in its workspace. `openSecret` throws AppError SECRET_UNREADABLE. */
export const webhookSecrets = (encryptedText: EncryptedText) => ({
  openSecret: (environmentId: number, encrypted: string): string =>
    encryptedText.decrypt(encrypted, secretContext(environmentId)),
  encryptSecret: (environmentId: number, text: string): string =>
    encryptedText.encrypt(text, secretContext(environmentId)),
});
