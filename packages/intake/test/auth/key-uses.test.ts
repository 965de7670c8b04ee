/** Marks of used keys: which calls set them, and when they are saved. */
import { createHash } from 'node:crypto';
import type { KeyUse, WorkspaceKey } from '@sluice/database/accounts/workspace-keys';
import { expect, test } from 'vitest';
import { KeyRing } from '../../src/auth/authenticate.ts';

const MINUTE_MS = 60_000;
const START_MS = 1_790_000_000_000;

const hashed = (secret: string) => createHash('sha256').update(secret).digest();
const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;
const key = (credentialId: string, secret: string, siteId: string | null): WorkspaceKey => ({
  kind: siteId === null ? 'pipelines' : 'track',
  siteId,
  secretHash: hashed(secret),
  environmentId: 1,
  accountId: '5',
  phoneIdentifies: false,
  credentialId,
});
const PIPELINES = key('7', 'one', null);
const TRACK = key('8', 'two', 'site');

function world() {
  const keys = new KeyRing();
  keys.replace([PIPELINES, TRACK]);
  /** Ids with the seconds after the start that are saved `seconds` after it. */
  const savedAfter = async (seconds: number): Promise<[number, number][]> => {
    const saved: [number, number][] = [];
    await keys.uses.save(START_MS + seconds * 1_000, (uses) => {
      for (const { credentialId, usedAtMs } of uses)
        saved.push([credentialId, (usedAtMs - START_MS) / 1_000]);
      return Promise.resolve();
    });
    return saved;
  };
  return { keys, savedAfter };
}

test('each way to show a key is a use of it, also by a header that is remembered', async () => {
  const { keys, savedAfter } = world();
  expect(await savedAfter(0)).toEqual([]);
  keys.authenticatePipelines(basic('one:'));
  expect(await savedAfter(1)).toEqual([[7, 1]]);
  keys.authenticatePipelines(basic('one:'));
  expect(await savedAfter(100)).toEqual([[7, 100]]);
  keys.authenticateWriteKey('one');
  keys.authenticateTrack(basic('site:two'));
  expect(await savedAfter(200)).toEqual([
    [7, 200],
    [8, 200],
  ]);
  keys.authenticateTrack(basic('site:two'));
  expect(await savedAfter(300)).toEqual([[8, 300]]);
});

test('a call with a wrong secret leaves the key unused', async () => {
  const { keys, savedAfter } = world();
  keys.authenticatePipelines(basic('one:password'));
  keys.authenticatePipelines(basic('other:'));
  keys.authenticateWriteKey('other');
  keys.authenticateTrack(basic('site:other'));
  expect(await savedAfter(0)).toEqual([]);
});

test('a key is saved once a minute, with the time of its latest use', async () => {
  const { keys, savedAfter } = world();
  const use = () => keys.authenticatePipelines(basic('one:'));
  use();
  expect(await savedAfter(0)).toEqual([[7, 0]]);
  for (const seconds of [1, 20, 40]) {
    use();
    expect(await savedAfter(seconds)).toEqual([]);
  }
  expect(await savedAfter(59)).toEqual([]);
  expect(await savedAfter(60)).toEqual([[7, 40]]);
  expect(await savedAfter(200)).toEqual([]);
});

test('a use that could not be saved is saved a minute later', async () => {
  const { keys, savedAfter } = world();
  keys.authenticatePipelines(basic('one:'));
  const failed = keys.uses.save(START_MS, () => Promise.reject(new Error('away')));
  await expect(failed).rejects.toThrow('away');
  expect(await savedAfter(59)).toEqual([]);
  expect(await savedAfter(60)).toEqual([[7, 0]]);
});

test('a use survives a change of keys, unless its key is revoked', async () => {
  const { keys, savedAfter } = world();
  keys.authenticatePipelines(basic('one:'));
  keys.authenticateTrack(basic('site:two'));
  keys.replace([PIPELINES, key('9', 'three', null)]);
  expect(await savedAfter(0)).toEqual([[7, 0]]);
});

test('a use names the account of its key', async () => {
  const { keys } = world();
  keys.authenticatePipelines(basic('one:'));
  const saved: KeyUse[] = [];
  await keys.uses.save(START_MS + MINUTE_MS, (uses) => {
    saved.push(...uses);
    return Promise.resolve();
  });
  expect(saved).toEqual([{ accountId: 5, credentialId: 7, usedAtMs: START_MS + MINUTE_MS }]);
});
