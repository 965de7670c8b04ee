import { startCollectorUnderTest } from '@sluice/platform/testing/collector-under-test';
import { parseSettings } from '@sluice/platform/settings/config';
import { openTracer } from '@sluice/platform/telemetry/open-tracer';
import { tracingSettings, type Tracer } from '@sluice/platform/telemetry/tracing';
import { expect, onTestFinished, test } from 'vitest';

const SAMPLED = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
const UNSAMPLED = SAMPLED.replace(/01$/, '00');

const warnings: unknown[] = [];
const logger = { warn: (line: unknown) => void warnings.push(line) };

async function open(environment: Record<string, string>): Promise<Tracer> {
  const settings = parseSettings(tracingSettings, environment);
  const tracer = await openTracer(settings, 'sluice-test', logger);
  if (!tracer) throw new Error('traces are off');
  return tracer;
}

const start = (tracer: Tracer, parent: string) =>
  tracer.startSpan({ name: 'step', kind: 'server', parent, attributes: { 'sluice.n': 1 } });

test('headers for the collector that cannot be read are a setting that cannot be used', () => {
  for (const text of ['a=%zz', 'a', '=b'])
    expect(() => parseSettings(tracingSettings, { OTEL_EXPORTER_OTLP_HEADERS: text })).toThrow(
      'OTEL_EXPORTER_OTLP_HEADERS: must be name=value pairs, percent-encoded, separated by commas',
    );
});

test('OTEL_SERVICE_NAME is the name of the process in its traces', async () => {
  const collector = await startCollectorUnderTest();
  onTestFinished(() => collector.close());
  const tracer = await open({
    OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
    OTEL_SERVICE_NAME: 'intake-of-ours',
  });
  start(tracer, SAMPLED).end({});
  await tracer.close();
  expect(collector.spans).toMatchObject([{ service: 'intake-of-ours' }]);
});

test('without a collector there is no tracer', async () => {
  const settings = parseSettings(tracingSettings, { OTEL_TRACES_SAMPLER: 'always_on' });
  expect(await openTracer(settings, 'sluice-test', logger)).toBeUndefined();
});

test('a span goes on with the trace of its parent, links others, and reaches the collector as it ended', async () => {
  const collector = await startCollectorUnderTest();
  onTestFinished(() => collector.close());
  const tracer = await open({
    OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/`,
    OTEL_EXPORTER_OTLP_HEADERS: 'authorization=Bearer%20secret, x-tenant=7',
  });
  const first = start(tracer, SAMPLED);
  const second = start(tracer, 'no traceparent');
  first.link(second.traceparent ?? '');
  first.note('happened', {});
  first.end({ 'sluice.outcome': 'done' });
  second.end({}, 'broken');
  await tracer.close();
  const [one, other] = collector.spans;
  expect(one).toMatchObject({
    service: 'sluice-test',
    traceId: '0af7651916cd43dd8448eb211c80319c',
    parentSpanId: 'b7ad6b7169203331',
    attributes: { 'sluice.n': 1, 'sluice.outcome': 'done' },
    events: ['happened'],
    links: [other?.spanId],
    isFailed: false,
  });
  expect(first.traceparent).toBe(`00-${one?.traceId}-${one?.spanId}-01`);
  expect(other).toMatchObject({
    parentSpanId: '',
    attributes: { 'error.type': 'broken' },
    isFailed: true,
  });
  expect(other?.traceId).not.toBe(one?.traceId);
  expect(collector.headers[0]).toMatchObject({
    path: '/v1/traces',
    authorization: 'Bearer secret',
    'x-tenant': '7',
  });
});

test.each([
  ['parentbased_always_on', '1', true, false, true],
  ['parentbased_always_off', '1', true, false, false],
  ['parentbased_traceidratio', '0', true, false, false],
  ['traceidratio', '0', false, false, false],
  ['always_on', '1', true, true, true],
  ['always_off', '1', false, false, false],
])(
  '%s %s: sampled after a sampled parent %s, after an unsampled parent %s, without a parent %s',
  async (sampler, ratio, sampled, unsampled, none) => {
    const tracer = await open({
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
      OTEL_TRACES_SAMPLER: sampler,
      OTEL_TRACES_SAMPLER_ARG: ratio,
    });
    const isSampled = (parent: string) => start(tracer, parent).traceparent !== undefined;
    expect([SAMPLED, UNSAMPLED, ''].map(isSampled)).toEqual([sampled, unsampled, none]);
    await tracer.close();
  },
);

test('a collector that is away costs a line in the log', async () => {
  const tracer = await open({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' });
  start(tracer, '').end({});
  warnings.length = 0;
  await tracer.close();
  expect(JSON.stringify(warnings)).toContain('ECONNREFUSED');
});

test.each([
  '00-' + '0'.repeat(32) + '-b7ad6b7169203331-01',
  SAMPLED.toUpperCase(),
  `ff${SAMPLED.slice(2)}`,
])('a trace begins anew if the sender gives no valid place: %s', async (traceparent) => {
  const tracer = await open({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9' });
  expect(start(tracer, traceparent).traceparent?.slice(3, 35)).not.toBe(
    traceparent.slice(3, 35).toLowerCase(),
  );
  await tracer.close();
});
