/** One event's way as one trace: through the processes that operators run, to a collector that really listens. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DEMO } from '@sluice/database/seed-demo';
import { createTestDatabase } from '@sluice/database/testing';
import { startCollectorUnderTest, type CollectedSpan } from '@sluice/platform/collector-under-test';
import { startServiceUnderTest } from '@sluice/platform/service-under-test';
import { testRedisUrl } from '@sluice/platform/testing';
import { Redis } from 'ioredis';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';
import { mainOf, startFleet, WAIT, type Fleet } from './fleet-under-test.ts';

const SENDER = { traceId: '0af7651916cd43dd8448eb211c80319c', spanId: 'b7ad6b7169203331' };
/** Processes start slowly on a machine that is shared. */
const SLOW = { timeout: 120_000 };
const TRACEPARENT = `00-${SENDER.traceId}-${SENDER.spanId}-01`;

/** A process that so much as asks for OpenTelemetry’s SDK ends; prom-client has its API along, which does nothing. */
const NO_OPEN_TELEMETRY = `--import=data:text/javascript,${encodeURIComponent(`
  import { registerHooks } from 'node:module';
  registerHooks({
    resolve(specifier, context, next) {
      if (/open-telemetry|@opentelemetry\\/(?!api)/.test(specifier))
        throw new Error('loaded: ' + specifier);
      return next(specifier, context);
    },
  });`)}`;

async function startEndpoint() {
  const requests: IncomingHttpHeaders[] = [];
  const server = createServer((request, response) => {
    requests.push(request.headers);
    request.resume().on('end', () => response.end());
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return { requests, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` };
}

async function startTraced(more: Readonly<Record<string, string>>): Promise<Fleet> {
  const fleet = await startFleet('redis', more);
  onTestFinished(() => fleet.close());
  return fleet;
}

/** Tells of Ada, whose leaving is reported to the endpoint. */
async function tellOf(fleet: Fleet, endpoint: string, headers: Record<string, string>) {
  const made = await fetch(`${fleet.api.url}/v1/reporting_webhooks`, {
    method: 'POST',
    headers: { authorization: `Bearer ${DEMO.appKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'traced', endpoint, events: ['customer_unsubscribed'] }),
  });
  expect(made.status).toBe(200);
  const identified = await identify(fleet, headers);
  expect(identified).toBe(200);
}

async function identify(fleet: Fleet, headers: Record<string, string>): Promise<number> {
  const key = Buffer.from(`${DEMO.writeKey}:`).toString('base64');
  const { status } = await fetch(`${fleet.intake.url}/v1/identify`, {
    method: 'POST',
    headers: { authorization: `Basic ${key}`, 'x-strict-mode': '1', ...headers },
    body: JSON.stringify({
      userId: 'ada',
      traits: { email: 'ada@example.com', unsubscribed: true },
    }),
  });
  return status;
}

test(
  'one call is one trace, from its sender to the endpoint that is told of it',
  SLOW,
  async () => {
    const collector = await startCollectorUnderTest();
    onTestFinished(() => collector.close());
    const endpoint = await startEndpoint();
    const fleet = await startTraced({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url });
    await tellOf(fleet, endpoint.url, { traceparent: TRACEPARENT });

    const path = [
      'intake pipelines.identify',
      'commit envelope',
      'process envelope',
      'deliver webhook',
    ];
    const spans = await vi.waitFor(() => {
      const found = path.map((name) => collector.spans.filter((span) => span.name === name));
      expect(found.map(({ length }) => length)).toEqual([1, 1, 1, 1]);
      return found.flat();
    }, WAIT);
    expect(spans.map(({ traceId }) => traceId)).toEqual(path.map(() => SENDER.traceId));
    expect(spans.map(({ parentSpanId }) => parentSpanId)).toEqual([
      SENDER.spanId,
      ...spans.slice(0, -1).map(({ spanId }) => spanId),
    ]);
    expect(spans.map(({ service }) => service)).toEqual([
      'sluice-intake',
      'sluice-intake',
      'sluice-worker',
      'sluice-worker',
    ]);
    const [call, commit, processing, delivery] = spans as [
      CollectedSpan,
      CollectedSpan,
      CollectedSpan,
      CollectedSpan,
    ];
    expect(call.attributes).toMatchObject({ 'sluice.outcome': 'accepted' });
    expect(commit.attributes['sluice.envelope_id']).toBe(
      processing.attributes['sluice.envelope_id'],
    );
    expect(processing).toMatchObject({
      attributes: { 'sluice.outcome': 'applied', 'sluice.operations': 1 },
      events: ['reports logged'],
    });
    expect(delivery.attributes).toMatchObject({
      'sluice.outcome': 'delivered',
      'http.response.status_code': 200,
      'sluice.event_type': 'customer_unsubscribed',
    });
    // The endpoint can go on with the trace; what is signed is beside it.
    expect(endpoint.requests).toHaveLength(1);
    expect(endpoint.requests[0]).toMatchObject({
      traceparent: `00-${SENDER.traceId}-${delivery.spanId}-01`,
      'x-svc-signature': expect.stringMatching(/^[0-9a-f]{64}$/) as string,
    });
    for (const secret of ['ada', DEMO.writeKey, DEMO.signingKey, endpoint.url])
      expect(collector.text()).not.toContain(secret);
  },
);

test(
  'without a collector nothing of OpenTelemetry is loaded, and envelopes are as they were before',
  SLOW,
  async () => {
    const endpoint = await startEndpoint();
    const fleet = await startTraced({ NODE_OPTIONS: NO_OPEN_TELEMETRY });
    await tellOf(fleet, endpoint.url, { traceparent: TRACEPARENT });
    await vi.waitFor(() => expect(endpoint.requests).toHaveLength(1), WAIT);
    expect(endpoint.requests[0]).not.toHaveProperty('traceparent');
    const { rows } = await sql<{ traceparent: string | null }>`
    select traceparent from envelopes`.execute(fleet.database);
    expect(rows).toEqual([{ traceparent: null }]);

    await fleet.worker.kill('SIGTERM');
    expect(await identify(fleet, { traceparent: TRACEPARENT })).toBe(200);
    const redis = new Redis(testRedisUrl());
    onTestFinished(() => redis.disconnect());
    const queued = await readQueued(redis, fleet.queuePrefix);
    expect(queued).toHaveLength(1);
    expect(queued.map((envelope) => Object.keys(envelope).toSorted())).toEqual([
      ['id', 'operations'],
    ]);
  },
);

test(
  'the same process with a collector does not start where it must not be loaded',
  SLOW,
  async () => {
    const start = startServiceUnderTest(mainOf('worker'), {
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
