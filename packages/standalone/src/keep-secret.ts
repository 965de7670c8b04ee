/** The API's secret, made at the first start and kept beside the data: what it signed stays good after the next start. */
import { randomBytes } from 'node:crypto';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const FILE_NAME = 'api-secret';

/** The directory is held by this process alone. */
export async function keepSecret(directory: string): Promise<string> {
  const file = join(directory, FILE_NAME);
  const kept = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined;
    throw error;
  });
  if (kept !== undefined) return kept.trim();
  const secret = randomBytes(32).toString('base64url');
  await writeFile(file, `${secret}\n`, { mode: 0o600 });
  return secret;
}
