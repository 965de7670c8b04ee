/** `npm start`: everything on this machine. Before: `scripts/install.mjs`. */
import { totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { describeEnding } from '@sluice/platform/process/describe-ending';
import { parseSettings } from '@sluice/platform/settings/config';
import { findMisspeltSettings } from '@sluice/platform/settings/misspelt-settings';
import { createLifecycle, type Lifecycle } from '@sluice/platform/process/lifecycle';
import { createLogger } from '@sluice/platform/process/logger';
import { renderLogLine, type LogFormat } from './log-lines.ts';
import type { Service } from './service-process.ts';
import { HELP, standaloneSettings, SUPERVISOR_SETTING_NAMES } from './settings.ts';
import { startStandalone } from './start-standalone.ts';

/** Ctrl-C under `npm start` arrives twice, from the terminal and from npm: that is one wish. */
const SAME_WISH_MS = 500;

const say = (text: string): void => void process.stdout.write(`${text}\n`);
// The reader of our output may be gone (`npm start | head`); that is no reason to stop.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

const [argument] = process.argv.slice(2);
if (argument !== undefined) {
  const isQuestion = argument === '--help' || argument === '-h';
  say(isQuestion ? HELP : `unknown argument ${argument}\n\n${HELP}`);
  process.exit(isQuestion ? 0 : 2);
}

const services: Service[] = [];
let lifecycle: Lifecycle | undefined;
let isUp = false;
let stoppingSinceMs: number | undefined;

const stop = async (exitCode: number): Promise<void> => {
  stoppingSinceMs = performance.now();
  await lifecycle?.stop();
  process.exit(exitCode);
};
process.on('uncaughtException', (error) => {
  // A start that fails while it is being stopped fails because of that.
  if (stoppingSinceMs !== undefined && !isUp) return;
  say(explain(error));
  if (stoppingSinceMs === undefined) void stop(1);
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
  process.on(signal, () => {
    if (stoppingSinceMs === undefined) {
      say(
        '\nstopping intake, worker, API and Postgres; work in progress is finished (again to force)',
      );
      void stop(0);
    } else if (performance.now() - stoppingSinceMs > SAME_WISH_MS) {
      say('ending at once');
      for (const service of services) service.kill();
    }
  });
}

const settings = parseSettings(standaloneSettings, process.env);
for (const { name, nearestName } of findMisspeltSettings(process.env, SUPERVISOR_SETTING_NAMES))
  say(
    `${name} is not a setting and has no effect; remove it, or set ${nearestName}, the nearest setting`,
  );
const logFormat: LogFormat = settings.LOG_FORMAT ?? (process.stderr.isTTY ? 'pretty' : 'json');
lifecycle = createLifecycle(createLogger('standalone', settings.LOG_LEVEL));
const banner = await startStandalone(
  {
    settings,
    environment: process.env,
    execPath: process.execPath,
    pid: process.pid,
    root: fileURLToPath(new URL('../../..', import.meta.url)),
    // Of the container, if one bounds it; otherwise Node names more than any machine has.
    memoryBytes: Math.min(totalmem(), process.constrainedMemory() || Infinity),
    lifecycle,
    kill: (pid) => void process.kill(pid, 'SIGKILL'),
    onServiceLine: (service, line) =>
      process.stderr.write(`${renderLogLine(logFormat, service, line)}\n`),
    onNote: say,
  },
  services,
);
if (stoppingSinceMs === undefined) say(banner);
isUp = true;

/** Text for a person: one line for a foreseen error, the whole stack for another. */
function explain(given: unknown): string {
  const { code, message, error } = describeEnding(given);
  if (error === undefined) return `${code}: ${message}`;
  return error instanceof Error ? (error.stack ?? message) : message;
}
