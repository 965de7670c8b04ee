/**
 * Statements about delivery queues, grouped over all drains of a worker: claims, parts of the log, progress. Each drain
 * sees calls of its own.
 *
 * Between `deliver-webhook.ts`, `lane-drain.ts` and the statements of `database/src/delivery/lanes.ts` and
 * `logged-deliveries.ts` (step 14).
 */
import type { Database } from '@sluice/database/connection/connection';
import {
  listDeliveriesAfter,
  type LoggedDelivery,
  type LogRequest,
} from '@sluice/database/delivery/logged-deliveries';
import {
  recordProgressOfLanes,
  type DrainReport,
  type LaneAfterProgress,
} from '@sluice/database/delivery/lane-progress';
import {
  claimLaneRange,
  claimLanes,
  findLanes,
  listDueLanes,
  type ClaimedLane,
  type FoundLane,
  type LaneClaim,
  type LaneRangeClaim,
  type LaneReport,
} from '@sluice/database/delivery/lanes';
import { isRefusedData } from '@sluice/database/connection/statement-failure';
import { changeWebhook } from '@sluice/database/webhooks/webhook-changes';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { LaneRange } from '@sluice/domain/wake-ups/lane-ranges';
import { GroupedCalls } from '@sluice/platform/process/grouped-calls';

export interface LaneStore {
  /** Undefined if no delivery is due, or another holds the lease. */
  claim(claim: LaneClaim): Promise<ClaimedLane | undefined>;
  /** The lanes of a range of which a delivery is due, and no other holds the lease. */
  claimRange(claim: LaneRangeClaim): Promise<readonly FoundLane[]>;
  /** The lanes of a range of which a delivery is due, and no other holds the lease; also of a closed workspace. */
  listDue(range: LaneRange): Promise<readonly LaneKey[]>;
  load(request: LogRequest): Promise<LoggedDelivery[]>;
  /** Undefined if the lease was lost. */
  keep(report: DrainReport): Promise<LaneAfterProgress | undefined>;
  find(lane: LaneKey): Promise<LaneReport | undefined>;
  /** Disables its webhook, with an entry in the audit log of its account; waiting deliveries are kept. */
  disable(lane: LaneKey): Promise<void>;
}

/** Bounds the lanes that wait for one slow statement, and the memory of one part of the log. */
const LANES_A_STATEMENT_MAX = 200;
/**
 * Endpoints that began to hang together reach their deadlines together. Their progress is stored beside the progress of
 * healthy lanes, not before it, and few lanes at a time: a statement locks all of its lanes until its commit, and a
 * process that logs a delivery for one of them waits.
 */
const FAILING_LANES_A_STATEMENT_MAX = 32;
/** Two, so that the next is on its way to Postgres while the answer of the last is read. */
const STATEMENTS_AT_A_TIME = 2;

/**
 * @param now - Unix milliseconds.
 * @param probeWaitMsMax - the longest that the policy puts off a retry probe.
 */
export function createLaneStore(
  database: Database,
  now: () => number,
  probeWaitMsMax: number,
): LaneStore {
  const options = {
    groupMax: LANES_A_STATEMENT_MAX,
    flightsMax: STATEMENTS_AT_A_TIME,
    isOnesFault: isRefusedData,
  };
  const claims = new GroupedCalls({
    ...options,
    run: (group: readonly LaneClaim[]) => claimLanes(database, group, now(), probeWaitMsMax),
  });
  const loads = new GroupedCalls({
    ...options,
    run: (group: readonly LogRequest[]) => listDeliveriesAfter(database, group),
  });
  const keepAll = (group: readonly DrainReport[]) => recordProgressOfLanes(database, group, now());
  const reports = new GroupedCalls({ ...options, run: keepAll });
  const failures = new GroupedCalls({
    ...options,
    run: keepAll,
    groupMax: FAILING_LANES_A_STATEMENT_MAX,
    flightsMax: 1,
  });
  const finds = new GroupedCalls({
    ...options,
    run: (group: readonly LaneKey[]) => findLanes(database, group),
  });
  return {
    claim: (claim) => claims.call(claim),
    claimRange: (claim) => claimLaneRange(database, claim, now(), probeWaitMsMax),
    listDue: (range) => listDueLanes(database, range, now(), probeWaitMsMax),
    load: (request) => loads.call(request),
    keep: (report) =>
      (report.progress.snapshot.state === 'failing' ? failures : reports).call(report),
    find: (lane) => finds.call(lane),
    async disable({ environmentId, webhookId }) {
      const changes = { disabled: true };
      const origin = { actor: { type: 'system' } } as const;
      await changeWebhook(database, environmentId, webhookId, changes, origin, now());
    },
  };
}
