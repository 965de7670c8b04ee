/** Writes a worker's counts every ten seconds, and once at its end. */
import type { Database } from '@sluice/database/connection/connection';
import { writeMinutes } from '@sluice/database/maintenance/minute-statistics';
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import type { Logger } from '@sluice/platform/process/logger';
import { repeat } from '@sluice/platform/process/repeat';
import { MinuteStatistics } from './minute-statistics.ts';

const INTERVAL_MS = 10_000;

export interface StatisticsDeps {
  readonly database: Database;
  /** Whose sums they are. */
  readonly processId: string;
  readonly now: () => number;
  readonly logger: Logger;
  readonly lifecycle: Pick<Lifecycle, 'defer'>;
}

/** Call it before the counted work begins: `lifecycle` ends the last begun work first. */
export function startStatistics(deps: StatisticsDeps): MinuteStatistics {
  const { database, processId, now, logger, lifecycle } = deps;
  const statistics = new MinuteStatistics(now);
  const write = (): Promise<void> =>
    statistics.write((events, sent) => writeMinutes(database, processId, events, sent));
  const writing = repeat('write statistics', INTERVAL_MS, logger, write);
  lifecycle.defer('statistics', async () => {
    await writing.stop();
    await write();
  });
  return statistics;
}
