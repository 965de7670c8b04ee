/**
 * The embedded Postgres' data.
 *
 * It is made once, at `<directory>/postgres`, or behind a symbolic link of that name when the account cannot enter
 * `<directory>`. Either way the data lives as long as the link's folder: a fresh clone has no link and so never sees
 * older data.
 *
 * It is made atomically: `initdb` works at `postgres.new`, which is renamed at the end. (`initdb` writes `PG_VERSION`
 * first, not last, so that is no sign of a whole cluster.)
 */
import { randomBytes } from 'node:crypto';
import {
  chown,
  cp,
  lstat,
  mkdir,
  readFile,
  realpath,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '@sluice/domain/values/errors';
import { canReach, runAs, type ServerAccount } from './postgres-account.ts';
import { MACHINE_DIRECTORY } from './postgres-binaries.ts';
import type { Durability } from './postgres-settings.ts';

/** The superuser and owner of everything in the embedded server. */
export const EMBEDDED_USER = 'sluice';

export interface ClusterOptions {
  readonly directory: string;
  readonly account: ServerAccount;
  readonly initdb: string;
  /** Of the server that will open it. */
  readonly majorVersion: string;
  readonly durability: Durability;
  readonly onProgress: (line: string) => void;
}

export interface Cluster {
  /** The data's real path, as the account sees it. */
  readonly dataPath: string;
  readonly password: string;
}

/** Names inside `directory`. */
export const dataLink = (directory: string): string => join(directory, 'postgres');
const passwordFile = (directory: string): string => join(directory, 'postgres-password');

/** In outside data: the folder whose link it hangs on. */
const HOME_FILE = 'sluice-home';

/** Finds the data, or makes it. @throws AppError DATABASE_START_FAILED, DATA_DIRECTORY_HELD. */
export async function prepareCluster(options: ClusterOptions): Promise<Cluster> {
  const { directory, account } = options;
  await mkdir(directory, { recursive: true });
  const link = dataLink(directory);
  const dataPath = (await realpath(link).catch(() => undefined)) ?? (await createCluster(options));
  await requireMajorVersion(dataPath, options.majorVersion);
  await claimOutsideData(directory, dataPath);

  const password = await readFile(passwordFile(directory), 'utf8').catch((cause: unknown) => {
    throw new AppError(
      'DATABASE_START_FAILED',
      `${passwordFile(directory)} cannot be read; put it back, or remove ${link} to begin anew`,
      { cause },
    );
  });
  if (await canReach(dataPath, account)) return { dataPath, password };

  // The checkout was moved to a folder that the account cannot enter. Its data goes outside and stays its own.
  const outside = await createOutside(directory, account);
  options.onProgress(
    `moving the data to ${outside}, because its account cannot enter this folder any more`,
  );
  await cp(dataPath, outside, { recursive: true, preserveTimestamps: true });
  await runAs(undefined, '/bin/chown', ['-R', `${account?.uid}:${account?.gid}`, outside]);
  await rename(dataPath, `${link}.moved`);
  await symlink(outside, link);
  await writeFile(join(outside, HOME_FILE), await realpath(directory), { mode: 0o600 });
  await rm(`${link}.moved`, { recursive: true });
  return { dataPath: outside, password };
}

/** Postgres itself would only log this, after a start that fails. */
async function requireMajorVersion(dataPath: string, wanted: string): Promise<void> {
  const found = await readFile(join(dataPath, 'PG_VERSION'), 'utf8').catch(() => undefined);
  if (found === undefined || found.trim() === wanted) return;
  throw new AppError(
    'DATABASE_START_FAILED',
    `the data in ${dataPath} are of Postgres ${found.trim()}, and this version of Sluice has Postgres ${wanted}`,
  );
}

/** Removes the data inside or outside the folder. The server must be stopped. */
export async function removeCluster(directory: string): Promise<void> {
  await removeFollowing(dataLink(directory));
}

async function createCluster(options: ClusterOptions): Promise<string> {
  const { directory, account, durability } = options;
  const link = dataLink(directory);
  const unfinished = `${link}.new`;
  await removeFollowing(link);
  await removeFollowing(unfinished);

  if (await canReach(directory, account)) await createDirectory(unfinished, account);
  else await symlink(await createOutside(directory, account), unfinished);
  const dataPath = await realpath(unfinished);

  const password = randomBytes(24).toString('base64url');
  await writeFile(passwordFile(directory), password, { mode: 0o600 });
  // initdb reads the password as the account, from beside the data, which the account can surely reach.
  const lentFile = `${dataPath}.password`;
  try {
    await writeFile(lentFile, password, { mode: 0o600 });
    if (account) await chown(lentFile, account.uid, account.gid);
    options.onProgress('creating the database files');
    const { exitCode, output } = await runAs(account, options.initdb, [
      ...[
        '--pgdata',
        dataPath,
        '--username',
        EMBEDDED_USER,
        '--pwfile',
        lentFile,
        '--auth',
        'scram-sha-256',
      ],
      // Postgres' own Unicode rules: the same order on every machine, and no locale that a bare one lacks.
      ...[
        '--encoding',
        'UTF8',
        '--locale',
        'C',
        '--locale-provider',
        'builtin',
        '--builtin-locale',
        'C.UTF-8',
      ],
      ...['--no-instructions', ...(durability === 'none' ? ['--no-sync'] : [])],
    ]);
    if (exitCode !== 0)
      throw new AppError(
        'DATABASE_START_FAILED',
        `initdb failed. Correct the cause, then start again:\n${lastLines(output)}`,
      );
  } catch (error) {
    await removeFollowing(unfinished);
    throw error;
  } finally {
    await rm(lentFile, { force: true });
  }
  if ((await lstat(unfinished)).isSymbolicLink()) {
    await writeFile(join(dataPath, HOME_FILE), await realpath(directory), { mode: 0o600 });
  }
  await rename(unfinished, link);
  return realpath(link);
}

async function createDirectory(path: string, account: ServerAccount): Promise<void> {
  await mkdir(path, { mode: 0o700 });
  if (account) await chown(path, account.uid, account.gid);
}

async function createOutside(directory: string, account: ServerAccount): Promise<string> {
  const path = join(MACHINE_DIRECTORY, `data-${randomBytes(8).toString('hex')}`);
  try {
    await mkdir(MACHINE_DIRECTORY, { recursive: true, mode: 0o755 });
    await createDirectory(path, account);
  } catch (cause) {
    throw new AppError(
      'DATABASE_START_FAILED',
      `Postgres' account cannot enter ${directory}, and ${path} cannot be made instead; set SLUICE_DIRECTORY to a folder that it can enter`,
      { cause },
    );
  }
  return path;
}

/** A checkout that was copied whole brings the link along: two of them must not run on one set of data. */
async function claimOutsideData(directory: string, dataPath: string): Promise<void> {
  const file = join(dataPath, HOME_FILE);
  const home = await readFile(file, 'utf8').catch(() => undefined);
  const here = await realpath(directory);
  if (home === undefined || home === here) return;
  if ((await realpath(dataLink(home)).catch(() => undefined)) === dataPath) {
    throw new AppError(
      'DATA_DIRECTORY_HELD',
      `${dataLink(directory)} leads to the data of ${home}; remove the link to begin with data of your own`,
    );
  }
  await writeFile(file, here);
}

async function removeFollowing(path: string): Promise<void> {
  const target = await realpath(path).catch(() => path);
  await rm(target, { recursive: true, force: true });
  await rm(path, { recursive: true, force: true });
}

/** The end of a program's output: its own last words. */
export function lastLines(output: string, count = 15): string {
  return output
    .trimEnd()
    .split('\n')
    .slice(-count)
    .map((line) => `  ${line}`)
    .join('\n');
}
