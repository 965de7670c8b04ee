/** Without traces, no part of them is loaded, written or sent. */
import { createTestDatabase } from '@sluice/database/testing/testing';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { testRedisUrl } from '@sluice/platform/testing/testing';
import { Redis } from 'ioredis';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';
import { mainOf, startFleet, WAIT } from '../fleet-under-test.ts';
import { addWebhook, callApi, identify, newSender, SLOW, startEndpoint } from './traced-calls.ts';

/** A process that so much as asks for OpenTelemetry’s SDK ends; prom-client has its API along, which has no effect. */
const NO_OPEN_TELEMETRY = `--import=data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  registerHooks({
    resolve(specifier, context, next) {
      if (/open-telemetry|@opentelemetry\\/(?!api)/.test(specifier))
        throw new Error('loaded: ' + specifier);
      return next(specifier, context);
    },
  });`)}`;

test(
  'without a collector, services load no part of OpenTelemetry, and commit batches have no trace field',
  SLOW,
  async () => {
    const endpoint = await startEndpoint();
    onTestFinished(() => endpoint.close());
    const fleet = await startFleet('redis', { NODE_OPTIONS: NO_OPEN_TELEMETRY });
    onTestFinished(() => fleet.close());
    const { traceparent } = newSender();
    await addWebhook(fleet, endpoint);
    expect(await identify(fleet, 'ada', { traceparent })).toBe(200);
    await vi.waitFor(() => expect(endpoint.requests).toHaveLength(1), WAIT);
    expect(endpoint.requests[0]).not.toHaveProperty('traceparent');
    const { rows } = await sql<{ traceparent: string | null }>`
    select traceparent from envelopes`.execute(fleet.database);
    expect(rows).toEqual([{ traceparent: null }]);

    const file = {
      name: 'a',
      type: 'event',
      identifier: 'id',
      data_file_url: 'https://localhost/',
    };
    expect((await callApi(fleet, '/v1/imports', { import: file }, { traceparent })).status).toBe(
      200,
    );
    const { rows: imports } = await sql<{ traceparent: string | null }>`
    select traceparent from imports`.execute(fleet.database);
    expect(imports).toEqual([{ traceparent: null }]);

    await fleet.worker.kill('SIGTERM');
    expect(await identify(fleet, 'ada', { traceparent })).toBe(200);
    const redis = new Redis(testRedisUrl());
    onTestFinished(() => redis.disconnect());
    // Intake writes it to its disk first if Redis is slow.
    const queued = await vi.waitFor(async () => {
      const found = await readQueued(redis, fleet.queuePrefix);
      expect(found).toHaveLength(1);
      return found;
    }, WAIT);
    expect(queued.map((commitBatch) => Object.keys(commitBatch).toSorted())).toEqual([
      ['id', 'operations'],
    ]);
  },
);

test.each(['intake', 'api', 'worker'])(
  'with a collector, %s does not start where nothing of it must be loaded',
  SLOW,
  async (service) => {
    const start = startServiceUnderTest(mainOf(service), {
      DATABASE_URL: (await createTestDatabase()).url,
      NODE_OPTIONS: NO_OPEN_TELEMETRY,
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
    });
    await expect(start).rejects.toThrow('loaded: ./open-telemetry.ts');
  },
);

async function readQueued(redis: Redis, prefix: string): Promise<object[]> {
  const keys = await redis.keys(`{${prefix}-events-*}:*:*`);
  const jobs = await Promise.all(
    keys.map(async (key) =>
      (await redis.type(key)) === 'hash' ? await redis.hget(key, 'data') : null,
    ),
  );
  return jobs.flatMap((data) => (data === null ? [] : [JSON.parse(data) as object]));
}
