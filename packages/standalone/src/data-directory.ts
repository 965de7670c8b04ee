/**
 * Holds the data directory: one `npm start` at a time on the same data.
 *
 * The lock is SQLite's, which is the operating system's: it is gone the moment its holder is, also after kill -9 and a
 * restart of the machine, so there is no stale lock to judge. The file beside it, `held-by.json`, is for people and for
 * finding services that outlived their supervisor.
 */
import { renameSync, writeFileSync } from 'node:fs';
import { chmod, mkdir, readFile, realpath, rm } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { AppError } from '@sluice/domain/values/errors';
import { keepFilePrivate } from '@sluice/platform/process/private-file';
import { z } from 'zod';

const holderSchema = z.object({
  pid: z.int(),
  since: z.string(),
  addresses: z.array(z.string()),
  /**
   * For commands beside it (`packages/command-line/src/connection/running-start.ts`). Earlier versions did not write
   * it.
   */
  urls: z.record(z.string(), z.string()).default({}),
  /** The settings that such commands need, without secrets. */
  settings: z.record(z.string(), z.string()).default({}),
  /** The settings of these that are in files of the data directory; the environment of `npm start` had the others. */
  kept: z.array(z.enum(['DATABASE_URL', 'SEALING_KEYS'])).default([]),
  /** The services' process ids. */
  services: z.array(z.object({ name: z.string(), pid: z.int() })),
});

export type Holder = z.infer<typeof holderSchema>;

export interface DataDirectory {
  readonly path: string;
  /** The holder before us, when it did not give it back. */
  readonly earlierHolder: Holder | undefined;
  /** Writes the holder for others to read. */
  describe(holder: Holder): void;
  release(): Promise<void>;
}

const FOLDER_MODE = 0o700;
/** Under root Postgres has an account of its own, which must pass through, with any umask. */
const ROOT_FOLDER_MODE = 0o711;

/** @throws AppError DATA_DIRECTORY_HELD when another has it, or it cannot be written. */
export async function holdDataDirectory(wantedPath: string): Promise<DataDirectory> {
  const { path, lock } = await openLock(wantedPath);
  const holderFile = join(path, 'held-by.json');
  try {
    lock.exec('pragma locking_mode = exclusive; begin exclusive');
  } catch (cause) {
    lock.close();
    throw new AppError('DATA_DIRECTORY_HELD', describeHolder(path, await readHolder(holderFile)), {
      cause,
    });
  }
  return {
    path,
    earlierHolder: await readHolder(holderFile),
    describe(holder) {
      // In one step and one at a time: the next start must be able to read it, whenever we are killed.
      writeFileSync(`${holderFile}.new`, `${JSON.stringify(holder, undefined, 2)}\n`, {
        mode: 0o600,
      });
      renameSync(`${holderFile}.new`, holderFile);
    },
    async release() {
      await rm(holderFile, { force: true });
      lock.close();
    },
  };
}

async function openLock(wantedPath: string): Promise<{ path: string; lock: DatabaseSync }> {
  try {
    await mkdir(wantedPath, { recursive: true, mode: FOLDER_MODE });
    const path = await realpath(wantedPath);
    await chmod(path, userInfo().uid === 0 ? ROOT_FOLDER_MODE : FOLDER_MODE);
    const lockFile = join(path, 'lock');
    keepFilePrivate(lockFile);
    return { path, lock: new DatabaseSync(lockFile, { timeout: 0 }) };
  } catch (cause) {
    throw new AppError(
      'DATA_DIRECTORY_HELD',
      `${wantedPath} cannot be written (${(cause as Error).message}); start as its owner, or name another folder in SLUICE_DIRECTORY`,
      { cause },
    );
  }
}

async function readHolder(file: string): Promise<Holder | undefined> {
  try {
    return holderSchema.parse(JSON.parse(await readFile(file, 'utf8')));
  } catch {
    return undefined;
  }
}

function describeHolder(path: string, holder: Holder | undefined): string {
  if (!holder)
    return `${path} is held by another npm start that begins or ends; try again in a few seconds`;
  const { pid, since, addresses } = holder;
  return `${path} is held by process ${pid} since ${since}, at ${addresses.join(', ')}; stop that one first`;
}
