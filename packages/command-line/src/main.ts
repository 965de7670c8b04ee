/** The process of one `sluice` command. Before: `bin/sluice.mjs`. */
import { spawn, type ChildProcess } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { constants, hostname } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AppError, type ErrorCode } from '@sluice/domain/values/errors';
import { printable } from '@sluice/domain/values/printable';
import { CommanderError } from 'commander';
import { createProgram } from './program.ts';
import { openBrowser } from './connection/open-browser.ts';
import { profilesFile, readProfiles } from './connection/profiles.ts';
import { findRunningStart } from './connection/running-start.ts';
import { type OutputFormat, type Terminal, withinRow } from './output/terminal.ts';

/** Ctrl-C arrives twice, from the terminal and from `bin/sluice.mjs`: that is one wish. */
const SAME_WISH_MS = 500;

const stopping = new AbortController();
let stoppingSinceMs: number | undefined;
let stoppedBy: NodeJS.Signals | undefined;
/** The script that is under way; a signal to us is passed to it, and we end after it. */
let script: ChildProcess | undefined;
// A closed window sends SIGHUP: `sluice listen` then still deletes its webhook.
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
  process.on(signal, () => {
    stoppedBy ??= signal;
    stopping.abort();
    script?.kill(signal);
    stoppingSinceMs ??= performance.now();
    // A closed window may send SIGHUP again at any time, so the second one is no wish to end at once.
    if (signal !== 'SIGHUP' && performance.now() - stoppingSinceMs > SAME_WISH_MS)
      process.exit(endedBy(signal));
  });
/** Code of an ending that came from the output. */
let unwrittenExitCode: number | undefined;
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (unwrittenExitCode !== undefined) return;
  // The reader may have enough of it (`sluice tail | head`).
  unwrittenExitCode = error.code === 'EPIPE' ? 0 : 1;
  // On a full disk; a value that is shown once, like a key's secret, is then lost.
  if (unwrittenExitCode !== 0)
    process.stderr.write(
      `sluice: the output could not be written (${error.message}), but the command may have been executed. Check before you repeat it\n`,
    );
  // As Ctrl-C does: `sluice listen` first deletes its webhook.
  stopping.abort();
});
process.on('exit', (code) => {
  if (code === 0 && unwrittenExitCode !== undefined) process.exitCode = unwrittenExitCode;
});
/** The reader of the output had enough, and that ended this call: it is no failure. */
const isOfReader = ({ cause }: AppError): boolean =>
  unwrittenExitCode !== undefined && cause === stopping.signal.reason;
// A reader of only the notes may have enough of them (`sluice send 2>&1 > result | head`): the command goes on.
process.stderr.on('error', () => undefined);

/** Exit codes for scripts; 1 is for all other refusals. */
const EXIT_CODES: Partial<Record<ErrorCode, number>> = {
  COMMAND_MISUSED: 2,
  COMMAND_NOT_REACHED: 3,
  COMMAND_NOT_ALLOWED: 4,
};

/** Not 1, with which `status`, `verify` and `secrets lost` report that something is not as it should be. */
const WRONG_WORDS = 2;

/** The exit code that a shell gives to a command that a signal ended. */
const endedBy = (signal: NodeJS.Signals): number => 128 + constants.signals[signal];

const LOGGED_PROGRESS_INTERVAL_MS = 5_000;
/** A command that is over sooner logs no progress. */
const SILENT_MS = 2_000;

function createTerminal(format: OutputFormat, columns: readonly string[] | undefined): Terminal {
  const isInPlace = process.stderr.isTTY;
  let hasProgress = false;
  let logDueAtMs = performance.now() + SILENT_MS;
  return {
    format,
    columns,
    // A pipe has no width: its reader wants whole rows.
    width: process.stdout.isTTY && format === 'table' ? process.stdout.columns : undefined,
    // `hasColors` knows NO_COLOR.
    hasColor: format === 'table' && process.stdout.isTTY && process.stdout.hasColors(),
    now: Date.now,
    clear: () => void process.stdout.write(process.stdout.isTTY ? '\u001B[H\u001B[2J' : '\n'),
    line: (text) => void process.stdout.write(`${text}\n`),
    note: (text) => void process.stderr.write(`${text}\n`),
    progress(text, counted) {
      hasProgress = true;
      if (isInPlace) {
        process.stderr.write(`\r\u001B[K${withinRow(text, process.stderr.columns)}`);
        return;
      }
      if (performance.now() < logDueAtMs) return;
      logDueAtMs = performance.now() + LOGGED_PROGRESS_INTERVAL_MS;
      process.stderr.write(`${JSON.stringify(counted)}\n`);
    },
    progressDone() {
      if (isInPlace && hasProgress) process.stderr.write('\n');
      hasProgress = false;
    },
  };
}

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const runningStart = findRunningStart(ROOT, process.env, (pid) => void process.kill(pid, 0));

const { version } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as { version: string };
const profiles = profilesFile(process.env);

const program = createProgram({
  version,
  terminal: createTerminal,
  signal: stopping.signal,
  runId: randomUUID,
  runningStart,
  profilesFile: profiles,
  readProfiles: () => readProfiles(profiles),
  input: process.stdin,
  hostName: hostname,
  openBrowser: (url) => openBrowser(process.platform, url),
  runScript: (name, words = []) =>
    new Promise((resolve, reject) => {
      const file = join(ROOT, 'scripts', `${name}.ts`);
      script = spawn(process.execPath, [...process.execArgv, file, ...words], { stdio: 'inherit' })
        .once('error', reject)
        .once('exit', (code, signal) => resolve(code ?? (signal ? endedBy(signal) : 1)));
    }),
  setExitCode: (code) => void (process.exitCode = code),
  setInterrupted() {
    if (stoppedBy !== undefined) process.exitCode = endedBy(stoppedBy);
    else if (unwrittenExitCode === undefined) process.exitCode = 1;
  },
});

try {
  await program.parseAsync();
} catch (error) {
  if (error instanceof CommanderError) {
    // Commander has printed the error, or shown its help.
    process.exitCode = error.exitCode === 0 ? 0 : WRONG_WORDS;
  } else if (error instanceof AppError && !isOfReader(error)) {
    // The API's message may quote texts of others; only its line breaks are kept as they are.
    process.stderr.write(`sluice: ${error.message.split('\n').map(printable).join('\n')}\n`);
    process.exitCode = stoppedBy === undefined ? (EXIT_CODES[error.code] ?? 1) : endedBy(stoppedBy);
  } else if (!(error instanceof AppError)) {
    throw error;
  }
}
