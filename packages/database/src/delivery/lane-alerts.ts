/**
 * Alerts about a workspace's own failing webhook, for its other webhooks.
 *
 *   first failure ──▶ `failing_since` ──an hour──▶ alerted once ──first success──▶ state cleared
 *                        └── a delivery given up ──▶ alerted once ──first success──▶
 *
 * `recordProgress` (`lane-progress.ts`) writes the state of an episode. This file finds it and marks it as alerted, in
 * the transaction that logs the alert. So an episode is alerted exactly once, even if a process ends in between. The
 * lanes are locked first, in order of their key as everywhere: the alert is logged to some of them.
 */
import type { FailureClass } from '@sluice/domain/delivery/delivery-failure';
import { sql, type RawBuilder } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

/** Workspaces with an alert that is due; by `lanes_untold`. */
export async function listUntoldEnvironments(
  database: DatabaseOrTransaction,
  failingSinceBeforeMs: number,
  limit: number,
): Promise<number[]> {
  const { rows } = await sql<{ environmentId: number }>`
    select distinct environment_id as "environmentId" from lanes
     where ${isUntold(sql``)}
       and (${isDue(failingSinceBeforeMs)})
     limit ${limit}`.execute(database);
  return rows.map((row) => row.environmentId);
}

/** A webhook with an alert that is due. */
export interface UntoldLane {
  readonly webhookId: number;
  readonly name: string;
  readonly isFailureDue: boolean;
  readonly isAbandonmentDue: boolean;
  readonly failingSince: Date | null;
  /** Neither delivered nor abandoned, as `lane-states.ts` counts. */
  readonly unfinishedCount: number;
  readonly nextProbeAt: Date | null;
  /** The first given up delivery of the episode; null if no delivery was given up, or the log has lost it. */
  readonly abandoned: AbandonedDelivery | null;
}

export interface AbandonedDelivery {
  readonly sequence: number;
  readonly eventId: string;
  readonly eventType: string;
  readonly attempts: number;
  readonly status: number | null;
  readonly failure: FailureClass | null;
  readonly failureMessage: string | null;
}

/**
 * Locks the lanes that an alert may be about or for: the lanes of the workspace's own webhooks, the lanes with a due
 * alert, and further ones. By `webhooks_of_workspace` and `lanes_untold`.
 *
 * @returns their webhooks.
 */
export async function lockAlertLanes(
  transaction: DatabaseOrTransaction,
  environmentId: number,
  further: readonly number[],
): Promise<number[]> {
  const { rows } = await sql<{ webhookId: number }>`
    select webhook_id as "webhookId" from lanes
     where environment_id = ${environmentId} and webhook_id in (
       select w.webhook_id from webhooks w where w.environment_id = ${environmentId} and w.application_id is null
       union
       select l.webhook_id from lanes l where l.environment_id = ${environmentId} and ${isUntold(sql`l.`)}
       union
       select unnest(${further}::int[]))
     order by webhook_id for no key update`.execute(transaction);
  return rows.map(({ webhookId }) => webhookId);
}

/** Locks the lanes that an alert may be about or for, marks the due alerts as sent, and returns them. */
export async function takeUntold(
  transaction: DatabaseOrTransaction,
  environmentId: number,
  failingSinceBeforeMs: number,
): Promise<UntoldLane[]> {
  const locked = await lockAlertLanes(transaction, environmentId, []);
  const { rows } = await sql<
    Omit<UntoldLane, 'abandoned' | 'unfinishedCount'> & {
      unfinishedCount: string;
      sequence: string | null;
    } & Omit<AbandonedDelivery, 'sequence'>
  >`
    with due as (
      select webhook_id, failing_since, abandoned_sequence, next_probe_at,
             last_sequence - cursor_sequence - (
               select count(*) from delivery_attempts a
                where a.environment_id = lanes.environment_id and a.webhook_id = lanes.webhook_id
                  and a.sequence > lanes.cursor_sequence and a.sequence <= lanes.attempted_sequence
                  and a.outcome <> 'retrying') as unfinished,
             ${isFailureDue(failingSinceBeforeMs)} as is_failure_due, ${isAbandonmentDue} as is_abandonment_due
        from lanes
       where environment_id = ${environmentId} and webhook_id = any (${locked}::int[])
         and (${isDue(failingSinceBeforeMs)})
    ), told as (
      update lanes
         set is_failure_told = is_failure_told or due.is_failure_due,
             is_abandonment_told = is_abandonment_told or due.is_abandonment_due
        from due where lanes.environment_id = ${environmentId} and lanes.webhook_id = due.webhook_id
    )
    select due.webhook_id as "webhookId", webhooks.name, is_failure_due as "isFailureDue",
           is_abandonment_due as "isAbandonmentDue", failing_since as "failingSince", unfinished as "unfinishedCount",
           next_probe_at as "nextProbeAt", log.sequence, log.event_id as "eventId", log.event_type as "eventType",
           coalesce(latest.attempt, 0) as attempts, latest.status, latest.failure, latest.failure_message as "failureMessage"
      from due
      join webhooks on webhooks.environment_id = ${environmentId} and webhooks.webhook_id = due.webhook_id
      left join delivery_log log on log.environment_id = ${environmentId} and log.webhook_id = due.webhook_id
                                and log.sequence = due.abandoned_sequence
      left join lateral (
        select attempt, status, failure, failure_message from delivery_attempts a
         where a.environment_id = log.environment_id and a.webhook_id = log.webhook_id and a.sequence = log.sequence
         order by attempt desc limit 1) latest on true
     order by due.webhook_id`.execute(transaction);
  return rows.map(
    ({ sequence, eventId, eventType, attempts, status, failure, failureMessage, ...row }) => ({
      ...row,
      unfinishedCount: Number(row.unfinishedCount),
      abandoned:
        sequence === null
          ? null
          : {
              sequence: Number(sequence),
              eventId,
              eventType,
              attempts,
              status,
              failure,
              failureMessage,
            },
    }),
  );
}

/** As in the index. @param prefix - of the columns. */
const isUntold = (prefix: RawBuilder<unknown>) =>
  sql`(${prefix}failing_since is not null and not ${prefix}is_failure_told or ${prefix}abandoned_sequence is not null and not ${prefix}is_abandonment_told)`;

// An episode may outlast its head: if the head was skipped or given up with an empty queue behind it, the lane is not
// failing any more.
const isFailureDue = (sinceBeforeMs: number) =>
  sql`(not is_failure_told and not is_paused and state = 'failing' and failing_since is not null and failing_since <= ${new Date(sinceBeforeMs)})`;
const isAbandonmentDue = sql`(not is_abandonment_told and abandoned_sequence is not null)`;
const isDue = (sinceBeforeMs: number) => sql`${isFailureDue(sinceBeforeMs)} or ${isAbandonmentDue}`;
