/**
 * The Postgres that is installed on this machine.
 *
 * Its programs (`pg_dump`) fit it; the embedded one has no programs.
 */
import { execFile, spawn } from 'node:child_process';
import { chown, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { chooseServerAccount, runAs } from '@sluice/database/embedded/postgres-account';
import { findFreePort } from '@sluice/platform/testing/free-port';

const run = promisify(execFile);
const READY_POLLS_MAX = 300;

/** @throws Error if Postgres is not installed, or does not come up. */
export async function startInstalledPostgres(
  directory: string,
): Promise<{ url(database: string): string; stop(): Promise<void> }> {
  const { stdout } = await run('pg_config', ['--bindir']);
  const programs = stdout.trim();
  const data = join(directory, 'data');
  const account = await chooseServerAccount(data);
  await mkdir(data, { recursive: true, mode: 0o700 });
  if (account) await chown(data, account.uid, account.gid);
  const made = await runAs(account, join(programs, 'initdb'), [
    '-D',
    data,
    '-U',
    'sluice',
    '-A',
    'trust',
    '-E',
    'UTF8',
  ]);
  if (made.exitCode !== 0) throw new Error(made.output);
  const port = await findFreePort();
  const server = spawn(
    join(programs, 'postgres'),
    ['-D', data, '-p', String(port), '-k', '', '-c', 'listen_addresses=127.0.0.1'],
    { cwd: '/', ...account, stdio: 'ignore' },
  );
  const ended = new Promise<void>((resolve) => server.once('exit', () => resolve()));
  const url = (database: string) => `postgres://sluice@127.0.0.1:${port}/${database}`;
  for (let poll = 0; ; poll++) {
    const isReady = await run('psql', [url('postgres'), '-c', 'select 1']).catch(() => undefined);
    if (isReady) break;
    if (poll === READY_POLLS_MAX) throw new Error('the installed Postgres does not come up');
    await sleep(100);
  }
  return {
    url,
    async stop() {
      server.kill('SIGINT');
      await ended;
    },
  };
}
