/**
 * Links to the portal as their makers see them.
 *
 * Rules: `domain/src/accounts/portal.ts`. The session that a link opens: `portal-sessions.ts`. All times are by
 * Postgres' clock. Index: the primary key, which begins with the workspace, unless a statement has another in its
 * comment.
 */
import {
  PORTAL_CODE_SECONDS,
  PORTAL_LINK_COUNT_MAX,
  type PortalCapability,
  type PortalTheme,
} from '@sluice/domain/accounts/portal';
import type { AttributeFilter } from '@sluice/domain/delivery/attribute-filter';
import { sql } from 'kysely';
import { findApplication } from './applications.ts';
import { lockEnvironment } from '../accounts/environments.ts';
import { recordWorkspaceChange } from '../accounts/workspace-audit.ts';
import type { ChangeOrigin } from '../changes/record-change.ts';
import { transactOnce } from '../changes/transact-once.ts';
import type { Database, DatabaseOrTransaction } from '../connection/connection.ts';

/** The maker's choices for a link. */
export interface PortalGrant {
  /** Whom it is for, as the caller calls them. */
  readonly label: string;
  readonly capabilities: readonly PortalCapability[];
  /** Types that may be chosen for a webhook. Null: only the types that it has. */
  readonly eventTypes: readonly string[] | null;
  /** Of webhooks that are made in the portal. Null: every event of the chosen types. */
  readonly attributeFilters: readonly AttributeFilter[] | null;
  readonly returnUrl: string | null;
  /** Whose endpoints it opens, in place of a list of webhooks. */
  readonly applicationId: string | null;
  readonly theme: PortalTheme;
}

export interface PortalLink extends PortalGrant {
  readonly portalLinkId: string;
  /** Without deleted ones. */
  readonly webhookIds: readonly number[];
  readonly createdAt: Date;
  readonly endsAt: Date;
  /** Null: the link was not opened, and after a minute it cannot be opened any more. */
  readonly openedAt: Date | null;
}

export interface NewPortalLink extends PortalGrant {
  readonly portalLinkId: string;
  readonly webhookIds: readonly number[];
  /** In the answer of this call alone; its SHA-256 is kept. */
  readonly code: string;
  readonly codeHash: Buffer;
  readonly seconds: number;
}

export const LINK_COLUMNS = sql`
  l.portal_link_id as "portalLinkId", l.label, l.capabilities, l.event_types as "eventTypes",
  l.attribute_filters as "attributeFilters", l.application_id as "applicationId", l.return_url as "returnUrl", l.theme, l.created_at as "createdAt",
  l.ends_at as "endsAt", l.opened_at as "openedAt",
  (select coalesce(array_agg(w.webhook_id::int order by w.webhook_id), '{}')
     from portal_link_webhooks s
     join webhooks w on w.environment_id = s.environment_id and w.webhook_id = s.webhook_id and w.deleted_at is null
    where s.environment_id = l.environment_id and s.portal_link_id = l.portal_link_id) as "webhookIds"`;

export type PortalLinkOutcome =
  | { readonly outcome: 'made'; readonly link: PortalLink; readonly code: string }
  | { readonly outcome: 'too_many' }
  | { readonly outcome: 'no_workspace' }
  | { readonly outcome: 'no_application' }
  /** @property webhookId - of the first that the workspace does not have. */
  | { readonly outcome: 'no_webhook'; readonly webhookId: number };

/** Indexes: `portal_links_open` for the count, and the primary keys of `webhooks` and `applications`. */
export async function makePortalLink(
  database: Database,
  environmentId: number,
  given: NewPortalLink,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<PortalLinkOutcome> {
  return transactOnce<PortalLinkOutcome>(
    database,
    origin.call,
    ({ outcome }) => outcome === 'made',
    async (transaction) => {
      if ((await lockEnvironment(transaction, environmentId)) === undefined)
        return { outcome: 'no_workspace' };
      const { rows: missing } = await sql<{ webhookId: number }>`
        select given.webhook_id as "webhookId" from unnest(${given.webhookIds}::int[]) with ordinality given (webhook_id, place)
         where not exists (
           select from webhooks w
            where w.environment_id = ${environmentId} and w.webhook_id = given.webhook_id and w.deleted_at is null
              and w.application_id is null and w.feed_name is null)
         order by place limit 1`.execute(transaction);
      if (missing[0]) return { outcome: 'no_webhook', webhookId: missing[0].webhookId };
      const isKnown =
        given.applicationId === null ||
        (await findApplication(transaction, environmentId, given.applicationId)) !== undefined;
      if (!isKnown) return { outcome: 'no_application' };
      const { rows: counted } = await sql<{ count: number }>`
        select count(*)::int as count from (
          select from portal_links where environment_id = ${environmentId} and ends_at > now()
           limit ${PORTAL_LINK_COUNT_MAX}) open`.execute(transaction);
      if ((counted[0]?.count ?? 0) >= PORTAL_LINK_COUNT_MAX) return { outcome: 'too_many' };
      await sql`
        with made as (
          insert into portal_links
            (environment_id, portal_link_id, label, capabilities, event_types, attribute_filters, return_url, application_id,
             theme, code_hash, code_ends_at, ends_at)
          values
            (${environmentId}, ${given.portalLinkId}, ${given.label}, ${given.capabilities}::text[],
             ${given.eventTypes}::text[], ${given.attributeFilters && JSON.stringify(given.attributeFilters)}::jsonb,
             ${given.returnUrl}, ${given.applicationId}, ${JSON.stringify(given.theme)}::jsonb, ${given.codeHash},
             now() + make_interval(secs => ${PORTAL_CODE_SECONDS}), now() + make_interval(secs => ${given.seconds}))
          returning environment_id, portal_link_id)
        insert into portal_link_webhooks (environment_id, portal_link_id, webhook_id)
        select distinct environment_id, portal_link_id, given.webhook_id
          from made cross join unnest(${given.webhookIds}::int[]) given (webhook_id)`.execute(
        transaction,
      );
      const { rows } = await sql<PortalLink>`
        select ${LINK_COLUMNS} from portal_links l
         where l.environment_id = ${environmentId} and l.portal_link_id = ${given.portalLinkId}`.execute(
        transaction,
      );
      const link = rows[0] as PortalLink;
      await recordWorkspaceChange(
        transaction,
        environmentId,
        origin,
        { ...nameOf(link), before: null, after: audited(link) },
        nowMs,
      );
      return { outcome: 'made', link, code: given.code };
    },
  );
}

/**
 * Links that are not over, newest first.
 *
 * @param before - the last id that was seen.
 */
export async function listPortalLinks(
  database: DatabaseOrTransaction,
  environmentId: number,
  limit: number,
  before: string | undefined,
): Promise<PortalLink[]> {
  const { rows } = await sql<PortalLink>`
    select ${LINK_COLUMNS} from portal_links l
     where l.environment_id = ${environmentId} and l.ends_at > now()
       and (${before ?? null}::text is null or l.portal_link_id < ${before ?? null})
     order by l.portal_link_id desc limit ${limit}`.execute(database);
  return rows;
}

/** Ends the link and its session; false if there is no such link, or it is over. */
export async function endPortalLink(
  database: Database,
  environmentId: number,
  portalLinkId: string,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<boolean> {
  return database.transaction().execute(async (transaction) => {
    const { rows } = await sql<PortalLink>`
      select ${LINK_COLUMNS} from portal_links l
       where l.environment_id = ${environmentId} and l.portal_link_id = ${portalLinkId} and l.ends_at > now()
         for update of l`.execute(transaction);
    const [link] = rows;
    if (!link) return false;
    await sql`
      delete from portal_links
       where environment_id = ${environmentId} and portal_link_id = ${portalLinkId}`.execute(
      transaction,
    );
    await recordWorkspaceChange(
      transaction,
      environmentId,
      origin,
      { ...nameOf(link), before: audited(link), after: null },
      nowMs,
    );
    return true;
  });
}

/** The workspace is in use, and its account is not closed. In a statement whose links are `l`. */
export const IS_OPEN = sql`
  l.ends_at > now() and exists (
    select from environments e join accounts a on a.account_id = e.account_id
     where e.environment_id = l.environment_id and e.deleted_at is null and a.status <> 'closed')`;

export interface PortalKey {
  readonly environmentId: number;
  readonly portalLinkId: string;
}

/** Origins that may show the page of a link in a frame; undefined if there is no such link that is not over. */
export async function findPortalOrigins(
  database: DatabaseOrTransaction,
  { environmentId, portalLinkId }: PortalKey,
): Promise<readonly string[] | undefined> {
  const { rows } = await sql<{ origins: readonly string[] }>`
    select e.portal_origins as origins
      from portal_links l join environments e on e.environment_id = l.environment_id
     where l.environment_id = ${environmentId} and l.portal_link_id = ${portalLinkId} and ${IS_OPEN}`.execute(
    database,
  );
  return rows[0]?.origins;
}

/** Origins that may show the portal of a workspace in a frame. By the primary key. */
export async function findWorkspaceOrigins(
  database: DatabaseOrTransaction,
  environmentId: number,
): Promise<readonly string[]> {
  const { rows } = await sql<{ origins: readonly string[] }>`
    select portal_origins as origins from environments where environment_id = ${environmentId}`.execute(
    database,
  );
  return rows[0]?.origins ?? [];
}

/** Deletes links that are over, `limit` at most, of all workspaces. Index: `portal_links_by_end`. */
export async function clearPortalLinks(
  database: DatabaseOrTransaction,
  limit: number,
): Promise<void> {
  await sql`
    delete from portal_links l using (
      select environment_id, portal_link_id from portal_links
       where ends_at < now() order by ends_at limit ${limit}) over
     where l.environment_id = over.environment_id and l.portal_link_id = over.portal_link_id`.execute(
    database,
  );
}

export const nameOf = ({ portalLinkId, label }: PortalLink) =>
  ({ objectType: 'portal_link', objectId: portalLinkId, objectName: label }) as const;

export const audited = (link: PortalLink) => ({
  for: link.label,
  webhook_ids: link.webhookIds,
  application_id: link.applicationId,
  capabilities: link.capabilities,
  expires_at: link.endsAt,
  opened_at: link.openedAt,
});
