/**
 * Effect of dead endpoints on the others. 1,000 webhooks of 20 accounts get events at a fixed rate, while 0 %, 50 %
 * or 90 % of the endpoints take requests and never answer (we wait 4 s). They begin to hang all at once when
 * measuring begins, as in an outage. The latency of the healthy webhooks runs from the due time of the log entry
 * until the arrival, so late logging counts too. The shares take turns within a round, and each ratio compares
 * shares of one round.
 *
 * `--events own` sends tracked events of one's own in place of reports, each to the one webhook that takes its name.
 * `--events published` sends messages to endpoints of applications.
 */
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { parseArgs } from 'node:util';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { APPLICATION_EVENT_TYPE } from '@sluice/domain/delivery/incoming-event';
import type { ReportingEvent } from '@sluice/domain/delivery/reporting-event';
import { sql } from 'kysely';
import {
  endpointOf,
  reportedOf,
  startDeliveryWorker,
  withDeliveryWorld,
  type DeliveryWorld,
  type Reported,
} from './delivery-world.ts';
import { median, type Report } from './report.ts';

const RECEIVER_PORT = 18_093;
const WORKER_PORT = 18_094;
const WEBHOOKS = 1_000;
const ACCOUNTS = 20;
const BATCH_INTERVAL_MS = 20;
const SHARES = [0, 0.5, 0.9];
const WARM_UP = [0];

export async function benchFairness(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      seconds: { type: 'string', default: '8' },
      rounds: { type: 'string', default: '3' },
      rate: { type: 'string', default: '1000' },
      events: { type: 'string', default: 'reports' },
    },
  });
  const seconds = Number(values.seconds);
  const roundCount = Number(values.rounds);
  const rate = Number(values.rate);
  const reported = reportedOf(values.events);
  return withDeliveryWorld(async (world) => {
    const receiver = await startReceiver();
    world.onClose(() => {
      receiver.server.closeAllConnections();
      receiver.server.close();
    });
    await startDeliveryWorker(world, WORKER_PORT);
    const environmentIds = await makeAccounts(world);
    const rounds: Latency[][] = [];
    for (let round = 0; round <= roundCount; round++) {
      const latencies: Latency[] = [];
      for (const share of round === 0 ? WARM_UP : SHARES) {
        const webhooks = {
          reported,
          webhooks: await makeWebhooks(world, environmentIds, reported),
        };
        receiver.hangingShare = 0;
        receiver.arrivals.length = 0;
        const before = await sendEvents(world, webhooks, rate, 2);
        await receiver.hasReceived(before.length);
        receiver.arrivals.length = 0;
        receiver.hangingShare = share;
        const sent = await sendEvents(world, webhooks, rate, round === 0 ? 2 : seconds);
        const expected = sent.filter((place) => !receiver.isHanging(place)).length;
        await receiver.hasReceived(expected);
        const latency = latencyOf(receiver.arrivals);
        latencies.push(latency);
        if (round > 0)
          console.log(
            `${String(share * 100).padStart(3)} % hang  healthy: ${expected} deliveries  p50 ${latency.p50.toFixed(1)} ms  p99 ${latency.p99.toFixed(1)} ms  max ${latency.max.toFixed(1)} ms  hanging requests ${receiver.hangCount}  worst of each second ${worstOfEachSecond(receiver.arrivals).join(' ')}`,
          );
      }
      if (round > 0) rounds.push(latencies);
    }
    // The median over the rounds, because the machine has slow moments that last a whole round.
    const middle = (at: (round: Latency[]) => number): number => median(rounds.map(at));
    const p99 = (round: Latency[], place: number): number => round[place]?.p99 ?? NaN;
    return {
      bench: reported === 'reports' ? 'fairness' : `fairness-${reported}`,
      ratios: {
        'p99-50/p99-0': middle((round) => p99(round, 1) / p99(round, 0)),
        'p99-90/p99-0': middle((round) => p99(round, 2) / p99(round, 0)),
      },
      rates: { 'events a second': rate },
      latencyMs: Object.fromEntries(
        SHARES.flatMap((share, place) =>
          (['p50', 'p99', 'max'] as const).map((name) => [
            `${share * 100} % hang ${name}`,
            middle((round) => round[place]?.[name] ?? NaN),
          ]),
        ),
      ),
      details: { webhooks: WEBHOOKS, accounts: ACCOUNTS, seconds, rounds: roundCount },
      versions: world.versions,
    };
  });
}

interface BenchWebhook {
  readonly environmentId: number;
  readonly webhookId: number;
}

interface BenchWebhooks {
  readonly reported: Reported;
  /** By their places. */
  readonly webhooks: readonly BenchWebhook[];
}

interface Arrival {
  readonly dueAtMs: number;
  readonly latencyMs: number;
}

interface Latency {
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

function latencyOf(arrivals: readonly Arrival[]): Latency {
  const sorted = arrivals.map(({ latencyMs }) => latencyMs).toSorted((a, b) => a - b);
  const at = (quantile: number) => sorted[Math.floor(sorted.length * quantile)] ?? NaN;
  return { p50: at(0.5), p99: at(0.99), max: at(0.9999) };
}

function worstOfEachSecond(arrivals: readonly Arrival[]): number[] {
  const startedAtMs = arrivals[0]?.dueAtMs ?? 0;
  const bySecond = Map.groupBy(arrivals, ({ dueAtMs }) =>
    Math.floor((dueAtMs - startedAtMs) / 1_000),
  );
  return [...bySecond.values()].map((part) =>
    Math.round(Math.max(...part.map(({ latencyMs }) => latencyMs))),
  );
}

/** Notes how late each event came, by the time in its id. Hanging endpoints never answer. */
async function startReceiver() {
  const arrivals: Arrival[] = [];
  const receiver = {
    arrivals,
    hangingShare: 0,
    hangCount: 0,
    /** Waits for so many, and for no more. */
    async hasReceived(expected: number): Promise<void> {
      for (let waits = 0; arrivals.length < expected && waits < 1_000; waits++)
        await new Promise((resolve) => setTimeout(resolve, 20));
      if (arrivals.length !== expected)
        throw new Error(`${expected} to healthy webhooks, ${arrivals.length} arrived`);
    },
    isHanging: (place: number) => place % 100 < receiver.hangingShare * 100,
    server: undefined as unknown as Server,
  };
  receiver.server = createServer((request, response) => {
    const isHanging = receiver.isHanging(Number(request.url?.split('/').at(-1)));
    let body = '';
    request.setEncoding('utf8').on('data', (part: string) => (body += part));
    request.on('end', () => {
      if (isHanging) {
        receiver.hangCount++;
        return;
      }
      const dueAtMs = Number(/"event_id":"(\d+)-/.exec(body)?.[1]);
      arrivals.push({ dueAtMs, latencyMs: performance.timeOrigin + performance.now() - dueAtMs });
      response.end();
    });
  });
  receiver.server.requestTimeout = 0;
  receiver.server.listen(RECEIVER_PORT, '0.0.0.0', 4_096);
  await once(receiver.server, 'listening');
  return receiver;
}

async function makeAccounts(world: DeliveryWorld): Promise<number[]> {
  const { rows } = await sql<{ environmentId: number }>`
    with made as (
      insert into accounts (name) select 'bench' from generate_series(1, ${ACCOUNTS}::int) returning account_id
    )
    insert into environments (account_id, name, webhook_signing_key)
    select account_id, 'bench', 'key' from made returning environment_id as "environmentId"`.execute(
    world.database,
  );
  return rows.map((row) => row.environmentId);
}

async function makeWebhooks(
  world: DeliveryWorld,
  environmentIds: readonly number[],
  reported: Reported,
): Promise<BenchWebhook[]> {
  const endpoints = Array.from({ length: WEBHOOKS }, (_, place) =>
    endpointOf(place, RECEIVER_PORT),
  );
  await sql`truncate webhooks, lanes, delivery_log, delivery_attempts cascade`.execute(
    world.database,
  );
  // Spread over the accounts in turn. A report has a type of its own each, so that an event is one delivery.
  const { rows } = await sql<{ environmentId: number; webhookId: number; place: number }>`
    with made as (
      insert into webhooks (environment_id, name, endpoint, events, signing_key, application_id)
      select (${environmentIds}::int[])[1 + place % ${ACCOUNTS}], place, endpoint,
             array[case ${reported} when 'own' then 'event' when 'published' then ${APPLICATION_EVENT_TYPE} else 'place-' || place end],
             'key', case when ${reported === 'published'} then 'customer-' || place end
        from unnest(${endpoints}::text[], ${endpoints.map((_, place) => place)}::int[]) as e (endpoint, place)
      returning environment_id, webhook_id, name
    ), lanes as (
      insert into lanes (environment_id, webhook_id, is_paused) select environment_id, webhook_id, false from made
    )
    select environment_id as "environmentId", webhook_id as "webhookId", name::int as place from made order by place`.execute(
    world.database,
  );
  return rows;
}

/** Members of an event for one webhook, beside its id and its time. */
function toldOf(
  reported: Reported,
  webhookId: number,
  place: number,
): Pick<
  ReportingEvent,
  'eventType' | 'objectType' | 'metric' | 'webhookIds' | 'applicationId' | 'data'
> {
  const data = { customer_id: '42', subject: 'Your order is on its way' };
  switch (reported) {
    case 'reports':
      return {
        eventType: `place-${place}` as 'email_sent',
        objectType: 'email',
        metric: 'sent',
        data,
      };
    case 'own':
      return {
        eventType: 'event',
        objectType: 'event',
        metric: `order_${place}`,
        webhookIds: [webhookId],
        data: { identifiers: { id: '42' }, properties: data },
      };
    case 'published':
      return {
        eventType: 'message',
        objectType: 'message',
        metric: 'invoice.paid',
        webhookIds: [webhookId],
        applicationId: `customer-${place}`,
        data: { payload: data },
      };
  }
}

/** Logs events at the rate, one webhook after another, in a transaction each 20 ms, and wakes their lanes. */
async function sendEvents(
  world: DeliveryWorld,
  { reported, webhooks }: BenchWebhooks,
  rate: number,
  seconds: number,
): Promise<number[]> {
  const places: number[] = [];
  const logging: Promise<unknown>[] = [];
  const startedAtMs = performance.timeOrigin + performance.now();
  const batches = Math.ceil((seconds * 1_000) / BATCH_INTERVAL_MS);
  const perBatch = Math.round((rate * BATCH_INTERVAL_MS) / 1_000);
  for (let batch = 0; batch < batches; batch++) {
    const dueAtMs = startedAtMs + batch * BATCH_INTERVAL_MS;
    const earlyMs = dueAtMs - (performance.timeOrigin + performance.now());
    if (earlyMs > 0) await new Promise((resolve) => setTimeout(resolve, earlyMs));
    const events = Array.from({ length: perBatch }, () => {
      // A prime stride, so that hanging and healthy endpoints are mixed.
      const place = (places.length * 7) % WEBHOOKS;
      places.push(place);
      const { environmentId, webhookId } = webhooks[place] as BenchWebhook;
      return {
        environmentId,
        eventId: `${Math.round(dueAtMs)}-${batch}-${place}`,
        occurredAtMs: dueAtMs,
        ...toldOf(reported, webhookId, place),
      };
    });
    // Not waited for: a disk that takes its time must not hold up the next ones.
    logging.push(
      world.database
        .transaction()
        .execute((transaction) => appendDeliveries(transaction, events))
        .then((lanes) => world.producer.wakeLanes(lanes)),
    );
  }
  await Promise.all(logging);
  return places;
}
