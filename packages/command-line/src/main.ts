/** The process of one `sluice` command. Before: `bin/sluice.mjs`. */
import { spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { AppError } from '@sluice/domain/errors';
import { createProgram } from './program.ts';
import type { Terminal } from './terminal.ts';

/** Ctrl-C arrives twice, from the terminal and from `bin/sluice.mjs`: that is one wish. */
const SAME_WISH_MS = 500;

const stopping = new AbortController();
let stoppingSinceMs: number | undefined;
process.on('SIGINT', () => {
  stopping.abort();
  stoppingSinceMs ??= performance.now();
  if (performance.now() - stoppingSinceMs > SAME_WISH_MS) process.exit(130);
});
// Who reads our output may have enough of it (`sluice tail | head`).
process.stdout.on('error', () => process.exit(0));

function createTerminal(isJson: boolean): Terminal {
  let isInPlace = false;
  return {
    isJson,
    hasColor: !isJson && process.stdout.isTTY && process.stdout.hasColors(),
    line: (text) => void process.stdout.write(`${text}\n`),
    progress(text) {
      isInPlace = process.stderr.isTTY;
      process.stderr.write(isInPlace ? `\r\u001B[K${text}` : `${text}\n`);
    },
    progressDone() {
      if (isInPlace) process.stderr.write('\n');
      isInPlace = false;
    },
  };
}

const program = createProgram({
  terminal: createTerminal,
  signal: stopping.signal,
  runId: randomUUID,
  runScript: (name, words = []) =>
    new Promise((resolve, reject) => {
      const script = fileURLToPath(new URL(`../../../scripts/${name}.ts`, import.meta.url));
      spawn(process.execPath, [...process.execArgv, script, ...words], { stdio: 'inherit' })
        .once('error', reject)
        .once('exit', (code) => resolve(code ?? 1));
    }),
  setExitCode: (code) => void (process.exitCode = code),
});

try {
  await program.parseAsync();
} catch (error) {
  if (!(error instanceof AppError)) throw error;
  process.stderr.write(`sluice: ${error.message}\n`);
  process.exitCode = 1;
}
