/**
 * Webhooks that ask to be disabled after some days of failure (`disable_after_days`).
 *
 * This file finds them, and disables them with their audit entry. Their waiting deliveries are kept, as for any
 * disabled webhook. Index: `lanes_failing`, then the primary keys.
 */
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql } from 'kysely';
import { findAccountOf } from '../accounts/environments.ts';
import { recordChange } from '../changes/record-change.ts';
import type { Transaction, DatabaseOrTransaction } from '../connection/connection.ts';
import { lockAlertLanes } from '../delivery/lane-alerts.ts';
import { auditState, nameOf } from './webhook-changes.ts';
import { lockWebhook, updateWebhook, type Webhook } from './webhooks.ts';

const DAY_MS = 86_400_000;

/**
 * Condition on a lane `l` and its webhook `w`. Days before the webhook was enabled again do not count, nor days of
 * another address: otherwise a webhook that was just enabled would be disabled a minute later, before its first
 * attempt.
 */
const isOverdue = (nowMs: number) => sql`
  (l.failing_since <= ${new Date(nowMs - DAY_MS)} and l.state = 'failing' and not l.is_paused
   and w.disable_after_days is not null and w.deleted_at is null
   and greatest(l.failing_since, w.failing_counts_from) <= ${new Date(nowMs)}::timestamptz - make_interval(days => w.disable_after_days))`;

/** The longest failing first. @param nowMs - by the clock of the workers, as `failing_since`. */
export async function listOverdueWebhooks(
  database: DatabaseOrTransaction,
  nowMs: number,
  limit: number,
): Promise<LaneKey[]> {
  const { rows } = await sql<LaneKey>`
    select l.environment_id as "environmentId", l.webhook_id as "webhookId"
      from lanes l join webhooks w using (environment_id, webhook_id)
     where ${isOverdue(nowMs)}
     order by l.failing_since limit ${limit}`.execute(database);
  return rows;
}

export interface DisabledWebhook extends Pick<Webhook, 'webhookId' | 'name'> {
  readonly failingSince: Date;
  /** After so many days. */
  readonly days: number;
}

/**
 * Disables it, unless it has succeeded or was changed meanwhile: then undefined. Locks the lanes of the webhooks that
 * get the alert, in the order in which all lanes are locked.
 */
export async function disableOverdue(
  transaction: Transaction,
  { environmentId, webhookId }: LaneKey,
  nowMs: number,
): Promise<DisabledWebhook | undefined> {
  const accountId = await findAccountOf(transaction, environmentId);
  const before = await lockWebhook(transaction, environmentId, webhookId);
  if (accountId === undefined || !before) return undefined;
  await lockAlertLanes(transaction, environmentId, [webhookId]);
  const { rows } = await sql<{ failingSince: Date; days: number }>`
    select l.failing_since as "failingSince", w.disable_after_days as days
      from lanes l join webhooks w using (environment_id, webhook_id)
     where l.environment_id = ${environmentId} and l.webhook_id = ${webhookId} and ${isOverdue(nowMs)}`.execute(
    transaction,
  );
  const [overdue] = rows;
  if (!overdue) return undefined;
  const updated = await updateWebhook(
    transaction,
    environmentId,
    webhookId,
    { disabled: true },
    nowMs,
  );
  if (!updated) return undefined;
  await recordChange(
    transaction,
    accountId,
    { actor: { type: 'system' } },
    {
      ...nameOf(environmentId, updated.webhook),
      before: auditState(before, undefined),
      after: auditState(updated.webhook, undefined),
    },
    nowMs,
  );
  return { webhookId, name: before.name, ...overdue };
}
