/** Identifies the process behind a recorded id: the number may be reused. */
import { readFile } from 'node:fs/promises';
import { runAs } from './postgres-account.ts';

/**
 * The process' command line; undefined if there is no such process, or only its exit status waits to be collected.
 * `/proc` first: bare machines have no `ps`.
 */
export async function commandOfProcess(pid: number): Promise<string | undefined> {
  const fromProc = await readFile(`/proc/${pid}/cmdline`, 'utf8').catch(() => undefined);
  if (fromProc !== undefined) return fromProc.replaceAll('\0', ' ').trim() || undefined;
  const { exitCode, output } = await runAs(undefined, 'ps', ['-o', 'command=', '-p', String(pid)]);
  return exitCode === 0 && output !== '' ? output : undefined;
}
