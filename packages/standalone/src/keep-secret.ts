/**
 * Secrets of this installation, kept in files of its data directory: made at the first start and the same ever after.
 * The encrypted parts of a copy of the database alone cannot be read; a moved data directory takes both along.
 */
import { randomBytes } from 'node:crypto';
import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '@sluice/domain/values/errors';

/**
 * `SEALING_KEYS`: the keys that encrypt secrets in the database.
 *
 * @throws AppError CONFIG_INVALID if the file is empty: a new key would not open the stored secrets.
 */
export async function keepEncryptionKeys(directory: string): Promise<string> {
  const path = join(directory, 'sealing-keys');
  const kept = await readSecret(path);
  if (kept === '') {
    throw new AppError(
      'CONFIG_INVALID',
      `${path} is empty: restore it from a backup, or set the keys in SEALING_KEYS. If no secret was encrypted yet, delete the file and start again`,
    );
  }
  return kept ?? writeSecret(directory, path, `1:${randomBytes(32).toString('base64')}`);
}

/** `API_SECRET`: its signatures stay good after the next start. */
export async function keepApiSecret(directory: string): Promise<string> {
  const path = join(directory, 'api-secret');
  // A machine that stops can leave the file empty, and an empty secret is one that everybody knows.
  return (
    (await readSecret(path)) || writeSecret(directory, path, randomBytes(32).toString('base64url'))
  );
}

/** Undefined if it was never written. */
async function readSecret(path: string): Promise<string | undefined> {
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
}

/** The caller holds the directory, so no other process makes another one meanwhile. */
async function writeSecret(directory: string, path: string, secret: string): Promise<string> {
  // Whole and on disk before anything is encrypted or signed with it, whenever the machine stops.
  const file = await open(`${path}.new`, 'w', 0o600);
  try {
    await file.writeFile(`${secret}\n`);
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
  const folder = await open(directory, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
  return secret;
}
