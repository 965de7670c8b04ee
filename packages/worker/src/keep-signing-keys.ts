/**
 * Keeps the signing keys in the database as they should be: sealed, by the first of the
 * installation's keys, and none that a rotation has put out of use.
 *
 * Run it before anything is sent, and every minute: it seals what was there before there was a key,
 * what somebody made by hand, and all of it again when the installation's key is replaced. Where
 * nothing is to be done it reads the webhooks and the workspaces once. Safe to run anywhere at the
 * same time: a key is replaced only where it still stands as it was read.
 */
import type { Database } from '@sluice/database/connection';
import {
  listSigningKeysWithout,
  promoteDueSigningKeys,
  replaceSigningKeys,
} from '@sluice/database/signing-keys';
import { secretContext } from '@sluice/domain/webhook';
import type { SealedText } from '@sluice/platform/sealed-text';

export interface KeepSigningKeysDeps {
  readonly database: Database;
  readonly sealedText: SealedText;
  readonly now: () => number;
}

const KEYS_PER_STEP = 500;

/** @throws AppError SECRET_UNREADABLE when a key was sealed with one that is not there. */
export async function keepSigningKeys(deps: KeepSigningKeysDeps): Promise<void> {
  const { database, sealedText } = deps;
  await promoteDueSigningKeys(database, deps.now());
  for (;;) {
    const keys = await listSigningKeysWithout(database, sealedText.prefix, KEYS_PER_STEP);
    if (keys.length === 0) return;
    const changes = keys.map((key) => {
      const context = secretContext(key.environmentId);
      return { ...key, sealed: sealedText.seal(sealedText.open(key.stored, context), context) };
    });
    await replaceSigningKeys(database, changes);
  }
}

/** Opens the secrets of webhooks, each in its workspace. */
export const secretOpener =
  (sealedText: SealedText) =>
  (environmentId: number, sealed: string): string =>
    sealedText.open(sealed, secretContext(environmentId));
