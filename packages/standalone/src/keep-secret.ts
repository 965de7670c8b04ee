/**
 * Secrets of this installation, kept in files of its data directory: made at the first start, the same
 * ever after. Whoever copies the database alone cannot read what is sealed in it; whoever moves the data
 * directory takes both along.
 */
import { randomBytes } from 'node:crypto';
import { open, readFile, rename } from 'node:fs/promises';
import { join } from 'node:path';

/** `SEALING_KEYS`: what secrets in the database are encrypted with. */
export const keepSealingKeys = (directory: string): Promise<string> =>
  keepSecret(directory, 'sealing-keys', () => `1:${randomBytes(32).toString('base64')}`);

/** `API_SECRET`: what it signed stays good after the next start. */
export const keepApiSecret = (directory: string): Promise<string> =>
  keepSecret(directory, 'api-secret', () => randomBytes(32).toString('base64url'));

/** The directory is held by the caller, so nobody makes another one meanwhile. */
async function keepSecret(directory: string, name: string, make: () => string): Promise<string> {
  const path = join(directory, name);
  try {
    return (await readFile(path, 'utf8')).trim();
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  }
  const secret = make();
  // Whole and on disk before anything is sealed or signed with it, whenever the machine stops.
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
