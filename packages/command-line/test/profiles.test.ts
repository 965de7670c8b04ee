/** Profiles: the options that a command takes from them, and the protection of their keys from other users. */
import { chmodSync, mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createBareProgram, resolveOptions } from '../src/connection/program-options.ts';
import {
  type Profiles,
  profilesFile,
  readProfiles,
  removeProfile,
  writeProfile,
} from '../src/connection/profiles.ts';

function newFile(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-profiles-'));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return profilesFile({ XDG_CONFIG_HOME: folder });
}

test('a profile is kept beside the others, for its owner alone', () => {
  const file = newFile();
  expect(readProfiles(file)).toEqual({});
  writeProfile(file, 'default', { key: 'a' });
  writeProfile(file, 'shop', { key: 'b', apiUrl: 'https://api.example.com' });
  writeProfile(file, 'default', { key: 'c' });
  expect(readProfiles(file)).toEqual({
    default: { key: 'c' },
    shop: { key: 'b', apiUrl: 'https://api.example.com' },
  });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  for (const name of ['default', 'unknown']) removeProfile(file, name);
  expect(readProfiles(file)).toEqual({ shop: { key: 'b', apiUrl: 'https://api.example.com' } });
  expect(statSync(file).mode & 0o777).toBe(0o600);
  chmodSync(file, 0o640);
  expect(() => readProfiles(file)).toThrow(`chmod 600 ${file}`);
});

test.each(['[]', '{', '{"a": 1}', '{"a": {"kye": "x"}}'])('%s is no file of profiles', (text) => {
  const file = newFile();
  writeProfile(file, 'a', {});
  writeFileSync(file, text);
  expect(() => readProfiles(file)).toThrow('is no JSON object of profiles');
});

const START = {
  ...{ intakeUrl: 'http://i:1', apiUrl: 'http://a:1', workerUrl: 'http://w:1' },
  settings: {},
};

test('options win over the profile, the profile over a running start, and a running start over the default', async () => {
  const profiles: Profiles = {
    default: { apiUrl: 'http://default', key: 'default-key' },
    shop: { apiUrl: 'http://shop', key: 'shop-key', workerUrls: ['http://w2'], account: 7 },
  };
  const optionsOf = async (words: string[], start: typeof START | undefined) => {
    const program = createBareProgram('1', start);
    program.command('status').action(() => undefined);
    await program.parseAsync(['status', ...words], { from: 'user' });
    const sources = { runningStart: start, readProfiles: () => profiles, profilesFile: 'FILE' };
    return resolveOptions(program, sources);
  };
  expect(await optionsOf(['--profile', 'shop'], START)).toMatchObject({
    ...{ apiUrl: 'http://shop', key: 'shop-key', account: 7 },
    workerUrls: ['http://w2'],
    // The values of this machine and of the demo would lead to another installation.
    ...{ intakeUrl: undefined, token: undefined, writeKey: undefined },
  });
  expect(await optionsOf(['--profile', 'shop', '--intake-url', 'http://i'], START)).toMatchObject({
    intakeUrl: 'http://i',
  });
  expect(await optionsOf(['--profile', 'shop', '--key', 'given'], START)).toMatchObject({
    key: 'given',
    apiUrl: 'http://shop',
  });
  // Also if the words name the same API as the profile.
  expect(
    await optionsOf(['--profile', 'shop', '--api-url', 'http://shop'], undefined),
  ).toMatchObject({ apiUrl: 'http://shop', intakeUrl: undefined, token: undefined });
  expect(await optionsOf([], START)).toMatchObject({
    ...{ apiUrl: 'http://a:1', intakeUrl: 'http://i:1', key: 'demo_app_key' },
    ...{ token: 'sa_sandbox_demo', writeKey: 'demo_write_key', workerUrls: ['http://w:1'] },
  });
  expect(await optionsOf([], undefined)).toMatchObject({
    apiUrl: 'http://default',
    key: 'default-key',
  });
  await expect(optionsOf(['--profile', 'shpo'], START)).rejects.toThrow(
    'there is no profile shpo in FILE; there are default, shop',
  );
});
