/**
 * Shares the files of a run among processes: each takes the next file when it is free.
 *
 * The text of the active mutant belongs to a process and to the ones that it starts, so two files at once need two
 * processes. Each has a Postgres of its own: a failed mutant drops the databases that it leaves there.
 */
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import type { FileRun } from './run-table.ts';

/** From a process that is free. `run`: of the file that it had, undefined before the first one. */
interface FreeMessage {
  readonly index: number | undefined;
  readonly run: FileRun | undefined;
}
/** To it: the place of its next file in the list. Undefined: there are no further files. */
interface NextMessage {
  readonly index: number | undefined;
}

/**
 * Starts `processCount` processes of the command with the same arguments.
 *
 * @param fileCount - of the list that each process makes from the arguments.
 * @returns the runs in the order of the list.
 * @throws Error if a process ends before its last file is done.
 */
export async function runInProcesses(
  command: URL,
  args: readonly string[],
  { fileCount, processCount }: { readonly fileCount: number; readonly processCount: number },
): Promise<FileRun[]> {
  const runs = new Map<number, FileRun>();
  let next = 0;
  await Promise.all(
    Array.from({ length: processCount }, async () => {
      const child = fork(fileURLToPath(command), args, { execArgv: process.execArgv });
      let isDone = false;
      child.on('message', ({ index, run }: FreeMessage) => {
        if (index !== undefined && run) runs.set(index, run);
        isDone = next >= fileCount;
        child.send({ index: isDone ? undefined : next++ } satisfies NextMessage);
      });
      const [code] = (await once(child, 'exit')) as [number | null];
      if (!isDone) throw new Error(`a process of the run ended with ${code}`);
    }),
  );
  return [...runs].toSorted(([one], [other]) => one - other).map(([, run]) => run);
}

/** @returns undefined if the time is over. */
type RunFile = (index: number) => Promise<FileRun | undefined>;

/** In a started process: runs the given files, one at a time, until all are given. */
export async function runGivenFiles(runFile: RunFile): Promise<FileRun[]> {
  const runs: FileRun[] = [];
  const end = (): never => process.exit(1);
  process.once('disconnect', end);
  let free: FreeMessage = { index: undefined, run: undefined };
  for (;;) {
    const answer = once(process, 'message') as Promise<[NextMessage]>;
    process.send?.(free);
    const [{ index }] = await answer;
    if (index === undefined) break;
    const run = await runFile(index);
    if (run) runs.push(run);
    free = { index, run };
  }
  process.off('disconnect', end);
  process.disconnect();
  return runs;
}

/** One after another, in this process. */
export async function runAllFiles(runFile: RunFile, fileCount: number): Promise<FileRun[]> {
  const runs: FileRun[] = [];
  for (let index = 0; index < fileCount; index++) {
    const run = await runFile(index);
    if (run) runs.push(run);
  }
  return runs;
}
