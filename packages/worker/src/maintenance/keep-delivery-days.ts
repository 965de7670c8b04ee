/**
 * Makes the days of deliveries ahead and drops the old ones (`database/src/maintenance/delivery-retention.ts`).
 *
 * A row is of the day that Postgres wrote it on. So days are made by its clock, and dropped by the earlier of its clock
 * and ours. A worker whose clock is ahead must not drop days that are kept for a month, nor the day that is being
 * written: a row that is logged beside the drop would go with it.
 */
import type { Database } from '@sluice/database/connection/connection';
import {
  dropOldDeliveries,
  findDatabaseTime,
  makeDeliveryPartitions,
} from '@sluice/database/maintenance/delivery-retention';
import type { Logger } from '@sluice/platform/process/logger';

/** Today and the next ones; of a day without a partition the deliveries go to the default one. */
const DELIVERY_DAYS_AHEAD = 4;
/** A transaction writes into the day on which it began. Every transaction is shorter than this. */
const LATE_MS = 3_600_000;

export interface KeepDeliveryDaysDeps {
  readonly database: Database;
  readonly now: () => number;
  readonly logger: Pick<Logger, 'info'>;
}

/** May be run by several workers at once. @param keptDays - today included. */
export async function keepDeliveryDays(
  { database, now, logger }: KeepDeliveryDaysDeps,
  keptDays: number,
): Promise<void> {
  const databaseTime = await findDatabaseTime(database);
  await makeDeliveryPartitions(database, databaseTime, DELIVERY_DAYS_AHEAD);
  const writtenUntil = new Date(Math.min(databaseTime.getTime(), now()) - LATE_MS);
  const days = await dropOldDeliveries(database, writtenUntil, keptDays);
  if (days.dropped.length + days.reduced.length > 0) logger.info(days, 'old deliveries dropped');
}
