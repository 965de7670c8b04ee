import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { keepApiSecret, keepEncryptionKeys } from '../src/keep-secret.ts';

async function makeDirectory(): Promise<string> {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-secrets-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  return directory;
}

test.each([keepEncryptionKeys, keepApiSecret])(
  '%o: made once, the same ever after',
  async (keep) => {
    const directory = await makeDirectory();
    const secret = await keep(directory);
    expect(secret.length).toBeGreaterThan(40);
    expect(await keep(directory)).toBe(secret);
    expect(await keep(await makeDirectory())).not.toBe(secret);
  },
);

test('an empty API secret, which everybody could sign with, is made anew', async () => {
  const directory = await makeDirectory();
  await writeFile(join(directory, 'api-secret'), '\n');
  const secret = await keepApiSecret(directory);
  expect(secret).toMatch(/^[\w-]{43}$/);
  expect(await keepApiSecret(directory)).toBe(secret);
});

test('an empty file of encryption keys is not replaced, because their secrets would never open again', async () => {
  const directory = await makeDirectory();
  const path = join(directory, 'sealing-keys');
  await writeFile(path, '');
  await expect(keepEncryptionKeys(directory)).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringMatching(`^${path} is empty: .*SEALING_KEYS`),
  });
  expect(await readFile(path, 'utf8')).toBe('');
});
