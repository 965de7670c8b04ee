/**
 * Ends a server that a killed supervisor left on our data. Its guard was killed too.
 *
 * The caller holds the data's lock, so no supervisor lives. Postgres itself would refuse to start beside a live
 * process of the recorded id, even when that id now belongs to something else.
 */
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { AppError } from '@sluice/domain/values/errors';
import { runAs, type ServerAccount } from './postgres-account.ts';
import { commandOfProcess } from './process-command.ts';

export interface StaleServerOptions {
  readonly dataPath: string;
  readonly account: ServerAccount;
  readonly pgCtl: string;
  readonly onProgress: (line: string) => void;
}

/** @throws AppError DATABASE_START_FAILED when the old server cannot be stopped. */
export async function stopStaleServer(options: StaleServerOptions): Promise<void> {
  const { dataPath, account, pgCtl, onProgress } = options;
  const lockFile = join(dataPath, 'postmaster.pid');
  const lines = (await readFile(lockFile, 'utf8').catch(() => '')).split('\n');
  const pid = Number(lines[0]);
  if (!Number.isInteger(pid) || pid <= 0) return;

  const command = await commandOfProcess(pid);
  if (!command?.includes('postgres') || !command.includes(dataPath)) {
    // Gone, or the id was given to another program. Postgres takes its own parent's id, ours, for a leftover,
    // and still looks for processes of the old server that hold its memory: removing the file would not.
    await writeFile(lockFile, [await ownPid(), ...lines.slice(1)].join('\n'));
    return;
  }
  onProgress(`stopping a Postgres (process ${pid}) that an earlier run left behind`);
  for (const mode of ['fast', 'immediate']) {
    const { exitCode } = await runAs(account, pgCtl, [
      'stop',
      '-D',
      dataPath,
      '-m',
      mode,
      '-w',
      '-t',
      '15',
    ]);
    if (exitCode === 0) return;
  }
  throw new AppError(
    'DATABASE_START_FAILED',
    `a Postgres (process ${pid}) of an earlier run does not stop; kill it`,
  );
}

async function ownPid(): Promise<string> {
  const { output } = await runAs(undefined, '/bin/sh', ['-c', 'echo "$PPID"']);
  return output;
}
