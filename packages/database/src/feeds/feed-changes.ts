/**
 * The use cases that make, change and delete a feed: its rows and the entry of the audit log in one transaction. The
 * workspace is locked first, so that two changes of its feeds come after each other.
 *
 * Index: as `feeds.ts`.
 */
import type { AttributeFilter } from '@sluice/domain/delivery/attribute-filter';
import { sql } from 'kysely';
import { lockEnvironment } from '../accounts/environments.ts';
import { recordWorkspaceChange } from '../accounts/workspace-audit.ts';
import type { ChangeOrigin } from '../changes/record-change.ts';
import { transactOnce } from '../changes/transact-once.ts';
import type { Database, Transaction } from '../connection/connection.ts';
import { findFeed, listFeeds, type Feed, type FeedSettings } from './feeds.ts';

/** Each is one more copy of its events. */
export const FEED_COUNT_MAX = 20;
/** The URL of a feed, to which no request is sent: RFC 6761 §6.4 reserves the name. */
const NO_ENDPOINT = 'https://feed.invalid/';

export type FeedOutcome =
  | { readonly outcome: 'put'; readonly feed: Feed }
  | { readonly outcome: 'no_workspace' }
  /** A new feed needs its event types. */
  | { readonly outcome: 'no_events' }
  | { readonly outcome: 'too_many' };

const DEFAULTS: Omit<FeedSettings, 'events'> = {
  eventNames: null,
  attributeFilters: null,
  fullResolution: false,
  withContent: false,
  withImports: false,
  withLate: false,
  withPersonAttributes: false,
};

/**
 * Makes the feed, which begins with the next event, or changes its event types and filters from the next event on.
 *
 * @param settings - absent ones stay, or have the defaults in a new feed.
 */
export async function putFeed(
  database: Database,
  environmentId: number,
  name: string,
  settings: Partial<FeedSettings>,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<FeedOutcome> {
  return transactOnce<FeedOutcome>(
    database,
    origin.call,
    ({ outcome }) => outcome === 'put',
    async (transaction) => {
      if ((await lockEnvironment(transaction, environmentId)) === undefined)
        return { outcome: 'no_workspace' };
      const before = await findFeed(transaction, environmentId, name);
      if (before) await updateFeed(transaction, before, { ...before, ...settings });
      else if (settings.events === undefined) return { outcome: 'no_events' };
      else if ((await listFeeds(transaction, environmentId)).length >= FEED_COUNT_MAX)
        return { outcome: 'too_many' };
      else {
        const { events } = settings;
        await insertFeed(transaction, environmentId, name, { ...DEFAULTS, ...settings, events });
      }
      const feed = (await findFeed(transaction, environmentId, name)) as Feed;
      await recordWorkspaceChange(
        transaction,
        environmentId,
        origin,
        { ...nameOf(name), before: before ? audited(before) : null, after: audited(feed) },
        nowMs,
      );
      return { outcome: 'put', feed };
    },
  );
}

/**
 * Deletes the feed with its content: the rest of its log is cleared like the log of a deleted webhook. False if there
 * is no such feed.
 */
export async function deleteFeed(
  database: Database,
  environmentId: number,
  name: string,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<boolean> {
  return database.transaction().execute(async (transaction) => {
    if ((await lockEnvironment(transaction, environmentId)) === undefined) return false;
    const before = await findFeed(transaction, environmentId, name);
    if (!before) return false;
    const { webhookId } = before;
    await sql`
      with gone as (
        update webhooks set deleted_at = now(), disabled = true
         where environment_id = ${environmentId} and webhook_id = ${webhookId}
        returning environment_id, webhook_id
      ), chunks as (
        delete from feed_chunks where environment_id = ${environmentId} and webhook_id = ${webhookId}
      )
      delete from lanes using gone
       where lanes.environment_id = gone.environment_id and lanes.webhook_id = gone.webhook_id`.execute(
      transaction,
    );
    await recordWorkspaceChange(
      transaction,
      environmentId,
      origin,
      { ...nameOf(name), before: audited(before), after: null },
      nowMs,
    );
    return true;
  });
}

async function insertFeed(
  transaction: Transaction,
  environmentId: number,
  name: string,
  settings: FeedSettings,
): Promise<void> {
  await sql`
    with made as (
      insert into webhooks
        (environment_id, feed_name, name, endpoint, events, event_names, attribute_filters, full_resolution, with_content,
         with_imports, with_late, with_person_attributes, signing_key)
      select environment_id, ${name}, ${name}, ${NO_ENDPOINT}, ${settings.events}::text[], ${settings.eventNames}::text[],
             ${jsonOf(settings.attributeFilters)}::jsonb, ${settings.fullResolution}, ${settings.withContent},
             ${settings.withImports}, ${settings.withLate}, ${settings.withPersonAttributes}, webhook_signing_key
        from environments where environment_id = ${environmentId}
      returning environment_id, webhook_id)
    insert into lanes (environment_id, webhook_id, is_paused) select environment_id, webhook_id, true from made`.execute(
    transaction,
  );
}

async function updateFeed(
  transaction: Transaction,
  { environmentId, webhookId }: Feed,
  settings: FeedSettings,
): Promise<void> {
  await sql`
    update webhooks
       set events = ${settings.events}::text[], event_names = ${settings.eventNames}::text[],
           attribute_filters = ${jsonOf(settings.attributeFilters)}::jsonb, full_resolution = ${settings.fullResolution},
           with_content = ${settings.withContent}, with_imports = ${settings.withImports}, with_late = ${settings.withLate},
           with_person_attributes = ${settings.withPersonAttributes}, updated_at = now()
     where environment_id = ${environmentId} and webhook_id = ${webhookId}`.execute(transaction);
}

/** As a text: the driver would write a list as a Postgres array. */
const jsonOf = (filters: readonly AttributeFilter[] | null): string | null =>
  filters && JSON.stringify(filters);

const nameOf = (name: string) =>
  ({ objectType: 'feed', objectId: name, objectName: name }) as const;

const audited = (feed: Feed) => ({
  events: feed.events,
  event_names: feed.eventNames,
  attribute_filters: feed.attributeFilters,
  full_resolution: feed.fullResolution,
  with_content: feed.withContent,
  with_imports: feed.withImports,
  with_late: feed.withLate,
  with_person_attributes: feed.withPersonAttributes,
});
