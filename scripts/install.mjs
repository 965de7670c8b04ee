/**
 * Installs what is missing, and nothing when nothing is: the first step of `npm start` and
 * `npm test`. Plain JavaScript for whatever Node the machine has (20 or later), with no package,
 * because it runs before there are any.
 *
 * `npm install`, not `npm ci`: a lockfile written where the registry hides other platforms'
 * optional binaries fails `npm ci`.
 *
 * `--with-redis`: also sees to a `redis-server`, which the tests run against.
 */
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const NODE_MAJOR_MIN = 20;
const PROGRESS_INTERVAL_MS = 5_000;
const ROOT = fileURLToPath(new URL('..', import.meta.url));
const STAMP_FILE = `${ROOT}node_modules/.sluice-installed`;
const PINNED_NODE = `${ROOT}node_modules/node/bin/node`;

const major = Number(process.versions.node.split('.')[0]);
if (major < NODE_MAJOR_MIN) {
  fail(
    `Node ${NODE_MAJOR_MIN} or later is needed to install; this is ${process.version} (${process.execPath}).`,
  );
}
process.chdir(ROOT);
if (readStamp() !== currentStamp() || !pinnedNodeRuns()) await installPackages();
if (process.argv.includes('--with-redis')) await provideRedis();

async function installPackages() {
  const npm = process.env.npm_execpath;
  const [command, ...first] = npm?.endsWith('.js') ? [process.execPath, npm] : ['npm'];
  // Errors only: dependencies that name a newer Node than the host's run on the pinned one.
  const args = [...first, 'install', '--no-audit', '--no-fund', '--loglevel=error'];
  await runWithProgress(
    'installing dependencies (the first time takes about half a minute)',
    command,
    args,
    'npm install',
  );
  if (!pinnedNodeRuns()) await installPinnedNode();
  writeFileSync(STAMP_FILE, currentStamp());
}

/** npm may have been told to run no install scripts; the pinned Node comes by one. */
async function installPinnedNode() {
  if (!existsSync('node_modules/node/installArchSpecificPackage.js'))
    fail('the package "node" was not installed');
  process.chdir('node_modules/node');
  await runWithProgress(
    'fetching the pinned Node',
    process.execPath,
    ['installArchSpecificPackage.js'],
    'npm install',
  );
  process.chdir(ROOT);
  if (!pinnedNodeRuns()) fail(`the pinned Node (${PINNED_NODE}) does not run on this machine`);
}

function pinnedNodeRuns() {
  return spawnSync(PINNED_NODE, ['--version'], { stdio: 'ignore' }).status === 0;
}

/** What an installation depends on. Written after it, because npm may bring the lockfile up to date. */
function currentStamp() {
  const workspaces = readdirSync('packages').map((name) => `packages/${name}/package.json`);
  const files = ['package.json', 'package-lock.json', ...workspaces, 'benchmarks/package.json'];
  const hash = createHash('sha256').update(`${process.platform} ${process.arch}`);
  for (const file of files)
    if (existsSync(file)) hash.update(`\0${file}\0`).update(readFileSync(file));
  return hash.digest('hex');
}

function readStamp() {
  return existsSync(STAMP_FILE) ? readFileSync(STAMP_FILE, 'utf8') : undefined;
}

async function provideRedis() {
  if (process.env.TEST_REDIS_URL || redisServerRuns()) return;
  const advice =
    'install redis-server (Debian, Ubuntu: apt-get install redis-server; macOS: brew install redis)';
  const isAptMachine = spawnSync('apt-get', ['--version'], { stdio: 'ignore' }).status === 0;
  if (process.getuid?.() !== 0 || !isAptMachine)
    fail(`the tests need a real Redis: ${advice}, or set TEST_REDIS_URL`);
  await withoutStartingServices(async () => {
    await runWithProgress('updating the package lists', 'apt-get', ['update', '-qq'], advice);
    await runWithProgress(
      'installing redis-server',
      'apt-get',
      ['install', '-y', '-qq', 'redis-server'],
      advice,
    );
  });
  if (!redisServerRuns()) fail(`apt-get installed no redis-server that runs: ${advice}`);
}

function redisServerRuns() {
  return spawnSync('redis-server', ['--version'], { stdio: 'ignore' }).status === 0;
}

/**
 * Debian starts what it installs. The tests start their own Redis, and nobody asked for one on
 * port 6379: a policy that forbids starting stands while packages are installed.
 *
 * @param {() => Promise<void>} install
 */
async function withoutStartingServices(install) {
  const policy = '/usr/sbin/policy-rc.d';
  const hasPolicy = existsSync(policy);
  const removePolicy = () => rmSync(policy, { force: true });
  if (!hasPolicy) {
    process.once('exit', removePolicy);
    writeFileSync(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  }
  await install();
  if (!hasPolicy) removePolicy();
  if (existsSync('/run/systemd/system'))
    spawnSync('systemctl', ['disable', 'redis-server'], { stdio: 'ignore' });
}

/**
 * Runs a command quietly, says every few seconds that it still works, and shows all it said when it fails.
 *
 * @param {string} what
 * @param {string} command
 * @param {string[]} args
 * @param {string} advice
 */
async function runWithProgress(what, command, args, advice) {
  const startedAtMs = Date.now();
  const seconds = () => `${Math.round((Date.now() - startedAtMs) / 1000)} s`;
  console.error(`${what} …`);
  const ticker = setInterval(
    () => console.error(`  still ${what.split(' (')[0]}: ${seconds()}`),
    PROGRESS_INTERVAL_MS,
  );
  const child = spawn(command, args, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (said += chunk));
  const code = await new Promise((resolve) => {
    child.once('error', (error) => ((said += error.message), resolve(-1)));
    child.once('close', resolve);
  });
  clearInterval(ticker);
  if (code !== 0)
    fail(`${said.trimEnd()}\n${what.split(' (')[0]} failed (${code}). To try by hand: ${advice}`);
  console.error(`  done in ${seconds()}`);
}

/**
 * @param {string} message
 * @returns {never}
 */
function fail(message) {
  console.error(message);
  process.exit(1);
}
