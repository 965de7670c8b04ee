/**
 * Session of the portal, stored in the row of its link. A code opens it once, for 60 seconds. It ends with the link: at
 * its time, or when the link is deleted. Each call asks, so from then on it gives no access. All by Postgres' clock.
 *
 * Index: the primary key of `portal_links`, which begins with the workspace.
 */
import { sql } from 'kysely';
import { recordWorkspaceChange } from '../accounts/workspace-audit.ts';
import type { ChangeOrigin } from '../changes/record-change.ts';
import type { Database, DatabaseOrTransaction } from '../connection/connection.ts';
import {
  audited,
  IS_OPEN,
  LINK_COLUMNS,
  nameOf,
  type PortalGrant,
  type PortalKey,
  type PortalLink,
} from './portal-links.ts';
import { isInScope } from './webhook-scopes.ts';

/** Uses the code; false if it is wrong, used or too old, or the link is over. Of two at a time one opens it. */
export async function openPortalSession(
  database: Database,
  { environmentId, portalLinkId }: PortalKey,
  { codeHash, sessionHash }: { readonly codeHash: Buffer; readonly sessionHash: Buffer },
  call: Pick<ChangeOrigin, 'ipAddr' | 'userAgent' | 'requestId'>,
  nowMs: number,
): Promise<boolean> {
  return database.transaction().execute(async (transaction) => {
    const { rows } = await sql<PortalLink>`
      update portal_links l set session_hash = ${sessionHash}, opened_at = now()
       where l.environment_id = ${environmentId} and l.portal_link_id = ${portalLinkId}
         and l.code_hash = ${codeHash} and l.opened_at is null and l.code_ends_at > now() and ${IS_OPEN}
      returning ${LINK_COLUMNS}`.execute(transaction);
    const [link] = rows;
    if (!link) return false;
    const { label } = link;
    await recordWorkspaceChange(
      transaction,
      environmentId,
      { ...call, actor: { type: 'portal', linkId: portalLinkId, label } },
      {
        ...nameOf(link),
        before: audited({ ...link, openedAt: null }),
        after: audited(link),
      },
      nowMs,
    );
    return true;
  });
}

export interface PortalSession extends PortalKey, PortalGrant {
  readonly endsAt: Date;
  /** Origins whose pages may show it in a frame. */
  readonly origins: readonly string[];
  /** Whether the call's webhook is one of the link's; true if the call names no webhook. */
  readonly isInScope: boolean;
}

/**
 * The open session with this cookie, and whether it reaches the webhook that the call names.
 *
 * @param webhookId - null: the call names no webhook.
 */
export async function findPortalSession(
  database: DatabaseOrTransaction,
  { environmentId, portalLinkId }: PortalKey,
  sessionHash: Buffer,
  webhookId: number | null,
): Promise<PortalSession | undefined> {
  const { rows } = await sql<PortalSession>`
    select l.environment_id as "environmentId", l.portal_link_id as "portalLinkId", l.label, l.capabilities,
           l.event_types as "eventTypes", l.attribute_filters as "attributeFilters", l.return_url as "returnUrl", l.theme,
           l.ends_at as "endsAt", l.application_id as "applicationId",
           (select e.portal_origins from environments e where e.environment_id = ${environmentId}) as origins,
           ${webhookId}::int is null or exists (
             select from webhooks w
              where w.environment_id = l.environment_id and w.webhook_id = ${webhookId}::int and w.deleted_at is null
                and case when l.application_id is null then ${isInScope({ of: 'portal_link', portalLinkId })}
                         else w.application_id = l.application_id end) as "isInScope"
      from portal_links l
     where l.environment_id = ${environmentId} and l.portal_link_id = ${portalLinkId}
       and l.session_hash = ${sessionHash} and ${IS_OPEN}`.execute(database);
  return rows[0];
}

/** Ends the session by its own wish; the link is then closed for good. */
export async function leavePortal(
  database: DatabaseOrTransaction,
  { environmentId, portalLinkId }: PortalKey,
): Promise<void> {
  await sql`
    update portal_links set ends_at = least(ends_at, now())
     where environment_id = ${environmentId} and portal_link_id = ${portalLinkId}`.execute(
    database,
  );
}
