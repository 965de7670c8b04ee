/**
 * Webhooks that take incoming events (`domain/src/delivery/incoming-event.ts`). A workspace's own are found by
 * `webhooks_of_incoming`, which has no others, and an application's by `webhooks_of_applications`. A workspace may have
 * a hundred thousand endpoints of its customers; a commit batch reads only the endpoints of the applications that its
 * messages name.
 */
import type {
  ApplicationKey,
  IncomingSubscription,
} from '@sluice/domain/delivery/incoming-subscription';
import { sql } from 'kysely';
import { integerColumn, textColumn } from '../connection/columns.ts';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';

/** The workspaces that have such a webhook, as part of a statement that is sent anyway. Null: no workspace has one. */
export const takersOfIncoming = (environmentIds: readonly number[]) => sql<number[] | null>`(
  select array_agg(distinct environment_id) from webhooks
   where environment_id = any (${environmentIds}::int[]) and takes_incoming and not disabled and application_id is null)`;

/** Subscriptions of these workspaces' own webhooks; no statement if no workspace has one. */
export async function listIncomingSubscriptions(
  transaction: DatabaseOrTransaction,
  environmentIds: readonly number[],
): Promise<readonly IncomingSubscription[]> {
  if (environmentIds.length === 0) return [];
  const { rows } = await sql<IncomingSubscription>`${PREPARED}
    select environment_id as "environmentId", webhook_id as "webhookId", null as "applicationId", events,
           event_names as "eventNames", attribute_filters as "attributeFilters", with_imports as "withImports",
           with_late as "withLate", with_person_attributes as "withPersonAttributes"
      from webhooks
     where environment_id = any (${environmentIds}::int[]) and takes_incoming and not disabled
       and application_id is null`.execute(transaction);
  return rows;
}

export interface ApplicationSubscriptions {
  /** The named applications that exist. */
  readonly applications: readonly ApplicationKey[];
  readonly subscriptions: readonly IncomingSubscription[];
}

/**
 * Subscriptions of the endpoints of applications; no statement if no message names one. By the primary key of
 * `applications`, too.
 */
export async function listApplicationSubscriptions(
  transaction: DatabaseOrTransaction,
  named: readonly ApplicationKey[],
): Promise<ApplicationSubscriptions> {
  if (named.length === 0) return { applications: [], subscriptions: [] };
  const { rows } = await sql<
    ApplicationKey &
      Omit<IncomingSubscription, 'applicationId' | 'webhookId'> & { webhookId: number | null }
  >`${PREPARED}
    select a.application_id as "applicationId", a.environment_id as "environmentId", webhook_id as "webhookId",
           '{message}'::text[] as events, event_names as "eventNames", attribute_filters as "attributeFilters",
           false as "withImports", false as "withLate", false as "withPersonAttributes"
      from unnest(
        ${integerColumn(named, (each) => each.environmentId)}::int[],
        ${textColumn(named, (each) => each.applicationId)}::text[]
      ) as n (environment_id, application_id)
      join applications a on a.environment_id = n.environment_id and a.application_id = n.application_id
      left join webhooks w on w.environment_id = a.environment_id and w.application_id = a.application_id
                          and w.deleted_at is null and not w.disabled`.execute(transaction);
  return {
    applications: rows,
    subscriptions: rows.flatMap(({ webhookId, ...row }) =>
      webhookId === null ? [] : { ...row, webhookId },
    ),
  };
}
