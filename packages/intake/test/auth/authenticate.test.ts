import { createHash } from 'node:crypto';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import type { WorkspaceKey } from '@sluice/database/accounts/workspace-keys';
import { newKey } from '@sluice/platform/secrets/secrets';
import { describe, expect, test } from 'vitest';
import { hintOf, KeyRing } from '../../src/auth/authenticate.ts';
import { refusalOf } from '../../src/auth/shown-credentials.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const hashed = (secret: string) => createHash('sha256').update(secret).digest();
const pipelinesKey = (secret: string, environmentId: number): WorkspaceKey => ({
  kind: 'pipelines',
  siteId: null,
  secretHash: hashed(secret),
  environmentId,
  accountId: '1',
  phoneIdentifies: false,
});
const trackKey = (siteId: string, secret: string, environmentId: number): WorkspaceKey => ({
  ...pipelinesKey(secret, environmentId),
  kind: 'track',
  siteId,
});
const basic = (text: string) => `Basic ${Buffer.from(text).toString('base64')}`;

function ring(...keys: WorkspaceKey[]): KeyRing {
  const made = new KeyRing();
  made.replace(keys);
  return made;
}

describe('credentials', () => {
  test('a key opens its own workspace, on both APIs, remembered or not', () => {
    const keys = ring(
      pipelinesKey('one', 1),
      pipelinesKey('two', 2),
      trackKey('site', 'secret', 3),
    );
    for (let n = 0; n < 2; n++) {
      expect(keys.authenticatePipelines(basic('one:'))).toMatchObject({
        workspace: { environmentId: 1 },
      });
      expect(keys.authenticatePipelines(basic('two:'))).toMatchObject({
        workspace: { environmentId: 2 },
      });
      expect(keys.authenticateTrack(basic('site:secret'))).toMatchObject({
        workspace: { environmentId: 3 },
      });
    }
  });

  test('a key that passed its test here opens its workspace until it is revoked, though reads list it as untested', () => {
    const tested = { ...pipelinesKey('new', 2), testCredentialId: '7' };
    const keys = ring(pipelinesKey('one', 1), tested);
    const workspaceOf = () => keys.authenticatePipelines(basic('new:'));
    expect(workspaceOf()).toMatchObject({ workspace: { testKey: { credentialId: '7' } } });
    keys.pass({ environmentId: 2, credentialId: '7' });
    const open = { outcome: 'known', workspace: { environmentId: 2, phoneIdentifies: false } };
    expect(workspaceOf()).toEqual(open);
    keys.replace([tested]);
    expect(workspaceOf()).toEqual(open);
    // Revoked, it is refused; another key's test is its own.
    keys.replace([{ ...tested, secretHash: hashed('other'), testCredentialId: '8' }]);
    expect(workspaceOf().outcome).toBe('unknown');
    expect(keys.authenticateWriteKey('other')).toMatchObject({
      workspace: { testKey: { credentialId: '8' } },
    });
  });

  test('a key whose test another process has seen opens everything after the next reading', () => {
    const tested = pipelinesKey('new', 2);
    const keys = ring({ ...tested, testCredentialId: '7' });
    expect(keys.authenticatePipelines(basic('new:'))).toHaveProperty('workspace.testKey');
    keys.replace([tested]);
    expect(keys.authenticatePipelines(basic('new:'))).not.toHaveProperty('workspace.testKey');
  });

  // The write key of a web page is public, and blanks before it are allowed.
  test('a key in thousands of long headers opens its workspace, and intake keeps no header in memory', () => {
    const keys = ring(pipelinesKey('one', 1), trackKey('site', 'secret', 3));
    const headerOf = (text: string, n: number) => basic(text).replace(' ', ' '.repeat(10_000 + n));
    collectGarbage();
    const before = process.memoryUsage().heapUsed;
    for (let n = 0; n < 2_000; n++) {
      expect(keys.authenticatePipelines(headerOf('one:', n)).outcome).toBe('known');
      expect(keys.authenticateTrack(headerOf('site:secret', n)).outcome).toBe('known');
    }
    collectGarbage();
    // Kept, they are 44 MB.
    expect(process.memoryUsage().heapUsed - before).toBeLessThan(10_000_000);
    expect(keys.environmentIdOf(headerOf('one:', 1))).toBe(1);
  });

  test('a Pipelines key with a password opens no workspace', () => {
    expect(ring(pipelinesKey('one', 1)).authenticatePipelines(basic('one:x')).outcome).toBe(
      'unknown',
    );
  });

  test('a Track key does not open the Pipelines API, nor the other way round', () => {
    const keys = ring(pipelinesKey('one', 1), trackKey('site', 'secret', 3));
    expect(keys.authenticatePipelines(basic('secret:')).outcome).toBe('unknown');
    expect(keys.authenticatePipelines(basic('site:secret')).outcome).toBe('unknown');
    expect(keys.authenticateTrack(basic('one:')).outcome).toBe('unknown');
    expect(keys.authenticateTrack(basic(':one')).outcome).toBe('unknown');
  });

  test('a wrong API key with a known site id yields the workspace of that site, for the issues log', () => {
    const keys = ring(trackKey('site', 'secret', 3));
    expect(keys.authenticateTrack(basic('site:wrong'))).toEqual({
      outcome: 'unknown',
      siteEnvironmentId: 3,
    });
    expect(keys.authenticateTrack(basic('nobody:secret'))).toEqual({
      outcome: 'unknown',
      siteEnvironmentId: undefined,
    });
  });

  test('the hint of an unknown key has the characters that the list of keys shows, and no others', () => {
    const { text, hint } = newKey();
    for (const shown of [
      { authorization: `Bearer ${text}`, body: undefined },
      { authorization: basic(`${text}:`), body: undefined },
      { authorization: '', body: { writeKey: text } },
    ])
      expect(refusalOf(ring(), { api: 'pipelines', ...shown })).toEqual({
        reason: 'not_in_force',
        hint,
      });
    expect(hintOf(basic('our-site:secret'))).toBe('site');
    expect(hintOf(basic(':secret'))).toBeUndefined();
  });

  test('URL-safe base64 is understood, with and without padding', () => {
    const keys = ring(trackKey('site>>>???', 'secret~~~', 3));
    const text = 'site>>>???:secret~~~';
    const urlSafe = Buffer.from(text).toString('base64url');
    expect(urlSafe).toMatch(/[-_]/);
    expect(keys.authenticateTrack(`Basic ${urlSafe}`).outcome).toBe('known');
    expect(keys.authenticateTrack(`basic  ${urlSafe}==`).outcome).toBe('known');
  });

  test.each([
    '',
    'Basic',
    'Basic ',
    'Basic !!!',
    'Bearer b25lOg==',
    'Basic b25lOg== extra',
    'Digest x',
  ])('the header %j opens no workspace', (header) => {
    const keys = ring(pipelinesKey('one', 1), pipelinesKey('', 2));
    expect(keys.authenticatePipelines(header).outcome).toBe('unknown');
    expect(keys.authenticateTrack(header).outcome).toBe('unknown');
  });

  test('a revoked key stops working although its header was remembered', () => {
    const keys = ring(pipelinesKey('one', 1), pipelinesKey('two', 1));
    expect(keys.authenticatePipelines(basic('one:')).outcome).toBe('known');
    keys.replace([pipelinesKey('two', 1)]);
    expect(keys.authenticatePipelines(basic('one:')).outcome).toBe('unknown');
    expect(keys.authenticatePipelines(basic('two:')).outcome).toBe('known');
  });

  test('a setting of the workspace that changes is in force after the next reading', () => {
    const keys = ring(trackKey('site', 'secret', 3));
    expect(keys.authenticateTrack(basic('site:secret'))).toMatchObject({
      workspace: { phoneIdentifies: false },
    });
    keys.replace([{ ...trackKey('site', 'secret', 3), phoneIdentifies: true }]);
    expect(keys.authenticateTrack(basic('site:secret'))).toMatchObject({
      workspace: { phoneIdentifies: true },
    });
  });
});
