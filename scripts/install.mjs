/**
 * Installs missing packages, and ends at once if all are there. It is the first step of every command of the checkout.
 * Plain JavaScript for any Node of the machine (20 or later), without packages, because it runs before there are any.
 *
 * Without words it installs packages for the services (`npm start`). `--with-tools`: also for tests, checks and benchmarks.
 * `--with-redis`: also sees to a `redis-server`, which the tests run against. `--with-chromium`: to a Chromium, in which
 * they open pages.
 *
 * `npm install --no-save`, not `npm ci`: a lockfile written while the registry hides other platforms' optional
 * binaries fails `npm ci`. It never writes `package-lock.json`, so a clone stays as it was cloned.
 */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { fileURLToPath } from 'node:url';
import { whileLocked } from './install-lock.mjs';
import { joinedFolder } from './join-packages.mjs';
import { readLockedPackages } from './lockfile.mjs';
import { provideChromium } from './provide-chromium.mjs';
import { provideRedis } from './provide-redis.mjs';
import { fail, runQuietly } from './run-quietly.mjs';
import { unpackArchives } from './unpack-archives.mjs';

/** @typedef {'run' | 'tools'} Level */

const NODE_MAJOR_MIN = 20;
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const STAMP_FILE = 'node_modules/.sluice-installed';
const LOCK_FILE = 'node_modules/.sluice-installing';
const PINNED_NODE = 'node_modules/.bin/node';

const major = Number(process.versions.node.split('.')[0]);
if (major < NODE_MAJOR_MIN) {
  fail(
    `Node ${NODE_MAJOR_MIN} or later is needed to install; this is ${process.version} (${process.execPath}).`,
  );
}
process.chdir(ROOT);
const wanted = process.argv.includes('--with-tools') ? 'tools' : 'run';
if (!isInstalled(wanted)) await installInTurn(wanted);
if (!existsSync(joinedFolder())) joinPackages();
if (process.argv.includes('--with-redis')) await provideRedis();
if (process.argv.includes('--with-chromium')) await provideChromium();

/** By the pinned Node, which loads the packages. Without it everything runs, and starts more slowly. */
function joinPackages() {
  const { status, stderr, error } = spawnSync(PINNED_NODE, ['scripts/join-packages.mjs'], {
    encoding: 'utf8',
  });
  // Without a process there is no `stderr`.
  if (status !== 0)
    console.error(
      `packages could not be joined (${error?.message ?? stderr.trim().split('\n').at(-1)}); everything runs, and services start more slowly`,
    );
}

/** @param {Level} level */
async function installInTurn(level) {
  try {
    mkdirSync('node_modules', { recursive: true });
    accessSync('node_modules', constants.W_OK);
  } catch (error) {
    fail(
      `${ROOT}node_modules cannot be written (${/** @type {Error} */ (error).message}): run "npm start" once as the owner of this folder`,
    );
  }
  const onWait = () => console.error('another command installs packages here; waiting for it …');
  await whileLocked(LOCK_FILE, onWait, async () => {
    // Installed tools are kept, for every caller.
    const { level: before } = readStamp();
    if (!isInstalled(level)) await installPackages(before === 'tools' ? 'tools' : level);
  });
}

/** @param {Level} wantedLevel */
async function installPackages(wantedLevel) {
  rmSync(STAMP_FILE, { force: true });
  const packages = readLockedPackages('package-lock.json');
  const needed = packages.filter(({ isTool }) => !isTool);
  // By npm alone it is always all of it: on a Node older than 22 it leaves uWebSockets.js out if that is optional,
  // which it is not for the benchmarks.
  const level = wantedLevel === 'run' && (await installInParts(needed)) ? 'run' : 'tools';
  if (level === 'tools') await npmInstall(packages, ['--include=dev', '--include=optional']);
  const abi = pinnedNodeAbi();
  if (abi === undefined)
    fail(
      `the pinned Node (${ROOT}${PINNED_NODE}) was not installed, or does not run on this machine (${process.platform} ${process.arch})`,
    );
  removeForeignBinaries(abi);
  if (level === 'run') removeSourceMaps();
  writeFileSync(STAMP_FILE, JSON.stringify({ level, hash: currentHash() }));
}

/**
 * Runs npm's part and the part of `tar` at the same time.
 *
 * @param {readonly import('./lockfile.mjs').LockedPackage[]} packages
 * @returns {Promise<boolean>} false: it has to be done by npm alone.
 */
async function installInParts(packages) {
  const [npm, ...words] = npmCommand();
  // Types, which are optional peers of service packages, are for developers.
  const isType = /\/(@types\/|undici-types$)/;
  const optional = packages.filter(({ path, isOptional }) => isOptional && !isType.test(path));
  const others = packages.filter(({ isOptional }) => !isOptional);
  const [, reason] = await Promise.all([
    npmInstall(others, ['--omit=dev', '--omit=optional'], [...others, ...optional]),
    unpackArchives(npm, words, optional),
  ]);
  if (reason !== undefined)
    console.error(`${reason}\nnpm installs all packages instead, those for developers too`);
  return reason === undefined;
}

/**
 * @param {readonly import('./lockfile.mjs').LockedPackage[]} packages to install
 * @param {readonly string[]} words
 * @param {readonly import('./lockfile.mjs').LockedPackage[]} [counted] installed meanwhile, by it and by others
 */
async function npmInstall(packages, words, counted = packages) {
  const [npm, ...first] = npmCommand();
  // Errors only: dependencies that name a newer Node than the host's run on the pinned one.
  const args = [
    ...first,
    'install',
    '--no-save',
    ...words,
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
  ];
  const count = () =>
    /** @type {const} */ ([
      counted.filter(({ path }) => existsSync(`${path}/package.json`)).length,
      counted.length,
    ]);
  const ran = await runQuietly('installing packages', npm, args, { unit: 'packages', count });
  if (ran.code !== 0)
    fail(
      `${ran.output.trimEnd()}\ninstalling packages failed (${ran.code}). To try by hand: npm install --no-save`,
    );
}

/** @returns {[string, ...string[]]} npm as it runs us, or the one of the PATH */
function npmCommand() {
  const npm = process.env.npm_execpath;
  return npm?.endsWith('npm-cli.js') ? [process.execPath, npm] : ['npm'];
}

/** uWebSockets.js comes with binaries for every platform and Node, 133 MB; one of them is ours. @param {string} abi */
function removeForeignBinaries(abi) {
  const folder = 'node_modules/uWebSockets.js/dist/bin';
  const ours = `uws_${process.platform}_${process.arch}_${abi}.node`;
  if (!existsSync(`${folder}/${ours}`)) return;
  for (const name of readdirSync(folder)) if (name !== ours) rmSync(`${folder}/${name}`);
}

/** Of packages, 14 MB of 300: only debuggers read them. */
function removeSourceMaps() {
  const folders = readdirSync('node_modules').filter((name) => !name.startsWith('.'));
  for (const folder of folders.map((name) => `node_modules/${name}`)) {
    // A workspace is a link, and its files are the checkout's.
    if (lstatSync(folder).isSymbolicLink() || folder === 'node_modules/@sluice') continue;
    for (const name of readdirSync(folder, { recursive: true, encoding: 'utf8' }))
      if (/\.[cm]?[jt]s\.map$/.test(name)) rmSync(`${folder}/${name}`);
  }
}

/** @returns {string | undefined} undefined if it does not run */
function pinnedNodeAbi() {
  const ran = spawnSync(PINNED_NODE, ['-p', 'process.versions.modules'], { encoding: 'utf8' });
  return ran.status === 0 ? ran.stdout.trim() : undefined;
}

/** @param {Level} level */
function isInstalled(level) {
  const stamp = readStamp();
  if (stamp.level !== level && stamp.level !== 'tools') return false;
  return stamp.hash === currentHash() && existsSync(PINNED_NODE);
}

/** The files that an installation depends on. */
function currentHash() {
  const workspaces = readdirSync('packages').map((name) => `packages/${name}/package.json`);
  const files = ['package.json', 'package-lock.json', ...workspaces, 'benchmarks/package.json'];
  const hash = createHash('sha256').update(`${process.platform} ${process.arch}`);
  for (const file of files)
    if (existsSync(file)) hash.update(`\0${file}\0`).update(readFileSync(file));
  return hash.digest('hex');
}

/** @returns {{ level?: string, hash?: string }} empty if there is no stamp, or one of an earlier version */
function readStamp() {
  try {
    return JSON.parse(readFileSync(STAMP_FILE, 'utf8'));
  } catch {
    return {};
  }
}
