/**
 * The whole way, with the processes that operators run: a call is posted to intake, the worker
 * works it out, the signed delivery reaches a receiver. The worker is killed in the middle.
 */
import { createHmac } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import {
  startServiceUnderTest,
  type ServiceUnderTest,
} from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { afterEach, describe, expect, test, vi } from 'vitest';

const mainOf = (service: string) =>
  fileURLToPath(new URL(`../../../../${service}/src/main.ts`, import.meta.url));

interface Delivery {
  readonly event_id: string;
  readonly metric: string;
  readonly data: { readonly identifiers: { readonly id: string } };
}

/** Answers 200 to deliveries with a right signature and keeps them; any other is kept as forged. */
async function startReceiver() {
  const received: Delivery[] = [];
  const forged: string[] = [];
  const server: Server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (part: string) => (body += part));
    request.on('end', () => {
      const expected = createHmac('sha256', DEMO.signingKey)
        .update(`v0:${String(request.headers['x-svc-timestamp'])}:${body}`)
        .digest('hex');
      if (request.headers['x-svc-signature'] === expected)
        received.push(JSON.parse(body) as Delivery);
      else forged.push(body);
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { received, forged, url: `http://127.0.0.1:${port}/hook`, close: () => server.close() };
}

const running: ServiceUnderTest[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((service) => service.kill('SIGKILL')));
});
async function start(service: string, settings: Record<string, string>): Promise<ServiceUnderTest> {
  const started = await startServiceUnderTest(mainOf(service), settings);
  running.push(started);
  return started;
}

const PEOPLE = 20;
const CHANGES = 10;

describe.each(['postgres', 'redis'] as const)(
  'from a call to a signed delivery, queues on %s',
  (kind) => {
    test(
      'after a worker is killed in the middle, every event is stored once and arrives in order',
      { timeout: 600_000 },
      async () => {
        const { database, url } = await createTestDatabase();
        await seedDemoWorkspace(database);
        const settings = {
          DATABASE_URL: url,
          ...(kind === 'redis' ? { REDIS_URL: testRedisUrl(), QUEUE_PREFIX: uniquePrefix() } : {}),
          SHARD_COUNT: '2',
          QUEUE_STALLED_AFTER_MS: '1500',
          WEBHOOK_ALLOW_PRIVATE_ADDRESSES: 'true',
          WEBHOOK_WINDOW_MAX: '4',
          // Longer than the stalls of a busy machine. A delivery that times out puts off all later ones.
          WEBHOOK_TIMEOUT_MS: '12000',
          DRAIN_TIMEOUT_MS: '60000',
        };
        const receiver = await startReceiver();
        const [intake, api, firstWorker] = await Promise.all([
          start('intake', { ...settings, INTAKE_PORT: '0' }),
          start('api', { ...settings, API_PORT: '0' }),
          start('worker', { ...settings, WORKER_PORT: '0' }),
        ]);

        const app = { Authorization: `Bearer ${DEMO.appKey}`, 'Content-Type': 'application/json' };
        const created = await fetch(`${api.url}/v1/reporting_webhooks`, {
          method: 'POST',
          headers: app,
          body: JSON.stringify({
            name: 'receiver',
            endpoint: receiver.url,
            events: ['customer_subscribed', 'customer_unsubscribed', 'event'],
          }),
        });
        expect(created.status).toBe(200);

        // Each person is unsubscribed and subscribed in turn, and tracked; each event must arrive once, in order.
        const call = (path: string, body: unknown) =>
          fetch(`${intake.url}${path}`, {
            method: 'POST',
            headers: {
              Authorization: `Basic ${Buffer.from(`${DEMO.writeKey}:`).toString('base64')}`,
              'X-Strict-Mode': '1',
            },
            body: JSON.stringify(body),
          });
        const changePerson = async (person: number): Promise<void> => {
          for (let change = 0; change < CHANGES; change++) {
            const userId = `person-${person}`;
            const identified = await call('/v1/identify', {
              userId,
              traits: { unsubscribed: change % 2 === 0, change },
            });
            expect(identified.status).toBe(200);
            const tracked = await call('/v1/track', {
              userId,
              event: 'changed',
              messageId: `event-${person}-${change}`,
            });
            expect(tracked.status).toBe(200);
          }
        };
        const changing = Promise.all(
          Array.from({ length: PEOPLE }, (_, person) => changePerson(person)),
        );

        await vi.waitFor(() => expect(receiver.received.length).toBeGreaterThan(10), {
          timeout: 60_000,
          interval: 5,
        });
        await firstWorker.kill('SIGKILL');
        await changing;
        const secondWorker = await start('worker', { ...settings, WORKER_PORT: '0' });

        const eventIds = () => new Set(receiver.received.map((delivery) => delivery.event_id));
        await vi.waitFor(() => expect(eventIds().size).toBe(2 * PEOPLE * CHANGES), {
          timeout: 150_000,
          interval: 50,
        });
        expect(receiver.forged).toEqual([]);

        // In order a person, counting each delivery when it first came.
        const seen = new Set<string>();
        const metricsByPerson = new Map<string, string[]>();
        for (const { event_id, metric, data } of receiver.received) {
          if (seen.has(event_id)) continue;
          seen.add(event_id);
          const { id } = data.identifiers;
          metricsByPerson.set(id, [...(metricsByPerson.get(id) ?? []), metric]);
        }
        const alternating = Array.from({ length: CHANGES }, (_, n) => [
          n % 2 === 0 ? 'unsubscribed' : 'subscribed',
          'changed',
        ]).flat();
        expect([...metricsByPerson.values()]).toEqual(
          Array.from({ length: PEOPLE }, () => alternating),
        );

        // The queue is empty, and each event is stored once.
        await vi.waitFor(async () => {
          const { rows } = await sql<{ count: number }>`
        select count(*)::int as count from events where environment_id = 1 and name = 'changed'`.execute(
            database,
          );
          expect(rows[0]?.count).toBe(PEOPLE * CHANGES);
        }, 60_000);
        const read = await fetch(`${api.url}/v1/customers/person-7/attributes`, { headers: app });
        expect(await read.json()).toMatchObject({
          customer: {
            id: 'person-7',
            unsubscribed: false,
            attributes: { change: String(CHANGES - 1) },
          },
        });

        // A stop in good order ends with 0 and finishes the work in progress.
        for (const service of [intake, secondWorker, api])
          expect(await service.kill('SIGTERM')).toBe(0);
        receiver.close();
      },
    );
  },
);
