/**
 * Earlier versions from git, each as a folder that can be started: the last ones whose schema is not the present one.
 * A folder has that version's own files, and the packages that are installed here.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);
const MIGRATIONS = 'packages/database/src/migrations';

export interface EarlierVersion {
  readonly commit: string;
  /** The name of its last migration. */
  readonly schema: string;
}

/**
 * A repository with the whole history: the checkout's own, or, if that is shallow, as CI's often is, a bare clone of
 * its origin, which leaves the checkout as it is.
 *
 * @returns undefined if there is neither: an unpacked archive, or a shallow clone whose origin is out of reach.
 */
export async function openHistory(root: string): Promise<string | undefined> {
  try {
    const ask = async (...words: string[]) =>
      (await run('git', ['-C', root, ...words])).stdout.trim();
    if ((await ask('rev-parse', '--is-shallow-repository')) === 'false') return root;
    const origin = await ask('remote', 'get-url', 'origin');
    const folder = await mkdtemp(join(tmpdir(), 'sluice-test-history-'));
    const env = { ...process.env, GIT_TERMINAL_PROMPT: '0' };
    // Files are fetched when a version is unpacked, for two versions.
    const words = ['clone', '--quiet', '--bare', '--filter=blob:none', origin, folder];
    await run('git', words, { env, timeout: 60_000 });
    return folder;
  } catch {
    return undefined;
  }
}

/**
 * @param root - the checkout.
 * @param history - of `openHistory`.
 * @returns the newest first, each with another schema.
 */
export async function listEarlierVersions(
  root: string,
  history: string,
  count: number,
): Promise<readonly EarlierVersion[]> {
  const git = async (...words: string[]): Promise<string[]> => {
    const { stdout } = await run('git', ['-C', history, ...words], { maxBuffer: 16_777_216 });
    return stdout.split('\n').filter((line) => line !== '');
  };
  const present = (await readdir(join(root, MIGRATIONS))).toSorted().join();
  const seen = new Set([present]);
  const versions: EarlierVersion[] = [];
  // HEAD itself if the migration is not committed yet, and the commit before each one that changed a migration.
  const changes = await git('log', '--format=%H', '-n', '40', '--', MIGRATIONS);
  for (const commit of ['HEAD', ...changes.map((each) => `${each}^`)]) {
    if (versions.length === count) break;
    const names = (await git('ls-tree', '--name-only', `${commit}:${MIGRATIONS}`)).toSorted();
    if (names.length === 0 || seen.has(names.join())) continue;
    seen.add(names.join());
    const [hash = commit] = await git('rev-parse', commit);
    versions.push({ commit: hash, schema: (names.at(-1) ?? '').replace(/\.ts$/, '') });
  }
  return versions;
}

/** @returns the folder, ending in a slash; the caller removes it. */
export async function unpackVersion(
  root: string,
  history: string,
  { commit }: EarlierVersion,
): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-version-'));
  const archive = `${folder}.tar`;
  await run('git', [
    '-C',
    history,
    'archive',
    '--output',
    archive,
    commit,
    'package.json',
    'packages',
    // `npm start` loads some of them into its services.
    'scripts',
  ]);
  await run('tar', ['-xf', archive, '-C', folder]);
  await rm(archive);
  await linkPackages(root, folder);
  return `${folder}/`;
}

/** Gives a folder everybody else's packages as they are installed in `root`, and its own. */
export async function linkPackages(root: string, folder: string): Promise<void> {
  const [ours, theirs] = [join(root, 'node_modules'), join(folder, 'node_modules')];
  await mkdir(join(theirs, '@sluice'), { recursive: true });
  for (const name of await readdir(ours))
    if (name !== '@sluice') await symlink(join(ours, name), join(theirs, name));
  for (const name of await readdir(join(folder, 'packages')))
    await symlink(join(folder, 'packages', name), join(theirs, '@sluice', name));
}
