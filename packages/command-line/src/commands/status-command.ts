/** The words of `sluice status`. */
import { gather } from '../input/arguments.ts';
import type { Context } from './context.ts';
import { readDetails } from './status-details.ts';
import { readStatus, writeStatus } from './status.ts';

const WATCH_INTERVAL_MS = 2_000;

interface StatusOptions {
  readonly workerUrl?: string[];
  readonly also?: string[];
  readonly watch?: true;
}

export function addStatusCommand(context: Context): void {
  const { program, options, terminal, setExitCode } = context;
  program
    .command('status')
    .description(
      'running processes, their readiness, and the backlog of the fleet; exits 1 if a process is not ready',
    )
    .option('--worker-url <url>', 'a worker; again for more', gather)
    .option('--also <url>', 'another process; again for more', gather)
    .option('--watch', 'again every two seconds, until Ctrl-C')
    .action(async ({ workerUrl, also = [], watch }: StatusOptions) => {
      const { intakeUrl, apiUrl, workerUrls } = options();
      const urls = [intakeUrl, apiUrl, ...(workerUrl ?? workerUrls), ...also].filter(
        (url) => url !== undefined,
      );
      const output = terminal();
      for (;;) {
        const [found, details] = await Promise.all([
          readStatus(urls),
          readDetails(context.api(), context.accountApi()),
        ]);
        if (context.signal.aborted && watch) return;
        if (watch) output.clear();
        const isReady = writeStatus(output, found, details);
        if (!watch) {
          if (!isReady) setExitCode(1);
          return;
        }
        await context.pause(WATCH_INTERVAL_MS);
        if (context.signal.aborted) return;
      }
    });
}
