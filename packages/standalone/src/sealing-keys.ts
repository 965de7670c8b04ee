/**
 * The keys that this installation's secrets are sealed with (`SEALING_KEYS`), kept in its data
 * directory: made at the first start, the same ever after. Whoever copies the database alone cannot
 * read the secrets in it; whoever moves the data directory takes both along.
 */
import { randomBytes } from 'node:crypto';
import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';

const FILE_NAME = 'sealing-keys';
const KEY_SIZE_BYTES = 32;

/** @returns the setting's text. The directory is held by the caller, so nobody makes others meanwhile. */
export async function keepSealingKeys(directory: string): Promise<string> {
  const path = join(directory, FILE_NAME);
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
  const keys = `1:${randomBytes(KEY_SIZE_BYTES).toString('base64')}`;
  // Whole and on disk before anything is sealed with it, whenever the machine stops.
  const file = await open(`${path}.new`, 'w', 0o600);
  try {
    await file.writeFile(`${keys}\n`);
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
  return keys;
}
