/**
 * A lane as its webhook's owner sees it: the reason and time of its wait, and its backlog.
 *
 * The worker reads its lanes with `findLane` of `lanes.ts`.
 */
import type { AuditActorType } from '@sluice/domain/accounts/audit-change';
import type { FailureClass } from '@sluice/domain/delivery/delivery-failure';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { HEAD_SEQUENCE } from './lane-snapshot.ts';

/** The delivery that is tried alone while failing, else the first that is not delivered or abandoned. */
export interface LaneHead {
  readonly sequence: number;
  readonly eventId: string;
  readonly eventType: string;
  readonly attempts: number;
  /** Null before the first attempt has ended. */
  readonly firstAttemptAt: Date | null;
  readonly lastAttemptAt: Date | null;
  readonly status: number | null;
  readonly failure: FailureClass | null;
  readonly failureMessage: string | null;
}

export interface LaneState {
  readonly state: 'healthy' | 'failing';
  /** The webhook is disabled. */
  readonly isPaused: boolean;
  /** A worker is sending. */
  readonly isHeld: boolean;
  /** Deliveries that are neither delivered nor abandoned, the head among them. */
  readonly unfinishedCount: number;
  readonly nextProbeAt: Date | null;
  readonly head: LaneHead | undefined;
  /**
   * The minute of the latest success in the statistics. Null: there was no success in the time that they are kept for.
   */
  readonly lastDeliveredAt: Date | null;
}

/** With whose it is. */
export interface ListedLaneState extends LaneState {
  readonly webhookId: number;
}

interface Row extends Omit<LaneState, 'unfinishedCount' | 'head'>, Omit<LaneHead, 'sequence'> {
  readonly webhookId: number;
  readonly unfinishedCount: string;
  readonly sequence: string | null;
}

/** Undefined if there is no such webhook. As {@link listLaneStates}. */
export async function findLaneState(
  database: DatabaseOrTransaction,
  { environmentId, webhookId }: LaneKey,
): Promise<LaneState | undefined> {
  const [found] = await listLaneStates(database, environmentId, [webhookId]);
  return found;
}

/**
 * The states of the webhooks' lanes that exist, in no order. Counts by subtraction, so that a backlog of millions costs
 * as much as an empty one. It reads only the deliveries that were tried out of order beyond the cursor, and one run
 * bounds their number. By the primary keys of lanes, log and attempts, and `delivery_minutes_of_success`.
 */
export async function listLaneStates(
  database: DatabaseOrTransaction,
  environmentId: number,
  webhookIds: readonly number[],
): Promise<ListedLaneState[]> {
  const { rows } = await sql<Row>`
    select lanes.webhook_id as "webhookId", lanes.state, lanes.is_paused as "isPaused", coalesce(lanes.lease_until > clock_timestamp(), false) as "isHeld",
           lanes.next_probe_at as "nextProbeAt",
           lanes.last_sequence - lanes.cursor_sequence - finished.count as "unfinishedCount",
           log.sequence, log.event_id as "eventId", log.event_type as "eventType",
           success.minute as "lastDeliveredAt", coalesce(latest.attempt, 0) as attempts, first.started_at as "firstAttemptAt",
           latest.started_at as "lastAttemptAt", latest.status, latest.failure, latest.failure_message as "failureMessage"
      from lanes
     cross join lateral (
        select count(*) from delivery_attempts a
         where a.environment_id = lanes.environment_id and a.webhook_id = lanes.webhook_id
           and a.sequence > lanes.cursor_sequence and a.sequence <= lanes.attempted_sequence
           and a.outcome <> 'retrying') finished
      left join delivery_log log on log.environment_id = lanes.environment_id and log.webhook_id = lanes.webhook_id
                                and log.sequence = ${HEAD_SEQUENCE}
      left join lateral (
        select attempt, started_at, status, failure, failure_message from delivery_attempts a
         where a.environment_id = log.environment_id and a.webhook_id = log.webhook_id and a.sequence = log.sequence
         order by attempt desc limit 1) latest on true
      left join delivery_attempts first on first.environment_id = log.environment_id and first.webhook_id = log.webhook_id
                                       and first.sequence = log.sequence and first.attempt = 1
      left join lateral (
        select minute from delivery_minutes m
         where m.environment_id = lanes.environment_id and m.webhook_id = lanes.webhook_id and m.delivered > 0
         order by minute desc limit 1) success on true
     where lanes.environment_id = ${environmentId} and lanes.webhook_id = any(${webhookIds}::int[])`.execute(
    database,
  );
  return rows.map(
    ({
      webhookId,
      state,
      isPaused,
      isHeld,
      nextProbeAt,
      unfinishedCount,
      lastDeliveredAt,
      sequence,
      ...head
    }) => ({
      webhookId,
      lastDeliveredAt,
      state,
      isPaused,
      isHeld,
      nextProbeAt,
      unfinishedCount: Number(unfinishedCount),
      head: sequence === null ? undefined : { ...head, sequence: Number(sequence) },
    }),
  );
}

/** When a webhook was disabled the last time, and by whom. */
export interface Disabling {
  readonly disabledAt: Date;
  readonly actorType: AuditActorType;
  readonly userId: number | null;
  readonly serviceAccountId: number | null;
  /**
   * Current name of the user, the service account, the addressee of the portal link, or the key that was used. Null for
   * the service itself.
   */
  readonly actorName: string | null;
}

/**
 * From the audit log, which has every change of a webhook: undefined if it does not know, for a webhook that was made
 * by other means. By `audit_logs_by_object`, backwards.
 */
export async function findDisabling(
  database: DatabaseOrTransaction,
  { environmentId, webhookId }: LaneKey,
): Promise<Disabling | undefined> {
  const { rows } = await sql<Disabling>`
    select l.occurred_at as "disabledAt", l.actor_type as "actorType", l.user_id as "userId",
           l.service_account_id as "serviceAccountId",
           coalesce(u.first_name || ' ' || u.last_name, s.name, l.portal_label, c.name) as "actorName"
      from environments e
     cross join lateral (
        select * from audit_logs
         where account_id = e.account_id and object_type = 'reporting_webhook' and object_id = ${String(webhookId)}
           and environment_id = e.environment_id
           and changes @> '[{"attribute": "disabled", "to": true}]'
         order by audit_log_id desc limit 1) l
      left join users u on u.account_id = l.account_id and u.user_id = l.user_id
      left join service_accounts s on s.account_id = l.account_id and s.service_account_id = l.service_account_id
      left join api_credentials c on c.account_id = l.account_id and c.credential_id = l.credential_id
     where e.environment_id = ${environmentId}`.execute(database);
  return rows[0];
}
