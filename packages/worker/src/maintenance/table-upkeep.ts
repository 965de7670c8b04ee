/** Starts what a worker does by the clock for tables that grow: partitions made ahead, old records forgotten. */
import type { Database } from '@sluice/database/connection/connection';
import { makeEventPartitions } from '@sluice/database/events/events';
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import type { Logger } from '@sluice/platform/process/logger';
import { repeat } from '@sluice/platform/process/repeat';
import { forgetOldRecords, type Retention } from './forget-old-records.ts';

export interface TableUpkeepDeps {
  readonly database: Database;
  readonly retention: Retention;
  readonly now: () => number;
  readonly logger: Logger;
  readonly lifecycle: Lifecycle;
  /** Aborted by the stop, and so what else listens to it. */
  readonly stopping: AbortController;
}

/** Events of a month without a partition go to the default one, which never shrinks. */
const PARTITIONS_AHEAD_MONTHS = 3;
const FORGETTING_INTERVAL_MS = 3_600_000;
const PARTITIONS_INTERVAL_MS = 6 * 3_600_000;

/** It stops with `lifecycle`. */
export function startTableUpkeep(deps: TableUpkeepDeps): void {
  const { database, retention, now, logger, lifecycle, stopping } = deps;
  const forgetting = repeat('forget old records', FORGETTING_INTERVAL_MS, logger, () =>
    forgetOldRecords(database, retention, now(), stopping.signal),
  );
  lifecycle.defer('forgetting', () => {
    stopping.abort();
    return forgetting.stop();
  });
  const partitions = repeat('make partitions', PARTITIONS_INTERVAL_MS, logger, () =>
    makeEventPartitions(database, PARTITIONS_AHEAD_MONTHS),
  );
  lifecycle.defer('partitions', () => partitions.stop());
}
