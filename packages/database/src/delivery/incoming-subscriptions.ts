/**
 * Webhooks that take incoming events (`domain/src/delivery/incoming-event.ts`). Both statements find them by
 * `webhooks_of_incoming`, which has no others.
 */
import type { IncomingSubscription } from '@sluice/domain/delivery/incoming-subscription';
import { sql } from 'kysely';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';

/** Those of the workspaces that have such a webhook: part of a statement that is sent anyway. Null: none. */
export const takersOfIncoming = (environmentIds: readonly number[]) => sql<number[] | null>`(
  select array_agg(distinct environment_id) from webhooks
   where environment_id = any (${environmentIds}::int[]) and takes_incoming and not disabled)`;

/** What these webhooks ask for; no statement where no workspace has one. */
export async function listIncomingSubscriptions(
  transaction: DatabaseOrTransaction,
  environmentIds: readonly number[],
): Promise<readonly IncomingSubscription[]> {
  if (environmentIds.length === 0) return [];
  const { rows } = await sql<IncomingSubscription>`${PREPARED}
    select environment_id as "environmentId", webhook_id as "webhookId", events, event_names as "eventNames",
           attribute_filters as "attributeFilters", with_imports as "withImports", with_late as "withLate",
           with_person_attributes as "withPersonAttributes"
      from webhooks
     where environment_id = any (${environmentIds}::int[]) and takes_incoming and not disabled`.execute(
    transaction,
  );
  return rows;
}
