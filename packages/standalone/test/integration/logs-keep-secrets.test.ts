/**
 * Logs are free of secrets and of personal data.
 *
 * That holds for any amount of logs, and after any error.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { inspect } from 'node:util';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { errorForLog } from '@sluice/platform/process/logger';
import { testRedisUrl } from '@sluice/platform/testing/testing';
import { Redis } from 'ioredis';
import { sql } from 'kysely';
import { expect, test, vi } from 'vitest';
import { startFleet, WAIT } from './fleet-under-test.ts';

/** Processes start slowly on a machine that is shared. */
const SLOW = { timeout: 300_000 };
const lineOf = (error: unknown): string => JSON.stringify(errorForLog(error));

test('the arguments of a Redis command that failed are not logged, its message and its cause are', async () => {
  const redis = new Redis(testRedisUrl());
  const error: unknown = await redis
    .call('HSET', 'events-1:42', 'data', 'ada@example.com', 'one too many')
    .catch((cause: unknown) => new Error('not added', { cause }));
  redis.disconnect();
  expect(inspect(error, { depth: 5 })).toContain('ada@example.com');
  const line = lineOf(error);
  expect(line).not.toContain('ada@example.com');
  expect(JSON.parse(line)).toMatchObject({
    type: 'Error',
    message: 'not added',
    stack: expect.stringContaining('not added') as string,
    cause: { message: expect.stringMatching(/hset/i) as string },
  });
});

test('the row that broke a constraint in Postgres is not logged, its code is', async () => {
  const { database } = await createTestDatabase();
  await sql`create table addresses (email text unique)`.execute(database);
  const error: unknown = await sql`
    insert into addresses values ('ada@example.com'), ('ada@example.com')`
    .execute(database)
    .catch((cause: unknown) => cause);
  expect(JSON.stringify(error)).toContain('ada@example.com');
  const line = lineOf(new AggregateError([error], 'several'));
  expect(line).not.toContain('ada@example.com');
  expect(JSON.parse(line)).toMatchObject({
    errors: [{ message: expect.stringContaining('unique') as string, code: '23505' }],
  });
});

test(
  'services at the finest log level log no credentials, signatures or data of people',
  SLOW,
  async () => {
    const endpoint = createServer((_, response) => response.writeHead(500).end('ada@example.com'));
    await new Promise<void>((resolve) => void endpoint.listen(0, '127.0.0.1', resolve));
    const fleet = await startFleet('redis', { LOG_LEVEL: 'trace' });
    const { intake, api, worker } = fleet;
    try {
      const basic = (name: string, password: string) =>
        `Basic ${Buffer.from(`${name}:${password}`).toString('base64')}`;
      const send = async (url: string, authorization: string, body: unknown, method = 'POST') => {
        const answer = await fetch(url, {
          method,
          headers: { authorization, 'content-type': 'application/json' },
          body: typeof body === 'string' ? body : JSON.stringify(body),
        });
        return { status: answer.status, text: await answer.text() };
      };
      const app = `Bearer ${DEMO.appKey}`;
      const made = await send(`${api.url}/v1/reporting_webhooks`, app, {
        name: 'log',
        endpoint: `http://user:hidden@127.0.0.1:${(endpoint.address() as AddressInfo).port}/hook?token=in-the-query`,
        events: ['customer_subscribed', 'customer_unsubscribed'],
      });
      expect(made.status, made.text).toBeLessThan(500);

      const track = basic(DEMO.siteId, DEMO.apiKey);
      const pipelines = basic(DEMO.writeKey, '');
      for (const unsubscribed of [true, false])
        await send(
          `${intake.url}/api/v1/customers/ada`,
          track,
          { email: 'ada@example.com', unsubscribed },
          'PUT',
        );
      await send(`${intake.url}/v1/identify`, pipelines, {
        userId: 'ada',
        traits: { phone: '+15550001' },
      });
      // Errors: broken bodies, wrong keys, unknown paths.
      await send(`${intake.url}/v1/identify`, pipelines, '{"traits":{"email":"ada@example.com"');
      await send(`${intake.url}/v1/identify`, basic('wrong_write_key', ''), { userId: 'ada' });
      await send(`${intake.url}/api/v1/customers/ada@example.com/nothing`, track, {});
      await send(`${api.url}/v1/customers/ada@example.com/attributes`, 'Bearer wrong_app_key', {});
      const account = `Bearer ${DEMO.accountToken}`;
      await send(`${api.url}/v1/accounts/${DEMO.accountId}/users`, account, {
        email: 'ada@example.com',
      });
      await vi.waitFor(async () => expect(await fleet.customer('ada')).toBeDefined(), WAIT);
      await fetch(`${api.url}/v1/accounts/${DEMO.accountId}`, {
        headers: { authorization: account },
      });
      await fetch(`${api.url}/v1/accounts/${DEMO.accountId}`, {
        headers: { authorization: account, 'x-request-id': 'followed-through' },
      });
      await Promise.all([intake, api, worker].map((service) => service.kill('SIGTERM')));
      // Operations committed in one process can be followed into the other, and a request by its id.
      const committed = intake.logs.flatMap(({ envelopeIds }) => envelopeIds ?? []);
      expect(committed.length).toBeGreaterThan(2);
      expect(committed).toEqual(
        expect.arrayContaining(worker.logs.flatMap(({ envelopeId }) => envelopeId ?? [])),
      );
      expect(worker.logs.filter(({ msg }) => msg === 'applied').length).toBeGreaterThan(0);
      expect(api.logs.filter(({ reqId }) => reqId === 'followed-through').length).toBeGreaterThan(
        0,
      );
      const logged = [intake, api, worker].map(({ logs }) => JSON.stringify(logs));
      for (const lines of logged) expect(lines.length).toBeGreaterThan(100);
      for (const secret of [
        DEMO.writeKey,
        DEMO.apiKey,
        DEMO.appKey,
        DEMO.accountToken,
        DEMO.signingKey,
        ...[
          'wrong_write_key',
          'wrong_app_key',
          'ada@example.com',
          '+15550001',
          'hidden',
          'in-the-query',
        ],
        ...[track, pipelines].map((header) => header.slice('Basic '.length)),
      ])
        for (const lines of logged) expect(lines).not.toContain(secret);
    } finally {
      await fleet.close();
      endpoint.close();
    }
  },
);
