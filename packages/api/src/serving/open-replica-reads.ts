/** Opens the replica that the API reads (`DATABASE_READ_URL`). Watches its lag. */
import { hasWritten, noteWrite } from '@sluice/database/changes/recent-writes';
import { createDatabase, type Database } from '@sluice/database/connection/connection';
import {
  createFallingBackDatabase,
  readPrimaryPosition,
  readReplicaPosition,
} from '@sluice/database/connection/read-replica';
import type { Lifecycle } from '@sluice/platform/process/lifecycle';
import type { Logger } from '@sluice/platform/process/logger';
import { repeat } from '@sluice/platform/process/repeat';
import type { Metrics } from '@sluice/platform/telemetry/metrics';
import type { ReplicaReads } from '../http/replica-reads.ts';
import { ReplicaWatch } from './replica-watch.ts';

export interface ReplicaReadsSettings {
  readonly DATABASE_READ_URL?: string | undefined;
  readonly DATABASE_READ_STALENESS_MS_MAX: number;
  readonly DATABASE_POOL_MAX: number;
  readonly API_STATEMENT_MS_MAX: number;
}

export interface ReplicaReadsEffects {
  readonly primary: Database;
  readonly monotonicNow: () => number;
  readonly metrics: Pick<Metrics, 'counterBy'>;
  readonly logger: Logger;
  readonly lifecycle: Pick<Lifecycle, 'defer'>;
}

/** Looks within the bound, so that one look may fail or come late. */
const LOOKS_A_BOUND = 5;
const LOOK_INTERVAL_MS_MAX = 1_000;

/**
 * The replica may be away: until it answers, and after it failed, the primary is read. `describe`: for `/readyz`.
 *
 * @returns undefined if the settings name no replica.
 */
export function openReplicaReads(
  settings: ReplicaReadsSettings,
  { primary, monotonicNow, metrics, logger, lifecycle }: ReplicaReadsEffects,
): (ReplicaReads & { readonly describe: () => string }) | undefined {
  const { DATABASE_READ_URL: url, DATABASE_READ_STALENESS_MS_MAX: stalenessMsMax } = settings;
  if (url === undefined) return undefined;
  const replica = createDatabase({
    url,
    applicationName: 'sluice-api-reads',
    poolMax: settings.DATABASE_POOL_MAX,
    statementMsMax: settings.API_STATEMENT_MS_MAX,
    onError: (error) => watch.noticeFailure(error),
  });
  const watch = new ReplicaWatch({
    stalenessMsMax,
    readPrimaryPosition: () => readPrimaryPosition(primary),
    readReplicaPosition: () => readReplicaPosition(replica),
    monotonicNow,
    logger,
  });
  lifecycle.defer('replica', () => replica.destroy());
  const intervalMs = Math.min(LOOK_INTERVAL_MS_MAX, stalenessMsMax / LOOKS_A_BOUND);
  const looks = repeat('look at the replica', intervalMs, logger, () => watch.look());
  lifecycle.defer('looks at the replica', () => looks.stop());
  const readCounts = new Map<string, number>();
  metrics.counterBy(
    'from',
    'sluice_api_reads_total',
    'Calls that a replica may answer, by the server that was read: replica or primary',
    () => readCounts,
  );
  return {
    database: createFallingBackDatabase(primary, replica, (error) => watch.noticeFailure(error)),
    stalenessMsMax,
    isFresh: () => watch.isFresh(),
    hasWritten: (caller) => hasWritten(primary, caller, stalenessMsMax),
    noteWrite: (caller) => noteWrite(primary, caller),
    onRead: (from) => void readCounts.set(from, (readCounts.get(from) ?? 0) + 1),
    describe: () => watch.describe(),
  };
}
