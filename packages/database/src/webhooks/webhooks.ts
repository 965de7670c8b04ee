/**
 * Reporting webhooks as their owners see them: the configuration of `ingestion-webhooks.md` §2.
 *
 * A webhook and its lane are made, paused and deleted together, each in one statement. Every statement finds its rows
 * by the primary key (environment_id, webhook_id), unless its comment names another index.
 *
 * Used by `webhook-changes.ts`, which records each change. `deliveries.ts` has the log, `lanes.ts` its progress.
 */
import type { AttributeFilter } from '@sluice/domain/delivery/attribute-filter';
import type { SigningScheme } from '@sluice/domain/delivery/webhook';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { isListedIn, WHOLE_WORKSPACE, type WebhookScope } from './webhook-scopes.ts';

/** How deliveries are sent; a webhook that is made without them has the defaults. */
export interface DeliveryOptions {
  /** Adds the headers of Standard Webhooks. */
  readonly standardWebhooks: boolean;
  /** The signature schemes of the webhook. */
  readonly signing: SigningScheme;
  /** Days of failure after which it is disabled. Null: never. */
  readonly disableAfterDays: number | null;
  /** Null: as fast as it goes. */
  readonly rateLimitPerSecond: number | null;
  /** Requests at the same time. Null: the workers' own limit. */
  readonly windowMax: number | null;
  /**
   * `person`: deliveries about one person are never reordered. `strict`: no delivery is, with one request at a time.
   */
  readonly ordering: 'person' | 'strict';
  /** Encrypted JSON, name to value; null if there are no headers. */
  readonly customHeaders: string | null;
  /** Encrypted JSON (`EndpointCredentials`); null if there are no credentials. */
  readonly endpointCredentials: string | null;
  /** Null: every event of the chosen types. */
  readonly attributeFilters: readonly AttributeFilter[] | null;
  /** Only tracked events with one of these names. Null: all. */
  readonly eventNames: readonly string[] | null;
  /** Incoming events that came as rows of a file. */
  readonly withImports: boolean;
  /** Incoming events that happened more than 72 hours before they came. */
  readonly withLate: boolean;
  /** Incoming events have the person's attributes. */
  readonly withPersonAttributes: boolean;
}

export interface WebhookSettings extends DeliveryOptions {
  readonly name: string;
  readonly endpoint: string;
  readonly events: readonly string[];
  readonly disabled: boolean;
  readonly fullResolution: boolean;
  readonly withContent: boolean;
}

export type NewWebhook = Omit<WebhookSettings, keyof DeliveryOptions> &
  Partial<DeliveryOptions> & {
    /** The application that owns the endpoint. Absent: the workspace's own webhook. */
    readonly applicationId?: string;
  };

export interface Webhook extends WebhookSettings {
  readonly webhookId: number;
  /** The application that owns the endpoint (`applications.ts`). Null: the workspace's own webhook. */
  readonly applicationId: string | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export const WEBHOOK_COLUMNS = sql`
  webhook_id as "webhookId", application_id as "applicationId", name, endpoint, events, disabled, full_resolution as "fullResolution",
  with_content as "withContent", standard_webhooks as "standardWebhooks", signing, disable_after_days as "disableAfterDays",
  rate_limit_per_second as "rateLimitPerSecond", window_max as "windowMax", ordering, custom_headers as "customHeaders", endpoint_credentials as "endpointCredentials",
  attribute_filters as "attributeFilters", event_names as "eventNames", with_imports as "withImports", with_late as "withLate",
  with_person_attributes as "withPersonAttributes", created_at as "createdAt", updated_at as "updatedAt"`;

/** Makes a webhook, signing with its workspace's key, and its empty lane. Undefined if there is no such workspace. */
export async function insertWebhook(
  database: DatabaseOrTransaction,
  environmentId: number,
  settings: NewWebhook,
  signingKey?: string,
): Promise<Webhook | undefined> {
  const { rows } = await sql<Webhook>`
    with made as (
      insert into webhooks
        (environment_id, name, endpoint, events, disabled, full_resolution, with_content, standard_webhooks,
         rate_limit_per_second, window_max, ordering, custom_headers, attribute_filters, event_names, with_imports, with_late,
         with_person_attributes, application_id, signing, disable_after_days, endpoint_credentials, signing_key)
      select environment_id, ${settings.name}, ${settings.endpoint}, ${settings.events}::text[], ${settings.disabled},
             ${settings.fullResolution}, ${settings.withContent}, ${settings.standardWebhooks ?? false},
             ${settings.rateLimitPerSecond ?? null}::int, ${settings.windowMax ?? null}::int, ${settings.ordering ?? 'person'}, ${settings.customHeaders ?? null},
             ${jsonOf(settings.attributeFilters)}::jsonb, ${settings.eventNames ?? null}::text[], ${settings.withImports ?? false},
             ${settings.withLate ?? false}, ${settings.withPersonAttributes ?? false}, ${settings.applicationId ?? null},
             ${settings.signing ?? 'sluice'}, ${settings.disableAfterDays ?? null}::int, ${settings.endpointCredentials ?? null}, coalesce(${signingKey ?? null}::text, webhook_signing_key)
        from environments where environment_id = ${environmentId}
      returning *
    ), lane as (
      insert into lanes (environment_id, webhook_id, is_paused)
      select environment_id, webhook_id, disabled from made
    )
    select ${WEBHOOK_COLUMNS} from made`.execute(database);
  return rows[0];
}

/** Of a workspace's own, without deleted ones and endpoints of applications. By `webhooks_of_workspace`. */
export async function countWebhooks(
  database: DatabaseOrTransaction,
  environmentId: number,
): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from webhooks
     where environment_id = ${environmentId} and application_id is null and feed_name is null and deleted_at is null`.execute(
    database,
  );
  return rows[0]?.count ?? 0;
}

/** The webhooks of a workspace that are in reach, oldest first. Index: as the scope's (`webhook-scopes.ts`). */
export async function listWebhooks(
  database: DatabaseOrTransaction,
  environmentId: number,
  scope: WebhookScope = WHOLE_WORKSPACE,
): Promise<Webhook[]> {
  const { rows } = await sql<Webhook>`
    select ${WEBHOOK_COLUMNS} from webhooks w
     where environment_id = ${environmentId} and deleted_at is null and feed_name is null
       and ${isListedIn(environmentId, scope)}
     order by webhook_id`.execute(database);
  return rows;
}

/** Ids beyond a Postgres integer are simply not found. */
export async function findWebhook(
  database: DatabaseOrTransaction,
  environmentId: number,
  webhookId: number,
): Promise<Webhook | undefined> {
  const { rows } = await sql<Webhook>`
    select ${WEBHOOK_COLUMNS} from webhooks
     where environment_id = ${environmentId} and webhook_id = ${webhookId}::bigint and feed_name is null and deleted_at is null`.execute(
    database,
  );
  return rows[0];
}

/** As {@link findWebhook}, and no other transaction changes or deletes it until this one ends. */
export async function lockWebhook(
  transaction: DatabaseOrTransaction,
  environmentId: number,
  webhookId: number,
): Promise<Webhook | undefined> {
  const { rows } = await sql<Webhook>`
    select ${WEBHOOK_COLUMNS} from webhooks
     where environment_id = ${environmentId} and webhook_id = ${webhookId}::bigint and feed_name is null and deleted_at is null
       for no key update`.execute(transaction);
  return rows[0];
}

/**
 * Changes the given settings and leaves the rest; undefined if there is no such webhook.
 *
 * Disabling keeps blocked deliveries and keeps later events out. Enabling lets a failing lane probe at `nowMs` instead
 * of at its due time. So does every change of the request or its address (endpoint, headers, credentials,
 * `standardWebhooks`, `signing`; for a signing key see `signing-keys.ts`). Wake the lane after the commit if `mustWake`
 * is true: then there is something to send.
 */
export async function updateWebhook(
  database: DatabaseOrTransaction,
  environmentId: number,
  webhookId: number,
  changes: Partial<WebhookSettings>,
  nowMs: number,
): Promise<{ readonly webhook: Webhook; readonly mustWake: boolean } | undefined> {
  const { rows } = await sql<Webhook & { mustWake: boolean }>`
    with before as (
      select endpoint, disabled,
             endpoint <> coalesce(${changes.endpoint ?? null}, endpoint)
             or standard_webhooks <> coalesce(${changes.standardWebhooks ?? null}::boolean, standard_webhooks)
             or signing <> coalesce(${changes.signing ?? null}, signing)
             or ${changes.customHeaders !== undefined} and custom_headers is distinct from ${changes.customHeaders ?? null}
             or ${changes.endpointCredentials !== undefined} and endpoint_credentials is distinct from ${changes.endpointCredentials ?? null}
             or disabled and not coalesce(${changes.disabled ?? null}::boolean, disabled) as is_fresh,
             endpoint <> coalesce(${changes.endpoint ?? null}, endpoint)
             or disabled and not coalesce(${changes.disabled ?? null}::boolean, disabled) as begins_anew
        from webhooks
       where environment_id = ${environmentId} and webhook_id = ${webhookId}::bigint and feed_name is null and deleted_at is null
         for no key update
    ), changed as (
      update webhooks
         set name = coalesce(${changes.name ?? null}, name),
             endpoint = coalesce(${changes.endpoint ?? null}, webhooks.endpoint),
             events = coalesce(${changes.events ?? null}::text[], events),
             disabled = coalesce(${changes.disabled ?? null}::boolean, webhooks.disabled),
             full_resolution = coalesce(${changes.fullResolution ?? null}::boolean, full_resolution),
             with_content = coalesce(${changes.withContent ?? null}::boolean, with_content),
             standard_webhooks = coalesce(${changes.standardWebhooks ?? null}::boolean, standard_webhooks),
             signing = coalesce(${changes.signing ?? null}, signing),
             disable_after_days = case when ${changes.disableAfterDays !== undefined} then ${changes.disableAfterDays ?? null}::int else disable_after_days end,
             rate_limit_per_second = case when ${changes.rateLimitPerSecond !== undefined} then ${changes.rateLimitPerSecond ?? null}::int else rate_limit_per_second end,
             window_max = case when ${changes.windowMax !== undefined} then ${changes.windowMax ?? null}::int else window_max end,
             ordering = coalesce(${changes.ordering ?? null}, ordering),
             custom_headers = case when ${changes.customHeaders !== undefined} then ${changes.customHeaders ?? null} else custom_headers end,
             endpoint_credentials = case when ${changes.endpointCredentials !== undefined} then ${changes.endpointCredentials ?? null} else endpoint_credentials end,
             attribute_filters = case when ${changes.attributeFilters !== undefined} then ${jsonOf(changes.attributeFilters)}::jsonb else attribute_filters end,
             event_names = case when ${changes.eventNames !== undefined} then ${changes.eventNames ?? null}::text[] else event_names end,
             with_imports = coalesce(${changes.withImports ?? null}::boolean, with_imports),
             with_late = coalesce(${changes.withLate ?? null}::boolean, with_late),
             with_person_attributes = coalesce(${changes.withPersonAttributes ?? null}::boolean, with_person_attributes),
             updated_at = ${new Date(nowMs)},
             failing_counts_from = case when begins_anew then ${new Date(nowMs)} else failing_counts_from end,
             endpoint_version = endpoint_version + is_fresh::int
        from before
       where environment_id = ${environmentId} and webhook_id = ${webhookId}::bigint
      returning webhooks.*, is_fresh
    ), lane as (
      update lanes
         set is_paused = changed.disabled, endpoint_version = changed.endpoint_version,
             next_probe_at = case when changed.is_fresh and next_probe_at is not null
                                  then least(next_probe_at, ${new Date(nowMs)}) else next_probe_at end
        from changed
       where lanes.environment_id = changed.environment_id and lanes.webhook_id = changed.webhook_id
      returning lanes.webhook_id, not is_paused and last_sequence > cursor_sequence as must_wake
    )
    select ${WEBHOOK_COLUMNS}, must_wake as "mustWake" from changed join lane using (webhook_id)`.execute(
    database,
  );
  const [row] = rows;
  if (!row) return undefined;
  const { mustWake, ...webhook } = row;
  return { webhook, mustWake };
}

/** False if there is no such webhook. A drain of its lane finds it gone and stops. */
export async function deleteWebhook(
  database: DatabaseOrTransaction,
  environmentId: number,
  webhookId: number,
): Promise<boolean> {
  const { rows } = await sql`
    with gone as (
      update webhooks set deleted_at = now(), disabled = true
       where environment_id = ${environmentId} and webhook_id = ${webhookId}::bigint and feed_name is null and deleted_at is null
      returning environment_id, webhook_id
    ), lane as (
      delete from lanes using gone
       where lanes.environment_id = gone.environment_id and lanes.webhook_id = gone.webhook_id
    ), token as (
      delete from webhook_tokens using gone
       where webhook_tokens.environment_id = gone.environment_id and webhook_tokens.webhook_id = gone.webhook_id
    )
    select 1 from gone`.execute(database);
  return rows.length > 0;
}

/**
 * Deletes at most `limit` log rows, with their attempts, of the webhook that was deleted first, and finally its own
 * row. Finds it by `webhooks_deleted`. Safe to call at the same time.
 *
 * @returns true if there may be more to clear.
 */
export async function clearDeletedWebhook(
  database: DatabaseOrTransaction,
  limit: number,
): Promise<boolean> {
  const { rows } = await sql`
    with target as (
      select environment_id, webhook_id from webhooks
       where deleted_at is not null order by deleted_at limit 1 for update skip locked
    ), rows_to_clear as (
      select log.environment_id, log.webhook_id, log.sequence from delivery_log log join target using (environment_id, webhook_id)
       order by log.sequence limit ${limit}
    ), attempts as (
      delete from delivery_attempts using rows_to_clear r
       where delivery_attempts.environment_id = r.environment_id and delivery_attempts.webhook_id = r.webhook_id
         and delivery_attempts.sequence = r.sequence
    ), log as (
      delete from delivery_log using rows_to_clear r
       where delivery_log.environment_id = r.environment_id and delivery_log.webhook_id = r.webhook_id
         and delivery_log.sequence = r.sequence
    ), emptied as (
      delete from webhooks using target
       where webhooks.environment_id = target.environment_id and webhooks.webhook_id = target.webhook_id
         and not exists (select from rows_to_clear)
    )
    select 1 from target`.execute(database);
  return rows.length > 0;
}

/** As a text: the driver would write a list as a Postgres array. */
const jsonOf = (filters: readonly AttributeFilter[] | null | undefined): string | null =>
  filters ? JSON.stringify(filters) : null;
