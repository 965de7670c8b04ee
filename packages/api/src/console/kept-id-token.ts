/**
 * The ID token of a session. Kept for the sign-out at the identity provider.
 *
 * It names the person, so it is encrypted, by a key that is made from the cookie: the database, which has the cookie's
 * hash alone, cannot open it.
 */
import { findIdToken } from '@sluice/database/users/console-sessions';
import type { NewSessionSecret } from '@sluice/database/users/session-openings';
import type { Database } from '@sluice/database/connection/connection';
import { createEncryptedText } from '@sluice/platform/secrets/encrypted-text';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import { hkdfSync } from 'node:crypto';

/** It goes back in an address, for which servers and proxies take about 8 KB. */
const LENGTH_MAX = 6_000;
const KEY_SIZE_BYTES = 32;
const CONTEXT = 'ID token of a session';

/** @returns null if it is too long to be stored. */
export const encryptIdToken = (cookie: string, idToken: string): string | null =>
  idToken === '' || idToken.length > LENGTH_MAX ? null : textOf(cookie).encrypt(idToken, CONTEXT);

/** The ID token of the session that has the cookie; undefined if it is not stored. */
export async function readIdToken(
  database: Database,
  accountId: number,
  cookie: string,
): Promise<string | undefined> {
  const kept = await findIdToken(database, accountId, hashSecret(cookie));
  return kept === null ? undefined : textOf(cookie).decrypt(kept, CONTEXT);
}

/** The new values of a session that gets another cookie. */
export async function renewSecret(
  database: Database,
  accountId: number,
  before: string,
  after: string,
): Promise<NewSessionSecret> {
  const idToken = await readIdToken(database, accountId, before);
  return {
    sessionHash: hashSecret(after),
    idToken: idToken === undefined ? null : encryptIdToken(after, idToken),
  };
}

const textOf = (cookie: string) =>
  createEncryptedText([
    { id: 'cookie', key: Buffer.from(hkdfSync('sha256', cookie, '', CONTEXT, KEY_SIZE_BYTES)) },
  ]);
