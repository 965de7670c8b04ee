/**
 * Sets of webhooks that a caller reaches, within its workspace. The statement that reads the webhooks decides, beside
 * the tenant. This is the one place that knows the kinds: another kind of set is another line here, and no guard and no
 * route changes.
 */
import { PORTAL_MADE_COUNT_MAX } from '@sluice/domain/accounts/portal';
import { APPLICATION_ENDPOINT_COUNT_MAX } from '@sluice/domain/delivery/webhook';
import { sql, type RawBuilder } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

export type WebhookScope =
  /** The workspace's own, without the endpoints of its applications. */
  | { readonly of: 'workspace' }
  /** The endpoints of one. */
  | {
      readonly of: 'application';
      readonly applicationId: string;
      /** The link that reaches it. Absent: the workspace itself reaches it. */
      readonly portalLinkId?: string;
    }
  /** Webhooks of a link to the portal, with the ones that were made by it. */
  | { readonly of: 'portal_link'; readonly portalLinkId: string };

export const WHOLE_WORKSPACE: WebhookScope = { of: 'workspace' };

/**
 * In a statement whose table of webhooks is `w`. Indexes: `webhooks_of_workspace`, `webhooks_of_applications`, the primary key
 * of `portal_link_webhooks`.
 */
export function isInScope(scope: WebhookScope): RawBuilder<boolean> {
  switch (scope.of) {
    case 'workspace':
      return sql<boolean>`w.application_id is null`;
    case 'application':
      return sql<boolean>`w.application_id = ${scope.applicationId}`;
    case 'portal_link':
      return sql<boolean>`exists (
        select from portal_link_webhooks s
         where s.environment_id = w.environment_id and s.portal_link_id = ${scope.portalLinkId}
           and s.webhook_id = w.webhook_id)`;
  }
}

/**
 * As {@link isInScope}, for a statement that lists them: the webhooks of a link are found by their ids, and not looked
 * for among a hundred thousand endpoints.
 */
export const isListedIn = (environmentId: number, scope: WebhookScope): RawBuilder<boolean> =>
  scope.of === 'portal_link'
    ? sql<boolean>`w.webhook_id = any (array(
        select s.webhook_id from portal_link_webhooks s
         where s.environment_id = ${environmentId} and s.portal_link_id = ${scope.portalLinkId}))`
    : isInScope(scope);

/**
 * Whether one more may be made in the set. `scope_full`: it has as many as it may. `scope_gone`: it was ended while the
 * call was on its way. After this check it cannot be ended until the transaction ends. In a transaction that has locked
 * the workspace. By the primary keys of `applications` and `portal_links`, and as {@link isInScope}.
 */
export async function roomInScope(
  transaction: DatabaseOrTransaction,
  environmentId: number,
  scope: WebhookScope,
): Promise<'room' | 'scope_full' | 'scope_gone'> {
  if (scope.of === 'workspace') return 'room';
  if (scope.of === 'application') return roomInApplication(transaction, environmentId, scope);
  const { portalLinkId } = scope;
  const { rows: links } = await sql`
    select from portal_links
     where environment_id = ${environmentId} and portal_link_id = ${portalLinkId} and ends_at > now()
       for key share`.execute(transaction);
  if (links.length === 0) return 'scope_gone';
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from portal_link_webhooks
     where environment_id = ${environmentId} and portal_link_id = ${portalLinkId}`.execute(
    transaction,
  );
  return (rows[0]?.count ?? 0) >= PORTAL_MADE_COUNT_MAX ? 'scope_full' : 'room';
}

async function roomInApplication(
  transaction: DatabaseOrTransaction,
  environmentId: number,
  { applicationId, portalLinkId }: Extract<WebhookScope, { of: 'application' }>,
): Promise<'room' | 'scope_full' | 'scope_gone'> {
  const { rows } = await sql`
    select from applications
     where environment_id = ${environmentId} and application_id = ${applicationId}
       and (${portalLinkId ?? null}::text is null or exists (
         select from portal_links
          where environment_id = ${environmentId} and portal_link_id = ${portalLinkId ?? null} and ends_at > now()))
       for key share`.execute(transaction);
  if (rows.length === 0) return 'scope_gone';
  const { rows: counted } = await sql<{ count: number }>`
    select count(*)::int as count from webhooks
     where environment_id = ${environmentId} and application_id = ${applicationId} and deleted_at is null`.execute(
    transaction,
  );
  return (counted[0]?.count ?? 0) >= APPLICATION_ENDPOINT_COUNT_MAX ? 'scope_full' : 'room';
}

/** A webhook that was made belongs to its maker's set from then on. In the transaction that makes it. */
export async function joinScope(
  transaction: DatabaseOrTransaction,
  environmentId: number,
  webhookId: number,
  scope: WebhookScope,
): Promise<void> {
  if (scope.of !== 'portal_link') return;
  await sql`
    insert into portal_link_webhooks (environment_id, portal_link_id, webhook_id)
    values (${environmentId}, ${scope.portalLinkId}, ${webhookId})`.execute(transaction);
}
