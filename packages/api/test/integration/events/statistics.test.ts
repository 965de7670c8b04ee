/** Counts over time: the workers' rows are added up by step, by name and by webhook, of one's own workspace alone. */
import {
  deleteOldMinutes,
  writeMinutes,
  type EventMinute,
} from '@sluice/database/maintenance/minute-statistics';
import { LATENCY_CLASS_COUNT } from '@sluice/domain/delivery/latency-counts';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

let api: ApiUnderTest;
const at = (time: string): number => Date.parse(`2026-03-01T${time}Z`);

beforeAll(async () => {
  api = await startApi();
  const { environmentId } = api.a;
  const events = (name: string, time: string, accepted: number, refused = 0): EventMinute => ({
    ...{ environmentId, name, minuteMs: at(time), accepted, refused },
  });
  const latencyCounts = (counts: Record<number, number>): number[] =>
    Array.from({ length: LATENCY_CLASS_COUNT }, (_, place) => counts[place] ?? 0);
  const sent = (
    webhookId: number,
    time: string,
    delivered: number,
    failed: number,
    counts: Record<number, number>,
  ) => ({
    ...{ environmentId, webhookId, minuteMs: at(time), delivered, failed },
    latencyCounts: latencyCounts(counts),
  });
  const written = [
    events('', '11:30:00', 5, 2),
    events('Order', '11:30:00', 4),
    events('pipelines.track', '11:30:00', 0, 2),
    events('', '11:31:00', 3),
    events('', '10:59:00', 9),
  ];
  await writeMinutes(api.database, 'one', written, [
    sent(0, '11:30:00', 90, 10, { 3: 50, 6: 49, 10: 1 }),
    sent(1, '11:30:00', 90, 10, { 3: 50, 6: 49, 10: 1 }),
  ]);
  // Of a worker whose answer was lost: the same minutes again, and one has grown.
  await writeMinutes(api.database, 'one', [...written, events('', '11:32:00', 1)], []);
  await writeMinutes(
    api.database,
    'two',
    [events('', '11:30:00', 7), events('Order', '11:30:00', 6)],
    [sent(0, '11:30:00', 5, 0, { 3: 5 }), sent(2, '11:30:00', 5, 0, { 3: 5 })],
  );
  await writeMinutes(
    api.database,
    'two',
    [{ ...events('', '11:30:00', 1_000), environmentId: api.b.environmentId }],
    [],
  );
});
afterAll(() => api.close());

const read = async (query: Record<string, string>, key = api.a.key) => {
  const answer = await api.call('GET', '/v1/statistics', { query, key });
  expect({ status: answer.statusCode, body: answer.body }).toMatchObject({ status: 200 });
  return answer.json<{
    from: string;
    series: {
      name: string | null;
      webhook_id: number | null;
      points: { at: string; value: number }[];
    }[];
  }>();
};
const pointsOf = ({ series }: Awaited<ReturnType<typeof read>>, place = 0) =>
  series[place]?.points.map(({ at: time, value }) => [time.slice(11, 16), value]);

test('the last hour by the minute, of all processes, and each write counts once', async () => {
  expect(pointsOf(await read({ metric: 'events' }))).toEqual([
    ['11:30', 12],
    ['11:31', 3],
    ['11:32', 1],
  ]);
  expect(pointsOf(await read({ metric: 'refused' }))).toEqual([['11:30', 2]]);
});

test('longer steps begin at their multiples, and the first is whole', async () => {
  const hours = await read({ metric: 'events', step: '1h', from: '2026-03-01T10:59:30Z' });
  expect(hours.from).toBe('2026-03-01T10:00:00.000Z');
  expect(pointsOf(hours)).toEqual([
    ['10:00', 9],
    ['11:00', 16],
  ]);
  const range = { from: '2026-03-01T11:31:00Z', to: '2026-03-01T11:32:00Z' };
  expect(pointsOf(await read({ metric: 'events', ...range }))).toEqual([['11:31', 3]]);
});

test('by name, by webhook, of one webhook', async () => {
  const names = await read({ metric: 'events', by: 'name' });
  expect(names.series.map(({ name }) => name)).toEqual(['Order']);
  expect(pointsOf(names)).toEqual([['11:30', 10]]);
  expect((await read({ metric: 'refused', by: 'name' })).series.map(({ name }) => name)).toEqual([
    'pipelines.track',
  ]);
  expect(pointsOf(await read({ metric: 'delivered' }))).toEqual([['11:30', 95]]);
  const webhooks = await read({ metric: 'delivered', by: 'webhook' });
  expect(webhooks.series.map(({ webhook_id: id }) => id)).toEqual([1, 2]);
  expect(pointsOf(await read({ metric: 'failed', webhook_id: '1' }))).toEqual([['11:30', 10]]);
  expect((await read({ metric: 'failed', webhook_id: '9' })).series).toEqual([]);
});

test('percentiles are of all processes together', async () => {
  const [[, p50] = []] = pointsOf(await read({ metric: 'latency_p50' })) ?? [];
  const [[, p99] = []] = pointsOf(await read({ metric: 'latency_p99' })) ?? [];
  // 55 of 105 took 4 to 8 ms, 49 took 32 to 64, one took 512 to 1,024.
  expect(p50).toBeGreaterThan(4);
  expect(p50).toBeLessThanOrEqual(8);
  expect(p99).toBeGreaterThan(32);
  expect(p99).toBeLessThanOrEqual(64);
});

test('a neighbour sees its own counts alone', async () => {
  expect(pointsOf(await read({ metric: 'events' }, api.b.key))).toEqual([['11:30', 1_000]]);
  expect((await read({ metric: 'delivered' }, api.b.key)).series).toEqual([]);
});

test.each([
  ['metric=events&from=2026-03-01T12:00:00Z', 'from', 'from must be before to'],
  ['metric=events&from=2026-01-01T00:00:00Z', 'from', 'from must be within the last 30 days'],
  [
    'metric=events&from=2026-02-20T00:00:00Z',
    'step',
    'step must be longer: a chart has at most 1500 steps',
  ],
  ['metric=events&by=webhook', 'by', 'by of events must be name'],
  ['metric=delivered&by=name', 'by', 'by of delivered must be webhook'],
  [
    'metric=events&webhook_id=1',
    'webhook_id',
    'webhook_id must stand with delivered, failed or latency, without by',
  ],
  [
    'metric=events&step=1h&by=name&from=2026-02-20T00:00:00Z',
    'from',
    'from must be at most 7 days before to, by name',
  ],
])('%s is 400 and names the field', async (query, field, message) => {
  const answer = await api.call('GET', `/v1/statistics?${query}`);
  expect(expectProblem(answer, 400, 'invalid_request').errors).toMatchObject([{ field, message }]);
});

test('old minutes are deleted in steps, and newer ones stay', async () => {
  expect(await deleteOldMinutes(api.database, new Date(at('11:30:00')), 100)).toBe(1);
  expect(await deleteOldMinutes(api.database, new Date(at('11:30:00')), 100)).toBe(0);
  const all = { metric: 'events', step: '1h', from: '2026-03-01T10:00:00Z' };
  expect(pointsOf(await read(all))).toEqual([['11:00', 16]]);
});
