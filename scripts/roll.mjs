/**
 * `npm run roll -- intake`: replaces the processes of a service on this machine one after another, each with the present
 * code and packages of this checkout. The new one listens before the old one gets its signal, so that no call is refused.
 *
 * It takes the processes of the installation that DATABASE_URL names (a running `npm start` restarts its own). Each new one
 * has the settings of the one that it replaces, with the typed changes: `npm run roll -- intake LOG_LEVEL=debug`.
 *
 * It waits for the new process itself: until the kernel shows that this one listens, and a worker or an API is ready on a
 * port of its own. An answer on a port is no proof, for intakes share one.
 */
import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { startProgress } from './progress.mjs';
import { findRunningServices, listeningPortsOf } from './running-services.mjs';

/** @typedef {import('./running-services.mjs').RunningService} RunningService */

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const SERVICES = ['intake', 'worker', 'api'];
const USAGE = `usage: npm run roll -- intake|worker|api [NAME=VALUE …], with the DATABASE_URL of the services`;
/** Of a start, on a busy machine. */
const LISTENING_DEADLINE_MS = 120_000;
/** Beyond the old one's own time limit. */
const GRACE_MS = 10_000;
const DRAIN_TIMEOUT_MS_DEFAULT = 25_000;
const POLL_INTERVAL_MS = 50;

const [service = '', ...changes] = process.argv.slice(2);
const changed = Object.fromEntries(changes.map((text) => text.split(/=(.*)/s).slice(0, 2)));
if (!SERVICES.includes(service) || changes.some((text) => !/^\w+=/.test(text))) fail(USAGE, 2);
if (process.platform !== 'linux') fail('roll finds processes in /proc, which only Linux has', 2);
const databaseUrl = process.env.DATABASE_URL;
if (!databaseUrl) fail(`DATABASE_URL is not set: whose processes? ${USAGE}`, 2);

const runningFrom = (/** @type {string} */ file) =>
  findRunningServices(join(ROOT, 'packages', file), databaseUrl);
const found = [
  ...runningFrom(`${service}/src/main.ts`),
  ...runningFrom('standalone/src/services/main.ts'),
];
const ours = found.filter(({ isSupervised }) => !isSupervised);
if (ours.length === 0)
  fail(
    found.length > 0
      ? `the ${service} of an npm start is restarted by that: end it with Ctrl-C and start it again`
      : `no ${service} of this checkout runs with this DATABASE_URL, or none that this user may see`,
    1,
  );

const progress = startProgress(`rolling ${service}`, 'processes');
for (const [index, old] of ours.entries()) {
  const { pid, port, logFile } = await startAnew(old).catch((error) => {
    progress.end('failed');
    return fail(
      `${error.message}\nprocess ${old.pid} goes on; ${index} of ${ours.length} were replaced`,
      1,
    );
  });
  // Before the end of the old one: a load balancer may have to know the address of the new one.
  console.log(JSON.stringify({ service, started: pid, port, log: logFile }));
  await endOld(old);
  progress.report(index + 1, ours.length);
  console.log(JSON.stringify({ service, replaced: old.pid, by: pid }));
}
progress.end(`${ours.length} replaced`);

/**
 * @param {RunningService} old
 * @returns {Promise<{ pid: number, port: number | undefined, logFile: string }>} once it listens
 */
async function startAnew(old) {
  const folder = join(ROOT, '.sluice/logs');
  mkdirSync(folder, { recursive: true });
  const name = `${service}-${new Date().toISOString().replaceAll(':', '')}-${old.pid}.log`;
  const logFile = join(folder, name);
  // Its output outlives us, and no other process writes there.
  const log = openSync(logFile, 'wx', 0o600);
  const child = spawn(join(ROOT, 'node_modules/.bin/node'), old.words, {
    cwd: old.folder,
    env: { ...withoutChannel(old.environment), ...changed },
    // Our Ctrl-C is not its.
    detached: true,
    stdio: ['ignore', log, log],
  });
  closeSync(log);
  /** @type {string | undefined} */
  let ending;
  child.once('error', (error) => (ending = error.message));
  child.once('exit', (code, by) => (ending = by ?? `exit ${code}`));
  const deadlineMs = performance.now() + LISTENING_DEADLINE_MS;
  while (!(await isReady(child.pid))) {
    if (ending !== undefined)
      throw new Error(
        `the new ${service} ended (${ending}): ${lastWords(logFile)}${adviceOn(logFile)}`,
      );
    if (performance.now() > deadlineMs) {
      child.kill('SIGKILL');
      throw new Error(
        `the new ${service} is not ready after ${LISTENING_DEADLINE_MS / 1_000} s: ${lastWords(logFile)}`,
      );
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
  child.unref();
  const pid = /** @type {number} */ (child.pid);
  return { pid, port: listeningPortsOf(pid)[0], logFile };
}

/**
 * Intake listens once it has its keys. Workers and the API listen before, and report when they are ready. @param
 * {number | undefined} pid
 */
async function isReady(pid) {
  const [port] = pid === undefined ? [] : listeningPortsOf(pid);
  if (port === undefined || service === 'intake') return port !== undefined;
  return fetch(`http://127.0.0.1:${port}/readyz`, { signal: AbortSignal.timeout(5_000) }).then(
    (answer) => answer.arrayBuffer().then(() => answer.ok),
    () => false,
  );
}

/** Of a parent that is not there for the new one. @param {Record<string, string>} environment */
function withoutChannel({ NODE_CHANNEL_FD: _fd, NODE_CHANNEL_SERIALIZATION_MODE: _mode, ...rest }) {
  return rest;
}

/** @param {RunningService} old */
async function endOld(old) {
  const drainMs = Number(old.environment.DRAIN_TIMEOUT_MS) || DRAIN_TIMEOUT_MS_DEFAULT;
  const deadlineMs = performance.now() + drainMs + GRACE_MS;
  signal(old.pid, 'SIGTERM');
  while (signal(old.pid, 0)) {
    if (performance.now() > deadlineMs) {
      console.error(`process ${old.pid} has not ended within its DRAIN_TIMEOUT_MS: it is killed`);
      signal(old.pid, 'SIGKILL');
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_INTERVAL_MS));
  }
}

/**
 * @param {number} pid
 * @param {NodeJS.Signals | 0} what
 * @returns {boolean} whether it is there; one that has ended and whose parent has not looked yet is not
 */
function signal(pid, what) {
  try {
    process.kill(pid, what);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

/** @param {string} logFile */
const linesOf = (logFile) => readFileSync(logFile, 'utf8').split('\n');

/** @param {string} logFile */
function lastWords(logFile) {
  return (
    linesOf(logFile)
      .filter((line) => line !== '')
      .slice(-3)
      .join('\n') || 'it has logged nothing'
  );
}

/** @param {string} logFile */
function adviceOn(logFile) {
  if (service === 'intake' || !/PORT_TAKEN/.test(readFileSync(logFile, 'utf8'))) return '';
  const name = `${service.toUpperCase()}_PORT`;
  return `\nOnly intakes share a port; the new ${service} needs one of its own: npm run roll -- ${service} ${name}=…`;
}

/**
 * @param {string} message
 * @param {number} code
 * @returns {never}
 */
function fail(message, code) {
  console.error(message);
  process.exit(code);
}
