/** The operator's programs as they are typed: started, watched and ended from outside. */
import { spawn, type ChildProcessWithoutNullStreams } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import type { Fleet } from './fleet-under-test.ts';

const pathOf = (path: string) => fileURLToPath(new URL(`../../../../${path}`, import.meta.url));
export const SLUICE = pathOf('packages/command-line/bin/sluice.mjs');
export const PARKED = pathOf('scripts/parked.ts');
export const IDENTIFIERS = pathOf('scripts/identifiers.ts');
export const SECRETS = pathOf('scripts/secrets.ts');

/** Lines of JSON on standard error about a wait or about work of more than two seconds. */
const PROGRESS = /^\{"progress":.*\}\n/gm;

/** Without the lines that any program writes on a slow machine. */
export const withoutProgress = (errors: string): string => errors.replaceAll(PROGRESS, '');

export interface Program {
  readonly child: ChildProcessWithoutNullStreams;
  readonly output: string;
  /** Without its progress. */
  readonly errors: string;
  /** Its exit code, once everybody who holds its output has ended: its children and theirs too. */
  readonly ended: Promise<number | null>;
  /** Ends it and all that it has started, at once. */
  kill(): void;
}

/** In a process group of its own, so that no signal reaches its children but from it. It ends with the test. */
export const runProgram = (
  file: string,
  words: readonly string[],
  settings: Readonly<Record<string, string>>,
): Program => runCommand(process.execPath, [file, ...words], settings);

function runCommand(
  command: string,
  words: readonly string[],
  settings: Readonly<Record<string, string>>,
): Program {
  const child = spawn(command, words, {
    env: {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      // The test does not use a developer's own `npm start`.
      SLUICE_DIRECTORY: '/nowhere',
      ...settings,
    },
    detached: true,
  });
  let errors = '';
  const program = {
    child,
    output: '',
    get errors() {
      return withoutProgress(errors);
    },
    ended: new Promise<number | null>((resolve) => child.once('close', resolve)),
    kill() {
      try {
        process.kill(-(child.pid as number), 'SIGKILL');
      } catch {
        // All of it has ended.
      }
    },
  };
  onTestFinished(() => program.kill());
  child.stdout.setEncoding('utf8').on('data', (text: string) => (program.output += text));
  child.stderr.setEncoding('utf8').on('data', (text: string) => (errors += text));
  return program;
}

/** Addresses by which `sluice` finds the services of a fleet. */
export const sluiceSettings = (fleet: Fleet): Record<string, string> => ({
  SLUICE_API_URL: fleet.api.url,
  SLUICE_INTAKE_URL: fleet.intake.url,
  DATABASE_URL: fleet.databaseUrl,
});

/** `sluice`, to its end. */
export async function runSluice(fleet: Fleet, words: readonly string[]) {
  const program = runProgram(SLUICE, words, sluiceSettings(fleet));
  const exitCode = await program.ended;
  const { output, errors } = program;
  return { output, errors, exitCode };
}

/**
 * `sluice` on a terminal of so many columns, which the program `script` of the machine makes.
 *
 * @param more - of its environment.
 * @returns the lines of the terminal, with their control characters.
 */
export async function sluiceOnTerminal(
  fleet: Fleet,
  columns: number,
  words: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<string[]> {
  const quoted = [process.execPath, SLUICE, ...words].map(
    (word) => `'${word.replaceAll("'", String.raw`'\''`)}'`,
  );
  const command = `stty cols ${columns}; exec ${quoted.join(' ')}`;
  const program = runCommand(
    'script',
    process.platform === 'darwin'
      ? ['-q', '/dev/null', 'sh', '-c', command]
      : ['-qec', command, '/dev/null'],
    { TERM: 'xterm-256color', ...sluiceSettings(fleet), ...more },
  );
  program.child.stdin.end();
  await program.ended;
  return program.output.trimEnd().split('\r\n');
}
