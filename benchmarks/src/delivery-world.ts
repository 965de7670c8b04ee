/**
 * Shared parts of the delivery benchmarks: a durable Postgres, a durable Redis, a workspace with many webhooks, and rows in
 * their logs.
 */
import type { Database } from '@sluice/database/connection/connection';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { APPLICATION_EVENT_TYPE } from '@sluice/domain/delivery/incoming-event';
import { createLogger } from '@sluice/platform/process/logger';
import { openProducer, type Producer } from '@sluice/platform/queue/queue';
import { sql } from 'kysely';
import type { ChildServer } from './child-server.ts';
import { withWorld, type World } from './world.ts';

export interface DeliveryWorld extends World {
  readonly producer: Producer;
  /** Of the broker that the worker is to use; undefined if that is Postgres. */
  readonly redisUrl: string | undefined;
}

/** @param broker - of the queue of wake-ups. */
export async function withDeliveryWorld<Result>(
  run: (world: DeliveryWorld) => Promise<Result>,
  broker: 'redis' | 'postgres' = 'redis',
): Promise<Result> {
  return withWorld('full', async (world) => {
    const redisUrl = broker === 'redis' ? world.redisServer.url : undefined;
    const producer = await openProducer({
      databaseUrl: world.databaseUrl,
      redisUrl,
      prefix: 'sluice',
      shardCount: 1,
      logger: createLogger('bench', 'warn'),
    });
    world.onClose(() => producer.close());
    return run({ ...world, producer, redisUrl });
  });
}

/** The worker under test. It delivers to this machine. */
export const startDeliveryWorker = (world: DeliveryWorld, port: number): Promise<ChildServer> =>
  world.startService('worker', port, {
    ...(world.redisUrl !== undefined && { REDIS_URL: world.redisUrl }),
    SHARD_COUNT: '1',
    WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
  });

/** An address of its own for each webhook, as customers have: all of them are this machine. @param place - below 2^23. */
export const endpointOf = (place: number, port: number): string =>
  `http://127.${1 + (place >> 16)}.${(place >> 8) & 255}.${place & 255}:${port}/hook/${place}`;

/** Kinds of reports: a message's outcome, a tracked event of one's own, or a message published to an application. */
const REPORTED = ['reports', 'own', 'published'] as const;
export type Reported = (typeof REPORTED)[number];

/** @throws Error if it is not in {@link REPORTED}. */
export function reportedOf(given: string): Reported {
  const found = REPORTED.find((each) => each === given);
  if (found === undefined) throw new Error(`--events wants ${REPORTED.join(', ')}, not ${given}`);
  return found;
}

const LISTED = {
  reports: 'email_delivered',
  own: 'event',
  published: APPLICATION_EVENT_TYPE,
} as const satisfies Record<Reported, string>;

/** The type of a delivery, and of its body the first two members. */
const TOLD = {
  reports: { eventType: 'email_delivered', objectType: 'email', metric: 'delivered' },
  own: { eventType: 'event', objectType: 'event', metric: 'order_placed' },
  published: { eventType: 'message', objectType: 'message', metric: 'invoice.paid' },
} as const satisfies Record<Reported, object>;

/** An application has so many endpoints. */
export const ENDPOINTS_EACH = 50;

/**
 * Replaces all webhooks by so many, each with an address of its own and an empty log. Published messages are for endpoints
 * of applications. Returns their ids.
 */
export async function replaceWebhooks(
  database: Database,
  endpoints: readonly string[],
  reported: Reported = 'reports',
): Promise<number[]> {
  await sql`truncate applications, webhooks, lanes, delivery_log, delivery_attempts cascade`.execute(
    database,
  );
  const { rows } = await sql<{ webhookId: number }>`
    insert into webhooks (environment_id, name, endpoint, events, signing_key, application_id)
    select ${DEMO.environmentId}, 'bench', endpoint, array[${LISTED[reported]}], ${DEMO.signingKey},
           case when ${reported === 'published'} then 'customer-' || (place - 1) / ${ENDPOINTS_EACH}::int end
      from unnest(${endpoints}::text[]) with ordinality as e (endpoint, place) order by place
    returning webhook_id as "webhookId"`.execute(database);
  const webhookIds = rows.map((row) => row.webhookId);
  await sql`
    insert into applications (environment_id, application_id, name)
    select distinct environment_id, application_id, application_id from webhooks
     where environment_id = ${DEMO.environmentId} and application_id is not null`.execute(database);
  await sql`
    insert into lanes (environment_id, webhook_id, is_paused)
    select ${DEMO.environmentId}, unnest(${webhookIds}::int[]), false`.execute(database);
  return webhookIds;
}

/**
 * Logs so many deliveries to every webhook, of a body of about 1 KB, while their lanes are paused:
 * `release` lets them go.
 *
 * @param peopleEach - number of people that they are about, in turns; by default as many as deliveries. A published message
 *   is about no person.
 */
export async function logDeliveries(
  database: Database,
  countEach: number,
  peopleEach = countEach,
  reported: Reported = 'reports',
): Promise<void> {
  const { eventType, objectType, metric } = TOLD[reported];
  await database.transaction().execute(async (transaction) => {
    await sql`update lanes set is_paused = true where environment_id = ${DEMO.environmentId}`.execute(
      transaction,
    );
    await sql`
      insert into delivery_log (environment_id, webhook_id, sequence, event_id, event_type, occurred_at, person_id, body)
      select environment_id, webhook_id, last_sequence + step, webhook_id || '-' || last_sequence + step,
             ${eventType}, now(), case when ${reported !== 'published'} then 1 + step % ${peopleEach}::bigint end,
             jsonb_build_object('event_id', webhook_id || '-' || last_sequence + step, 'object_type', ${objectType}::text,
               'metric', ${metric}::text, 'timestamp', 1700000000, 'data', jsonb_build_object(
                 'customer_id', 'person-' || step, 'delivery_id', md5(step::text), 'recipient', 'person@example.com',
                 'subject', 'Your order is on its way', 'filling', repeat('0123456789abcdef', 45)))::text
        from lanes cross join generate_series(1, ${countEach}::bigint) as step
       where environment_id = ${DEMO.environmentId}`.execute(transaction);
    await sql`
      update lanes set last_sequence = last_sequence + ${countEach}
       where environment_id = ${DEMO.environmentId}`.execute(transaction);
  });
  await sql`vacuum analyze lanes`.execute(database);
  await sql`vacuum analyze delivery_log`.execute(database);
}

/** Lets paused lanes go, and wakes them as the worker would be woken. */
export async function release(
  database: Database,
  producer: Producer,
  webhookIds: readonly number[],
): Promise<void> {
  await sql`update lanes set is_paused = false where environment_id = ${DEMO.environmentId}`.execute(
    database,
  );
  await producer.wakeLanes(
    webhookIds.map((webhookId) => ({ environmentId: DEMO.environmentId, webhookId })),
  );
}

/** True if a delivery is neither delivered nor given up. By `lanes_to_wake`, which has only lanes with work. */
export async function hasUnfinished(database: Database): Promise<boolean> {
  const { rows } = await sql<{ isLeft: boolean }>`
    select exists (select from lanes where wake_at is not null) as "isLeft"`.execute(database);
  return rows[0]?.isLeft === true;
}

/** Deliveries that are neither delivered nor given up. */
export async function unfinishedCount(database: Database): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select coalesce(sum(last_sequence - cursor_sequence), 0)::float8 as count from lanes
     where environment_id = ${DEMO.environmentId}`.execute(database);
  return rows[0]?.count ?? 0;
}
