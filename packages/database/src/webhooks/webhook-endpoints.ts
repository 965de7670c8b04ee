/**
 * The endpoints of all webhooks that deliver, of all workspaces: a worker that starts judges their addresses.
 *
 * Used by `worker/src/delivery/name-refused-endpoints.ts`.
 */
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

export interface WebhookEndpoint {
  readonly environmentId: number;
  readonly webhookId: number;
  readonly endpoint: string;
}

/** At most `countMax` behind `after`, in the order of the primary key (environment_id, webhook_id), which it reads. */
export async function listWebhookEndpoints(
  database: DatabaseOrTransaction,
  after: Pick<WebhookEndpoint, 'environmentId' | 'webhookId'> | undefined,
  countMax: number,
): Promise<WebhookEndpoint[]> {
  const { environmentId = 0, webhookId = 0 } = after ?? {};
  const { rows } = await sql<WebhookEndpoint>`
    select environment_id as "environmentId", webhook_id as "webhookId", endpoint
      from webhooks
     where (environment_id, webhook_id) > (${environmentId}, ${webhookId})
       and deleted_at is null and feed_name is null and not disabled
     order by environment_id, webhook_id
     limit ${countMax}`.execute(database);
  return rows;
}
