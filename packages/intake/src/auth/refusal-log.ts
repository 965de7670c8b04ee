/**
 * Now and then a line of the log about refused keys.
 *
 * A web page with a wrong key sends thousands of calls.
 */
import type { Logger } from '@sluice/platform/process/logger';
import { repeat } from '@sluice/platform/process/repeat';
import type { UnauthorizedRecorder } from './unauthorized-recorder.ts';

const INTERVAL_MS = 10_000;

export function startRefusalLog(
  recorder: Pick<UnauthorizedRecorder, 'takeSummary'>,
  logger: Logger,
): ReturnType<typeof repeat> {
  return repeat('log refused keys', INTERVAL_MS, logger, () => {
    const summary = recorder.takeSummary();
    if (summary !== undefined)
      logger.warn(
        { refusedCount: summary.count, ...summary.last },
        'calls with unknown API keys were not stored; permissive mode answered 200. The fields describe the last call; correct the key of its sender',
      );
    return Promise.resolve();
  });
}
