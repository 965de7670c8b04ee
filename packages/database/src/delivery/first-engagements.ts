/**
 * First opens and clicks of each message, and of each link. Webhooks without `full_resolution` get only these
 * (`ingestion-webhooks.md` §2).
 *
 * The first is the one whose row is inserted. If two transactions report one message at once, the second waits at the
 * primary key until the first has ended: so exactly one is first, and if the first is rolled back it is the second.
 * Rows are inserted in order of their key, so that two commit batches never deadlock. Existing webhooks do not matter:
 * a later webhook does not receive a repeated open as if it were new.
 *
 * Part of step 10 of the walk, called by `deliveries.ts`.
 */
import { createHash } from 'node:crypto';
import type { ReportingEvent } from '@sluice/domain/delivery/reporting-event';
import { sql } from 'kysely';
import type { DatabaseOrTransaction } from '../connection/connection.ts';

/** Places in `events` of those opens and clicks that are not the first; one statement, by the primary key. */
export async function takeFirstEngagements(
  transaction: DatabaseOrTransaction,
  events: readonly ReportingEvent[],
): Promise<ReadonlySet<number>> {
  const engagements = events.flatMap(({ environmentId, metric, engagement }, place) =>
    engagement ? [{ environmentId, metric, place, ...engagement }] : [],
  );
  if (engagements.length === 0) return new Set();
  const { rows } = await sql<StoredEngagement>`
    insert into first_engagements (environment_id, delivery_id, metric, link_digest)
    select distinct environment_id, delivery_id collate "C" as delivery_id, metric collate "C" as metric,
           sha256(convert_to(link, 'UTF8')) as link_digest
      from unnest(
        ${engagements.map((each) => each.environmentId)}::int[],
        ${engagements.map((each) => each.deliveryId)}::text[],
        ${engagements.map((each) => each.metric)}::text[],
        ${engagements.map((each) => each.link)}::text[]) as r (environment_id, delivery_id, metric, link)
     order by environment_id, delivery_id, metric, link_digest
    on conflict do nothing
    returning environment_id as "environmentId", delivery_id as "deliveryId", metric, link_digest as "linkDigest"`.execute(
    transaction,
  );
  const firsts = new Set(rows.map(keyOf));
  const repeats = engagements.filter(
    ({ link, ...each }) =>
      !firsts.delete(keyOf({ ...each, linkDigest: createHash('sha256').update(link).digest() })),
  );
  return new Set(repeats.map(({ place }) => place));
}

interface StoredEngagement {
  readonly environmentId: number;
  readonly deliveryId: string;
  readonly metric: string;
  readonly linkDigest: Buffer;
}

const keyOf = ({ environmentId, deliveryId, metric, linkDigest }: StoredEngagement): string =>
  JSON.stringify([environmentId, deliveryId, metric, linkDigest.toString('base64')]);
