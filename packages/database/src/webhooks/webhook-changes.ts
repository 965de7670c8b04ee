/**
 * The use cases that make, change and delete a reporting webhook: the rows (`webhooks.ts`) and the
 * entry of the audit log in one transaction.
 *
 * The webhook's row is locked before the account's audit chain, as everywhere (`record-change.ts`).
 */
import type { AuditState } from '@sluice/domain/accounts/audit-registry';
import { WEBHOOK_COUNT_MAX } from '@sluice/domain/delivery/webhook';
import type { ChangeOrigin } from '../changes/record-change.ts';
import { recordChange } from '../changes/record-change.ts';
import type { Database } from '../connection/connection.ts';
import { findAccountOf, lockEnvironment } from '../accounts/environments.ts';
import { transactOnce } from '../changes/transact-once.ts';
import {
  countWebhooks,
  deleteWebhook,
  insertWebhook,
  lockWebhook,
  updateWebhook,
  type NewWebhook,
  type Webhook,
  type WebhookSettings,
} from './webhooks.ts';

/**
 * Makes a webhook and its empty lane. Undefined where there is no such workspace; `too_many` where it has as many as
 * it may.
 */
export async function makeWebhook(
  database: Database,
  environmentId: number,
  settings: NewWebhook,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<Webhook | 'too_many' | undefined> {
  return transactOnce(database, origin.call, isFound, async (transaction) => {
    const accountId = await lockEnvironment(transaction, environmentId);
    if (accountId === undefined) return undefined;
    if ((await countWebhooks(transaction, environmentId)) >= WEBHOOK_COUNT_MAX) return 'too_many';
    const made = await insertWebhook(transaction, environmentId, settings);
    if (!made) return undefined;
    await recordChange(
      transaction,
      accountId,
      origin,
      { ...nameOf(environmentId, made), before: null, after: auditState(made) },
      nowMs,
    );
    return made;
  });
}

/**
 * Changes what is given, as `updateWebhook` does; undefined where there is no such webhook.
 *
 * @param changes - or what gives them for the webhook as it is: headers that stay the same are encrypted differently each
 * time, and only their owner can tell.
 * @param storedHeaders - where the stored headers differ, nothing is changed and undefined is returned.
 */
export async function changeWebhook(
  database: Database,
  environmentId: number,
  webhookId: number,
  changes: Partial<WebhookSettings> | ((before: Webhook) => Partial<WebhookSettings>),
  origin: ChangeOrigin,
  nowMs: number,
  storedHeaders?: string,
): Promise<{ readonly webhook: Webhook; readonly mustWake: boolean } | undefined> {
  return transactOnce(database, origin.call, isFound, async (transaction) => {
    const accountId = await findAccountOf(transaction, environmentId);
    const before = await lockWebhook(transaction, environmentId, webhookId);
    if (accountId === undefined || !before) return undefined;
    if (storedHeaders !== undefined && before.customHeaders !== storedHeaders) return undefined;
    const given = typeof changes === 'function' ? changes(before) : changes;
    const updated = await updateWebhook(transaction, environmentId, webhookId, given, nowMs);
    if (!updated) return undefined;
    await recordChange(
      transaction,
      accountId,
      origin,
      {
        ...nameOf(environmentId, updated.webhook),
        before: auditState(before),
        after: auditState(updated.webhook),
      },
      nowMs,
    );
    return updated;
  });
}

/** False where there is no such webhook. */
export async function removeWebhook(
  database: Database,
  environmentId: number,
  webhookId: number,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<boolean> {
  return database.transaction().execute(async (transaction) => {
    const accountId = await findAccountOf(transaction, environmentId);
    const before = await lockWebhook(transaction, environmentId, webhookId);
    if (accountId === undefined || !before) return false;
    await deleteWebhook(transaction, environmentId, webhookId);
    await recordChange(
      transaction,
      accountId,
      origin,
      { ...nameOf(environmentId, before), before: auditState(before), after: null },
      nowMs,
    );
    return true;
  });
}

const isFound = (outcome: object | string | undefined): boolean => typeof outcome === 'object';

const nameOf = (environmentId: number, webhook: Webhook) =>
  ({
    objectType: 'reporting_webhook',
    objectId: webhook.webhookId,
    objectName: webhook.name,
    environmentId,
  }) as const;

const auditState = (webhook: Webhook): AuditState<'reporting_webhook'> => ({
  name: webhook.name,
  endpoint: webhook.endpoint,
  events: webhook.events,
  disabled: webhook.disabled,
  full_resolution: webhook.fullResolution,
  with_content: webhook.withContent,
  standard_webhooks: webhook.standardWebhooks,
  rate_limit_per_second: webhook.rateLimitPerSecond,
  window_max: webhook.windowMax,
  ordering: webhook.ordering,
  headers: webhook.customHeaders,
  attribute_filters: webhook.attributeFilters,
});
