/** Bodies of deliveries: logged once, byte for byte the same in each attempt. */
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

export interface SentAttempt {
  readonly eventId: string;
  readonly body: string;
  readonly startedAt: Date;
}

/** Undefined if there is no such attempt, or it is older than the retention. Index: primary keys. */
export async function findSentAttempt(
  database: DatabaseOrTransaction,
  { environmentId, webhookId }: LaneKey,
  sequence: number,
  attempt: number,
): Promise<SentAttempt | undefined> {
  const { rows } = await sql<SentAttempt>`
    select log.event_id as "eventId", log.body, a.started_at as "startedAt"
      from delivery_attempts a
      join delivery_log log using (environment_id, webhook_id, sequence)
     where a.environment_id = ${environmentId} and a.webhook_id = ${webhookId} and a.sequence = ${sequence}
       and a.attempt = ${attempt}`.execute(database);
  return rows[0];
}
