/**
 * Keeps the secrets of webhooks in the database (what they sign with, and their headers) as they should
 * be: sealed, by the first of the installation's keys, and no signing key that a rotation has put out of use.
 *
 * Run it before anything is sent, and every minute: it seals what was there before there was a key,
 * what somebody made by hand, and all of it again when the installation's key is replaced. With nothing to do it
 * reads the webhooks and the workspaces once. Safe to run anywhere at the same time: a secret is replaced only where
 * it still stands as it was read.
 */
import type { Database } from '@sluice/database/connection/connection';
import { listSecretsWithout, replaceSecrets } from '@sluice/database/webhooks/sealed-secrets';
import { promoteDueSigningKeys } from '@sluice/database/webhooks/signing-keys';
import { secretContext } from '@sluice/domain/delivery/webhook';
import type { SealedText } from '@sluice/platform/secrets/sealed-text';

export interface KeepSecretsDeps {
  readonly database: Database;
  readonly sealedText: SealedText;
  readonly now: () => number;
}

const SECRETS_PER_STEP = 500;

/** @throws AppError SECRET_UNREADABLE when a secret was sealed with a key that the installation does not have. */
export async function keepSecrets(deps: KeepSecretsDeps): Promise<void> {
  const { database, sealedText } = deps;
  await promoteDueSigningKeys(database, deps.now());
  for (;;) {
    const secrets = await listSecretsWithout(database, sealedText.prefix, SECRETS_PER_STEP);
    if (secrets.length === 0) return;
    const changes = secrets.map((secret) => {
      const context = secretContext(secret.environmentId);
      return {
        ...secret,
        sealed: sealedText.seal(sealedText.open(secret.stored, context), context),
      };
    });
    await replaceSecrets(database, changes);
  }
}

/** Opens the secrets of webhooks, each in its workspace. */
export const secretOpener =
  (sealedText: SealedText) =>
  (environmentId: number, sealed: string): string =>
    sealedText.open(sealed, secretContext(environmentId));
