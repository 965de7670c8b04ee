/**
 * Kills intake and worker of an installation under load.
 *
 * It measures how long deliveries take and how many are sent twice. The senders send again until they are answered, as
 * the clients do. No setting differs from `npm start`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import { startInstallation, type Host, type Installation } from './installation.ts';
import { startReceiver, type Receiver } from './receiver.ts';

export interface KillsOptions {
  readonly broker: 'redis' | 'postgres';
  readonly eventCount: number;
  /** Events a second. */
  readonly rate: number;
  /** Decides when the processes are killed: after 30 to 70 % of the load. */
  readonly seed: number;
}

export interface KillsReport {
  readonly broker: string;
  readonly seed: number;
  readonly events: number;
  readonly acknowledged: number;
  /** From the kill to the first acknowledgement of the intake that is started in place of the killed one. */
  readonly firstAcknowledgedMs: number;
  /** From the kill to the first delivery of the worker that is started in place of the killed one. */
  readonly firstDeliveryMs: number;
  /** From the kill to the last delivery. */
  readonly lastDeliveryMs: number;
  /** From the last acknowledgement to the last delivery. */
  readonly lastDeliveryAfterLoadMs: number;
  readonly lost: number;
  readonly doubled: number;
  /** Sent by the worker that was killed, without a record of their attempt. */
  readonly inFlight: number;
}

const BATCH_SIZE = 15;
/** As clients wait at least; 2,000 refused connections a second would slow the start that is measured. */
const RETRY_MS = 250;
/** Of the whole of the load, before the kill: the least and the most. */
const KILLED_AFTER = [0.3, 0.7] as const;
/** Multiples of it, without their whole parts, spread evenly over 0 to 1. */
const GOLDEN_RATIO = 0.618_034;
const DEADLINE_MS = 120_000;
/** A client of its own waits no longer for an answer. */
const ANSWER_MS_MAX = 30_000;
const SENT_AGAIN_WITHIN_MS = 3_000;
const ARRIVAL_MS = 200;

export async function runKills(options: KillsOptions, host: Host): Promise<KillsReport> {
  const installation = await startInstallation(options.broker, host);
  const receiver = await startReceiver();
  try {
    await installation.ask('/v1/reporting_webhooks', {
      name: 'kills',
      endpoint: receiver.url,
      events: ['customer_unsubscribed'],
    });
    await warmUp(installation, receiver);
    return await measure(installation, receiver, options);
  } finally {
    receiver.close();
    await installation.close();
  }
}

/** Until one event has come all the way. */
async function warmUp(installation: Installation, receiver: Receiver): Promise<void> {
  await send(installation, 'warm-up', 1);
  await until(() => receiver.received.size === 1);
}

async function measure(
  installation: Installation,
  receiver: Receiver,
  { broker, eventCount, rate, seed }: KillsOptions,
): Promise<KillsReport> {
  const killedAfter =
    KILLED_AFTER[0] + (KILLED_AFTER[1] - KILLED_AFTER[0]) * ((seed * GOLDEN_RATIO) % 1);
  const batchCount = Math.ceil(eventCount / BATCH_SIZE);
  const kill = await installation.prepareKill();
  const startedAtMs = performance.now();
  let killedAtMs = 0;
  let acknowledged = 0;
  let lastAcknowledgedAtMs = 0;
  let inFlight = 0;
  let acknowledgedAgainAtMs = Infinity;
  let deliveredAgainAtMs = 0;
  const sending: Promise<void>[] = [];
  let killing: Promise<void> | undefined;
  for (let batch = 0; batch < batchCount; batch++) {
    const dueAtMs = startedAtMs + (batch * BATCH_SIZE * 1_000) / rate;
    const waitMs = dueAtMs - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    const size = Math.min(BATCH_SIZE, eventCount - batch * BATCH_SIZE);
    sending.push(
      send(installation, `b${batch}`, size).then((sentAtMs) => {
        acknowledged += size;
        lastAcknowledgedAtMs = performance.now();
        // Answers of the killed one come later too, on a busy machine by more than a second.
        if (killedAtMs > 0 && sentAtMs > killedAtMs)
          acknowledgedAgainAtMs = Math.min(acknowledgedAgainAtMs, lastAcknowledgedAtMs);
      }),
    );
    if (batch / batchCount >= killedAfter)
      killing ??= (async () => {
        kill();
        killedAtMs = performance.now();
        // Requests on their way have arrived, and the next worker has not begun.
        do await sleep(ARRIVAL_MS);
        while (performance.now() - receiver.lastAtMs() < ARRIVAL_MS);
        inFlight = await countInFlight(installation, receiver);
        const receivedCount = receiver.received.size;
        await until(() => receiver.received.size > receivedCount);
        deliveredAgainAtMs = performance.now();
      })();
  }
  await Promise.all([...sending, killing]);
  const wanted = eventCount + 1;
  await until(() => receiver.received.size >= wanted).catch(() => undefined);
  // Repeated deliveries come by then.
  await sleep(SENT_AGAIN_WITHIN_MS);
  const lastAtMs = receiver.lastAtMs();
  return {
    broker,
    seed,
    events: eventCount,
    acknowledged,
    firstAcknowledgedMs: Math.round(acknowledgedAgainAtMs - killedAtMs),
    firstDeliveryMs: Math.round(deliveredAgainAtMs - killedAtMs),
    lastDeliveryMs: Math.round(lastAtMs - killedAtMs),
    lastDeliveryAfterLoadMs: Math.round(lastAtMs - lastAcknowledgedAtMs),
    lost: wanted - receiver.received.size,
    doubled: [...receiver.received.values()].filter((count) => count > 1).length,
    inFlight,
  };
}

/** Received so far, with no record of it. */
async function countInFlight({ database }: Installation, receiver: Receiver): Promise<number> {
  const before = [...receiver.received.keys()];
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count
      from unnest(${before}::text[]) as received (event_id)
      join delivery_log log on log.environment_id = ${DEMO.environmentId} and log.event_id = received.event_id
     where not exists (
       select from delivery_attempts a
        where a.environment_id = log.environment_id and a.webhook_id = log.webhook_id
          and a.sequence = log.sequence and a.outcome = 'delivered')`.execute(database);
  return rows[0]?.count ?? 0;
}

/** A batch about people of its own, sent until it is answered. @returns when the answered try was sent. */
async function send(
  { intakeUrl, lastLines }: Installation,
  name: string,
  size: number,
): Promise<number> {
  const body = JSON.stringify({
    batch: Array.from({ length: size }, (_, index) => ({
      type: 'identify',
      messageId: `${name}-${index}`,
      userId: `${name}-${index}`,
      traits: { unsubscribed: true, email: `${name}-${index}@example.com` },
    })),
  });
  for (const deadlineMs = performance.now() + DEADLINE_MS; ; await sleep(RETRY_MS)) {
    const sentAtMs = performance.now();
    let ended = '';
    const answer = await fetch(`${intakeUrl}/v1/batch`, {
      method: 'POST',
      headers: {
        authorization: `Basic ${btoa(`${DEMO.writeKey}:`)}`,
        'content-type': 'application/json',
      },
      body,
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    }).catch(
      (error: Error) =>
        void (ended = `${error.message}: ${(error.cause as Error | undefined)?.message}`),
    );
    const text = await answer?.text().catch((error: Error) => error.message);
    if (answer?.status === 200) return sentAtMs;
    if (answer) ended = `${answer.status} ${text}`;
    if (performance.now() > deadlineMs)
      throw new Error(
        `${name} was not acknowledged in ${DEADLINE_MS} ms; the last try, of ${Math.round(performance.now() - sentAtMs)} ms, ended with ${ended}\n${lastLines()}`,
      );
  }
}

async function until(isSo: () => boolean): Promise<void> {
  for (const deadlineMs = performance.now() + DEADLINE_MS; !isSo(); await sleep(10))
    if (performance.now() > deadlineMs) throw new Error('it did not come about');
}
