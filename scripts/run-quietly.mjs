/** Programs of others, run for `install.mjs`: their output is kept, and shown only if they fail. */
import { spawn } from 'node:child_process';
import { startProgress } from './progress.mjs';

const POLL_INTERVAL_MS = 250;

/**
 * @typedef {object} Ran
 * @property {number} code the exit code; -1 if it could not be run
 * @property {string} output both streams
 */

/**
 * Runs a program to its end and shows how far it is.
 *
 * @param {string} what
 * @param {string} command
 * @param {readonly string[]} words
 * @param {{ unit: string, count: () => readonly [done: number, all: number] }} [counted] asked a few times a second
 * @returns {Promise<Ran>}
 */
export async function runQuietly(what, command, words, counted) {
  const progress = startProgress(what, counted?.unit ?? 'steps');
  const report = () => (counted ? progress.report(...counted.count()) : progress.report(0));
  const ticker = setInterval(report, POLL_INTERVAL_MS);
  const ran = await run(command, words);
  clearInterval(ticker);
  if (ran.code === 0 && counted) progress.report(...counted.count());
  progress.end(ran.code === 0 ? undefined : `failed (${ran.code})`);
  return ran;
}

/**
 * @param {string} command
 * @param {readonly string[]} words
 * @returns {Promise<Ran>}
 */
export async function run(command, words) {
  const child = spawn(command, words, {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => (output += chunk));
  const code = await new Promise((resolve) => {
    child.once('error', (error) => ((output += error.message), resolve(-1)));
    child.once('close', resolve);
  });
  return { code, output };
}

/**
 * Ends the process.
 *
 * @param {string} message
 * @returns {never}
 */
export function fail(message) {
  console.error(message);
  process.exit(1);
}
