import type { TestKey, WorkspaceKey } from '@sluice/database/accounts/workspace-keys';
import { createLogger } from '@sluice/platform/process/logger';
import { expect, test, vi } from 'vitest';
import { startKeyRefresh } from '../../src/auth/refresh-keys.ts';

const WAIT = { timeout: 30_000, interval: 1 };
const logger = createLogger('test', 'silent');
const KEY: WorkspaceKey = {
  kind: 'pipelines',
  siteId: null,
  secretHash: Buffer.from('hash'),
  environmentId: 1,
  accountId: '1',
  phoneIdentifies: false,
};

/** Time of a read by the clock of these tests. */
const READ_MS = 60_000;

/** `failures`: how often each statement fails after the first read. */
async function start(failures: { read: number; save: number; uses?: boolean }) {
  let clockMs = 0;
  let reads = 0;
  const inForce: (readonly WorkspaceKey[])[] = [];
  const saved: (readonly TestKey[])[] = [];
  let onSave = (): void => {};
  const refresh = await startKeyRefresh({
    keys: { replace: (keys) => void inForce.push(keys), pass: () => {} },
    listWorkspaceKeys() {
      if (reads++ > 0 && failures.read-- > 0) return Promise.reject(new Error('away'));
      clockMs += READ_MS;
      return Promise.resolve(reads === 1 ? [KEY] : []);
    },
    saveTestedKeys(keys) {
      if (keys.length > 0 && failures.save-- > 0)
        return Promise.reject(new Error('cannot execute UPDATE in a read-only transaction'));
      if (keys.length > 0) saved.push(keys);
      onSave();
      return Promise.resolve();
    },
    saveKeyUses: () =>
      failures.uses ? Promise.reject(new Error('permission denied')) : Promise.resolve(),
    intervalMs: 1,
    logger,
    now: () => (clockMs += 1_000),
  });
  return {
    refresh,
    inForce,
    saved,
    readCount: () => reads,
    duringSave: (then: () => void) => (onSave = then),
  };
}

test('keys grow old while they cannot be read, those known stay in force, and the next read makes them young', async () => {
  const failures = { read: Infinity, save: 0 };
  const { refresh, inForce, readCount } = await start(failures);
  await vi.waitFor(() => expect(readCount()).toBeGreaterThan(5), WAIT);
  expect(inForce).toEqual([[KEY]]);
  expect(refresh.ageSeconds()).toBeGreaterThan(5);
  failures.read = 0;
  await vi.waitFor(() => expect(inForce).toContainEqual([]), WAIT);
  await refresh.stop();
  // Since the read was begun; the clock of this test goes on by a second each time that it is asked.
  expect(refresh.ageSeconds()).toBe(READ_MS / 1_000 + 1);
});

test('intake goes on reading keys while it cannot save a tested key, and saves that key later', async () => {
  const failures = { read: 0, save: Infinity };
  const { refresh, inForce, saved } = await start(failures);
  const tested = { environmentId: 1, credentialId: '7' };
  refresh.saveTestedKey(tested);
  const { length } = inForce;
  await vi.waitFor(() => expect(inForce.length).toBeGreaterThan(length + 3), WAIT);
  expect(saved).toEqual([]);
  failures.save = 0;
  await vi.waitFor(() => expect(saved).toEqual([[tested]]), WAIT);
  await refresh.stop();
});

test('intake goes on reading keys while it cannot save their last uses', async () => {
  const { refresh, inForce } = await start({ read: 0, save: 0, uses: true });
  await vi.waitFor(() => expect(inForce.length).toBeGreaterThan(3), WAIT);
  await refresh.stop();
});

test('a tested key is saved once, also one that was tested while another was being saved', async () => {
  const { refresh, saved, inForce, duringSave } = await start({ read: 0, save: 0 });
  const first = { environmentId: 1, credentialId: '7' };
  const second = { environmentId: 1, credentialId: '8' };
  duringSave(() => {
    if (saved.length !== 1) return;
    duringSave(() => {});
    refresh.saveTestedKey(second);
  });
  refresh.saveTestedKey(first);
  await vi.waitFor(() => expect(saved).toContainEqual([second]), WAIT);
  const { length } = inForce;
  await vi.waitFor(() => expect(inForce.length).toBeGreaterThan(length + 3), WAIT);
  await refresh.stop();
  expect(saved).toEqual([[first], [second]]);
});
