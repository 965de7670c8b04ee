/**
 * Keeps the keys in memory (`authenticate.ts`) as fresh as possible.
 *
 * They are read again and again; a key made or revoked between two reads is unknown until the next. While Postgres is
 * away, or the path to it drops packets, the known keys go on working, because calls must be taken during an outage.
 * The age of the keys and the log show for how long a revoked key may have been good. Each read ends, because the
 * statements of intake have a deadline (`main.ts`).
 *
 * Keys that pass their test, and the last uses of keys, are saved on the way. If that fails (a full disk, a read-only
 * server), revoked keys are still noticed.
 */
import type { TestKey, WorkspaceKey } from '@sluice/database/accounts/workspace-keys';
import type { Logger } from '@sluice/platform/process/logger';
import { repeat } from '@sluice/platform/process/repeat';
import type { KeyRing } from './authenticate.ts';

export interface KeyRefreshDependencies {
  readonly keys: Pick<KeyRing, 'replace' | 'pass'>;
  readonly listWorkspaceKeys: () => Promise<readonly WorkspaceKey[]>;
  readonly saveTestedKeys: (keys: readonly TestKey[]) => Promise<void>;
  /** The uses that are due (`key-uses.ts`). */
  readonly saveKeyUses: () => Promise<void>;
  /** From the end of one read to the next. */
  readonly intervalMs: number;
  readonly logger: Logger;
  readonly now: () => number;
}

export interface KeyRefresh {
  /** In force here at once; saved with the next read. If the process ends before that, the key has to be tested again. */
  saveTestedKey(key: TestKey): void;
  /** Age of the known keys: since the start of the last read that succeeded. */
  ageSeconds(): number;
  /** Waits for the read under way. */
  stop(): Promise<void>;
}

/**
 * Reads the keys, and from then on again and again.
 *
 * @throws the error of the first read: without any key intake cannot serve a call.
 */
export async function startKeyRefresh(deps: KeyRefreshDependencies): Promise<KeyRefresh> {
  const { keys, listWorkspaceKeys, saveTestedKeys, saveKeyUses, intervalMs, logger, now } = deps;
  const testedKeys = new Map<string, TestKey>();
  let readAtMs = now();
  const ageSeconds = (): number => (now() - readAtMs) / 1_000;

  const read = async (): Promise<void> => {
    const begunAtMs = now();
    keys.replace(await listWorkspaceKeys());
    readAtMs = begunAtMs;
  };
  const save = async (): Promise<void> => {
    const tested = [...testedKeys];
    await saveTestedKeys(tested.map(([, key]) => key));
    for (const [name] of tested) testedKeys.delete(name);
  };

  await read();
  const repetition = repeat('read keys', intervalMs, logger, async () => {
    await save().catch((error: unknown) =>
      logger.warn({ error }, 'tested API keys could not be saved; intake tries again'),
    );
    await saveKeyUses().catch((error: unknown) =>
      logger.warn({ error }, 'the last uses of API keys could not be saved; intake tries again'),
    );
    await read().catch((error: unknown) =>
      logger.warn(
        { error, keysAgeSeconds: ageSeconds() },
        'API keys could not be read; intake uses the keys that it read before, and tries again',
      ),
    );
  });
  return {
    saveTestedKey(key) {
      keys.pass(key);
      testedKeys.set(`${key.environmentId} ${key.credentialId}`, key);
    },
    ageSeconds,
    stop: () => repetition.stop(),
  };
}
