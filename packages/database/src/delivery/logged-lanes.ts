/**
 * Hands logged deliveries to the process that logged them: the grown delivery queues, their new deliveries, and the
 * lease of each queue that was free and empty. So a lone delivery is sent without a claim and without a look into the
 * log: two round trips, one commit and one sync of the disk less.
 *
 * A lease that is taken here counts from before the commit, by the clock of Postgres, like the lease of any claim; a
 * transaction that is undone takes no lease. If the process does not hear of the commit, as when it is killed, the lane
 * is free when the process is known to be gone, or when the lease ends.
 *
 * Used by `deliveries.ts`. Beside `lanes.ts`, whose statement only claims lanes.
 */
import { personInBody } from '@sluice/domain/delivery/webhook';
import { NEVER_ATTEMPTED } from '@sluice/domain/delivery/delivery-schedule';
import type { ReportingEvent } from '@sluice/domain/delivery/reporting-event';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql, type RawBuilder } from 'kysely';
import { snapshotOf, type LaneRow } from './lane-snapshot.ts';
import { targetOf, type LaneTarget } from './lane-target.ts';
import {
  IS_OPEN,
  IS_WEBHOOK_CURRENT,
  NEXT_START_AHEAD_MS_MAX,
  type ClaimedLane,
  type LaneClaim,
} from './lanes.ts';
import type { LoggedDelivery } from './logged-deliveries.ts';

/** A lane whose log has grown. */
export interface LoggedLane extends LaneKey {
  /** Of the last delivery now. */
  readonly lastSequence: number;
  /**
   * All deliveries that the transaction has logged for the lane, in order. Absent if they are many, or if people of the
   * lane were merged; then the log is to be read.
   */
  readonly deliveries?: readonly LoggedDelivery[];
  /** Present if the transaction took its lease: with the commit the lane is to be drained. */
  readonly claimed?: ClaimedLane;
}

/** Options of a caller that logs and takes leases. */
export interface LaneTaking extends Pick<Required<LaneClaim>, 'leaseMs' | 'holderProcessId'> {
  /** Unix milliseconds. */
  readonly nowMs: number;
  /** Leases, at most. */
  readonly countMax: number;
}

/** As many as a drain reads at least at a time; more are read from the log, page by page. */
export const HANDED_COUNT_MAX = 32;

/**
 * Columns and tables of the part of the statement that locks lanes. A caller that takes no leases reads no extra rows.
 */
export interface LaneGrant {
  readonly isFree: RawBuilder<boolean>;
  readonly accountId: RawBuilder<number | null>;
  readonly tables: RawBuilder<unknown>;
}

export const grantOf = (taking: LaneTaking | undefined): LaneGrant =>
  taking === undefined
    ? { isFree: sql`false`, accountId: sql`null::bigint`, tables: sql`` }
    : {
        isFree: isIdleAndFree(taking),
        accountId: sql`environments.account_id`,
        tables: sql`join webhooks using (environment_id, webhook_id) join environments using (environment_id) join accounts using (account_id)`,
      };

/** A condition on a joined lane, its webhook, workspace and account: it may be drained now, and its queue is empty. */
const isIdleAndFree = ({ nowMs }: LaneTaking): RawBuilder<boolean> => sql`
  (lanes.state = 'healthy' and not lanes.is_paused and lanes.cursor_sequence = lanes.last_sequence
   and (lanes.lease_until is null or lanes.lease_until <= clock_timestamp())
   and (lanes.next_start_at is null or lanes.next_start_at <= ${new Date(nowMs)}
        or lanes.next_start_at > ${new Date(nowMs + NEXT_START_AHEAD_MS_MAX)})
   and ${IS_OPEN} and ${IS_WEBHOOK_CURRENT})`;

/** A lane as the logging statement returns it. */
export interface LoggedLaneRow extends LaneKey, LaneRow, LaneTarget {
  readonly isClaimed: boolean;
  readonly accountId: number;
  readonly readFromDay: string | null;
  /** Places of the events that were logged, from 1; null if they are many. */
  readonly places: readonly number[] | null;
  readonly withContent: boolean;
  readonly withPersonAttributes: boolean;
  readonly hasMerges: boolean;
  /** The day before the day of the log's new rows. */
  readonly dayBefore: string;
}

/** @param bodyOf - the text that was logged of the event at a place, from 0. */
export function handedLane(
  row: LoggedLaneRow,
  events: readonly ReportingEvent[],
  bodyOf: (place: number) => string,
): LoggedLane {
  const { environmentId, webhookId, accountId, readFromDay } = row;
  const snapshot = snapshotOf(row);
  const { lastSequence } = snapshot;
  const { places, dayBefore } = row;
  const deliveries =
    places === null || row.hasMerges
      ? undefined
      : places.map((place, index): LoggedDelivery => {
          const event = events[place - 1] as ReportingEvent;
          const body = bodyOf(place - 1);
          return {
            sequence: lastSequence - places.length + 1 + index,
            eventId: event.eventId,
            readFromDay: dayBefore,
            eventType: event.eventType,
            body,
            isTriedOnce: false,
            personId: event.personId ?? personInBody(body),
            retry: NEVER_ATTEMPTED,
            isFinished: false,
          };
        });
  return {
    environmentId,
    webhookId,
    lastSequence,
    ...(deliveries && { deliveries }),
    ...(row.isClaimed && { claimed: { ...snapshot, ...targetOf(row), accountId, readFromDay } }),
  };
}
