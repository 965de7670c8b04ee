/** `npm start`: everything on this machine. Before: `scripts/install.mjs`. */
import { totalmem } from 'node:os';
import { fileURLToPath } from 'node:url';
import { AppError } from '@sluice/domain/errors';
import { parseSettings } from '@sluice/platform/config';
import { createLifecycle } from '@sluice/platform/lifecycle';
import { createLogger } from '@sluice/platform/logger';
import { renderLogLine, type LogFormat } from './log-lines.ts';
import type { Service } from './service-process.ts';
import { HELP, standaloneSettings } from './settings.ts';
import { startStandalone } from './start-standalone.ts';

/** Ctrl-C under `npm start` arrives twice, from the terminal and from npm: that is one wish. */
const SAME_WISH_MS = 500;

const say = (text: string): void => void process.stdout.write(`${text}\n`);
// Who read our output may be gone (`npm start | head`); that is no reason to stop.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {});

const [argument] = process.argv.slice(2);
if (argument !== undefined) {
  const isQuestion = argument === '--help' || argument === '-h';
  say(isQuestion ? HELP : `unknown argument ${argument}\n\n${HELP}`);
  process.exit(isQuestion ? 0 : 2);
}

const services: Service[] = [];
let stoppingSinceMs: number | undefined;

try {
  const settings = parseSettings(standaloneSettings, process.env);
  const logFormat: LogFormat = settings.LOG_FORMAT ?? (process.stderr.isTTY ? 'pretty' : 'json');
  const lifecycle = createLifecycle(createLogger('standalone', settings.LOG_LEVEL));

  const stop = async (exitCode: number): Promise<void> => {
    stoppingSinceMs = performance.now();
    await lifecycle.stop();
    process.exit(exitCode);
  };
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      if (stoppingSinceMs === undefined) {
        say(
          '\nstopping: intake, worker, API, Postgres; what is in hand is finished (again to force)',
        );
        void stop(0).then(() => undefined);
      } else if (performance.now() - stoppingSinceMs > SAME_WISH_MS) {
        say('ending at once');
        for (const service of services) service.kill();
      }
    });
  }

  try {
    const banner = await startStandalone(
      {
        settings,
        environment: process.env,
        execPath: process.execPath,
        pid: process.pid,
        root: fileURLToPath(new URL('../../..', import.meta.url)),
        // Of the container, where one bounds it: without, Node says more than any machine has.
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
  } catch (error) {
    // A start that fails while it is being stopped fails because of that.
    if (stoppingSinceMs === undefined) {
      say(explain(error));
      await stop(1);
    }
  }
} catch (error) {
  say(explain(error));
  process.exit(1);
}

/** What a person needs: the message for what is foreseen, the whole stack for what is not. */
function explain(error: unknown): string {
  if (error instanceof AppError) return `${error.code}: ${error.message}`;
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}
