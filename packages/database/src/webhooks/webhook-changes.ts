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
import { joinScope, roomInScope, WHOLE_WORKSPACE, type WebhookScope } from './webhook-scopes.ts';

/**
 * Hints for the audit log about a webhook's encrypted headers and credentials: the visible part by which a reader
 * recognizes each value, never the value. A caller that cannot decrypt them leaves the hints out.
 */
export type SecretHints = (
  webhook: Pick<Webhook, 'customHeaders' | 'endpointCredentials'>,
) => Pick<AuditState<'reporting_webhook'>, 'header_hints' | 'endpoint_credential_hints'>;

/**
 * Makes a webhook and its empty lane. Undefined if there is no such workspace; `too_many` if it has as many as it may,
 * `scope_full` if the maker's part of it has, `scope_gone` if there is no such part any more.
 *
 * @param signingKey - encrypted. Absent: the workspace's.
 */
export async function makeWebhook(
  database: Database,
  environmentId: number,
  settings: NewWebhook,
  origin: ChangeOrigin,
  nowMs: number,
  {
    hintsOf,
    scope = WHOLE_WORKSPACE,
    signingKey,
  }: { hintsOf?: SecretHints; scope?: WebhookScope; signingKey?: string } = {},
): Promise<Webhook | 'too_many' | 'scope_full' | 'scope_gone' | undefined> {
  return transactOnce(database, origin.call, isFound, async (transaction) => {
    const accountId = await lockEnvironment(transaction, environmentId);
    if (accountId === undefined) return undefined;
    const isOwn = scope.of !== 'application';
    if (isOwn && (await countWebhooks(transaction, environmentId)) >= WEBHOOK_COUNT_MAX)
      return 'too_many';
    const room = await roomInScope(transaction, environmentId, scope);
    if (room !== 'room') return room;
    const made = await insertWebhook(
      transaction,
      environmentId,
      isOwn ? settings : { ...settings, applicationId: scope.applicationId },
      signingKey,
    );
    if (!made) return undefined;
    await joinScope(transaction, environmentId, made.webhookId, scope);
    await recordChange(
      transaction,
      accountId,
      origin,
      { ...nameOf(environmentId, made), before: null, after: auditState(made, hintsOf) },
      nowMs,
    );
    return made;
  });
}

/**
 * Changes the given settings, as `updateWebhook` does; undefined if there is no such webhook.
 *
 * @param changes - or a function that returns them for the present webhook: equal headers are encrypted differently
 *   each time, and only their owner can compare them. If it returns undefined, the webhook stays unchanged, and the
 *   result is undefined.
 * @param stored - if the stored headers or credentials are others, the webhook stays unchanged, and the result is
 *   undefined.
 */
export async function changeWebhook(
  database: Database,
  environmentId: number,
  webhookId: number,
  changes: Partial<WebhookSettings> | ((before: Webhook) => Partial<WebhookSettings> | undefined),
  origin: ChangeOrigin,
  nowMs: number,
  {
    hintsOf,
    stored = {},
  }: {
    hintsOf?: SecretHints;
    stored?: Partial<Pick<Webhook, 'customHeaders' | 'endpointCredentials'>>;
  } = {},
): Promise<{ readonly webhook: Webhook; readonly mustWake: boolean } | undefined> {
  return transactOnce(database, origin.call, isFound, async (transaction) => {
    const accountId = await findAccountOf(transaction, environmentId);
    const before = await lockWebhook(transaction, environmentId, webhookId);
    if (accountId === undefined || !before) return undefined;
    const { customHeaders, endpointCredentials } = { ...before, ...stored };
    if (customHeaders !== before.customHeaders) return undefined;
    if (endpointCredentials !== before.endpointCredentials) return undefined;
    const given = typeof changes === 'function' ? changes(before) : changes;
    if (!given) return undefined;
    const updated = await updateWebhook(transaction, environmentId, webhookId, given, nowMs);
    if (!updated) return undefined;
    await recordChange(
      transaction,
      accountId,
      origin,
      {
        ...nameOf(environmentId, updated.webhook),
        before: auditState(before, hintsOf),
        after: auditState(updated.webhook, hintsOf),
      },
      nowMs,
    );
    return updated;
  });
}

/** False if there is no such webhook. */
export async function removeWebhook(
  database: Database,
  environmentId: number,
  webhookId: number,
  origin: ChangeOrigin,
  nowMs: number,
  hintsOf?: SecretHints,
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
      { ...nameOf(environmentId, before), before: auditState(before, hintsOf), after: null },
      nowMs,
    );
    return true;
  });
}

const isFound = (outcome: object | string | undefined): boolean => typeof outcome === 'object';

/** As the audit log names it. */
export const nameOf = (environmentId: number, webhook: Webhook) =>
  ({
    objectType: 'reporting_webhook',
    objectId: webhook.webhookId,
    objectName: webhook.name,
    environmentId,
  }) as const;

/** As the audit log keeps it. */
export const auditState = (
  webhook: Webhook,
  hintsOf: SecretHints | undefined,
): AuditState<'reporting_webhook'> => ({
  name: webhook.name,
  endpoint: webhook.endpoint,
  events: webhook.events,
  disabled: webhook.disabled,
  full_resolution: webhook.fullResolution,
  with_content: webhook.withContent,
  standard_webhooks: webhook.standardWebhooks,
  signing: webhook.signing,
  disable_after_days: webhook.disableAfterDays,
  rate_limit_per_second: webhook.rateLimitPerSecond,
  window_max: webhook.windowMax,
  ordering: webhook.ordering,
  headers: webhook.customHeaders,
  endpoint_credentials: webhook.endpointCredentials,
  ...hintsOf?.(webhook),
  attribute_filters: webhook.attributeFilters,
  event_names: webhook.eventNames,
  with_imports: webhook.withImports,
  with_late: webhook.withLate,
  with_person_attributes: webhook.withPersonAttributes,
  application_id: webhook.applicationId,
});
