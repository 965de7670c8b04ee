/** A `redis-server` for the tests: the machine's, or installed if we may do that. */
import { spawnSync } from 'node:child_process';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { fail, runQuietly } from './run-quietly.mjs';

const ADVICE =
  'install redis-server (Debian, Ubuntu: apt-get install redis-server; macOS: brew install redis)';

/** Ends the process with advice if there is no Redis and it cannot be installed. */
export async function provideRedis() {
  if (process.env.TEST_REDIS_URL || redisServerRuns()) return;
  const isAptMachine = spawnSync('apt-get', ['--version'], { stdio: 'ignore' }).status === 0;
  if (process.getuid?.() !== 0 || !isAptMachine)
    fail(`the tests need a real Redis: ${ADVICE}, or set TEST_REDIS_URL`);
  await withoutStartingServices(async () => {
    await apt('updating the package lists', ['update', '-qq']);
    await apt('installing redis-server', ['install', '-y', '-qq', 'redis-server']);
  });
  if (!redisServerRuns()) fail(`apt-get installed no redis-server that runs: ${ADVICE}`);
}

/**
 * @param {string} what
 * @param {string[]} words
 */
async function apt(what, words) {
  const { code, output } = await runQuietly(what, 'apt-get', words);
  if (code !== 0) fail(`${output.trimEnd()}\n${what} failed (${code}). To try by hand: ${ADVICE}`);
}

function redisServerRuns() {
  return spawnSync('redis-server', ['--version'], { stdio: 'ignore' }).status === 0;
}

/**
 * Debian starts installed services. The tests start their own Redis, and do not need one on port 6379. So a policy that
 * forbids starting stands while packages are installed.
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
