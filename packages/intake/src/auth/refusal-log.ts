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
        {
          refusedCount: summary.count,
          countsByReason: summary.countsByReason,
          ...summary.last,
        },
        'calls without credentials in force were not stored (a call of the Pipelines API in permissive mode was answered 200). The fields describe the last one with a key; correct the key of its sender',
      );
    return Promise.resolve();
  });
}
