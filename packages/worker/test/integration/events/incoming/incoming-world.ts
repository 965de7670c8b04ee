/** Workspaces with webhooks for incoming events, and their delivery logs. */
import { insertTestWebhook, insertTestWorkspace } from '@sluice/database/testing/test-tenants';
import type { NewWebhook } from '@sluice/database/webhooks/webhooks';
import type { Operation } from '@sluice/domain/operations/operation';
import { sql } from 'kysely';
import { inEnvironment, type CommitBatchWorld } from '../../support/commit-batch-world.ts';

export interface Logged {
  readonly type: string;
  readonly personId: number | null;
  readonly body: {
    readonly event_id: string;
    readonly object_type: string;
    readonly metric: string;
    readonly timestamp: number;
    readonly data: Record<string, unknown>;
  };
}

/** A workspace of its own, whose webhooks ask for incoming events. */
export async function createIncomingWorld(world: CommitBatchWorld) {
  const environmentId = world.newEnvironment();
  await insertTestWorkspace(world.database, environmentId);

  const webhook = async (settings: Partial<NewWebhook>): Promise<number> =>
    (await insertTestWebhook(world.database, environmentId, settings)).webhookId;

  const process = (...operations: Operation[]) =>
    world.process(inEnvironment(environmentId, ...operations));

  /** Logged deliveries of a webhook, in order. */
  async function logged(webhookId: number): Promise<Logged[]> {
    const { rows } = await sql<Omit<Logged, 'body'> & { body: string }>`
      select event_type as type, person_id::float8 as "personId", body from delivery_log
       where environment_id = ${environmentId} and webhook_id = ${webhookId} order by sequence`.execute(
      world.database,
    );
    return rows.map((row) => ({ ...row, body: JSON.parse(row.body) as Logged['body'] }));
  }

  const names = async (webhookId: number): Promise<string[]> =>
    (await logged(webhookId)).map(({ body }) => body.metric);

  return { environmentId, webhook, process, logged, names };
}

export type IncomingWorld = Awaited<ReturnType<typeof createIncomingWorld>>;
