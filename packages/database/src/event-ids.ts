/** Which event ids were taken: unique per workspace, across APIs, envelopes and days. */
import type { EventKey } from '@sluice/domain/slice';
import { sql } from 'kysely';
import { integerColumn, textColumn } from './columns.ts';
import type { DatabaseOrTransaction } from './connection.ts';

/**
 * Takes event ids for this transaction and names those that were already taken. In order of the key,
 * so that two envelopes with the same ids never wait for each other. By the primary key.
 *
 * @param keys - each once.
 */
export async function claimEventIds(
  transaction: DatabaseOrTransaction,
  keys: readonly EventKey[],
): Promise<EventKey[]> {
  if (keys.length === 0) return [];
  const { rows } = await sql<EventKey>`
    with offered as materialized (
      select * from unnest(
        ${integerColumn(keys, (key) => key.environmentId)}::int[],
        ${textColumn(keys, (key) => key.eventId)}::text[]
      ) as o (environment_id, event_id)
    ), claimed as (
      insert into event_ids (environment_id, event_id)
      select environment_id, event_id from offered order by environment_id, event_id collate "C"
      on conflict (environment_id, event_id) do nothing
      returning environment_id, event_id
    )
    select environment_id as "environmentId", event_id as "eventId" from offered
    except
    select environment_id, event_id from claimed`.execute(transaction);
  return rows;
}
