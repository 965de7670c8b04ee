/**
 * Bound on connections by the open files of the process. Used by `main.ts`.
 *
 * A process without a free file takes no connection, but uWebSockets.js tries without end, with all time of the event
 * loop. The connections to Postgres and Redis, and the local disk buffer, are files too. So a quarter is kept for those.
 */
import type { Logger } from '@sluice/platform/process/logger';
import { readOpenFilesMax } from '@sluice/platform/settings/open-files';

const CONNECTION_PART = 3 / 4;

/**
 * @returns `wanted`, or less if the kernel does not allow as many files. Then a line of the log names its limit.
 */
export function connectionCountWithin(wanted: number, logger: Pick<Logger, 'info'>): number {
  const openFilesMax = readOpenFilesMax();
  const connectionCountMax = Math.min(wanted, Math.floor(CONNECTION_PART * openFilesMax));
  if (connectionCountMax < wanted)
    logger.info(
      {
        openFilesMax,
        connectionCountMax,
        wantedConnectionCountMax: wanted,
        neededOpenFilesMax: Math.ceil(wanted / CONNECTION_PART),
      },
      'this process may open too few files for INTAKE_CONNECTION_COUNT_MAX and takes fewer connections; raise the limit to neededOpenFilesMax (ulimit -n, LimitNOFILE of systemd, ulimits of Compose), or lower the setting',
    );
  return connectionCountMax;
}
