/**
 * `GET /v1/statistics`: counts by minute or by longer steps, for charts. They come from the workers' memory, written
 * every ten seconds (`database/src/maintenance/minute-statistics.ts`): after a worker was killed its last ten seconds
 * are missing. Charges are counted elsewhere.
 */
import type { Database } from '@sluice/database/connection/connection';
import {
  ALL_NAMES,
  ALL_WEBHOOKS,
  type DeliveryStep,
  listBusyWebhooks,
  listDeliverySteps,
  listEventSteps,
  type StatisticsRange,
} from '@sluice/database/maintenance/minute-statistics';
import { latencyPercentileMs } from '@sluice/domain/delivery/latency-counts';
import { parseRfc3339Ms } from '@sluice/domain/parsing/rfc3339';
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';
import { z } from 'zod';
import { environmentOf } from '../auth/authenticate.ts';
import type { ApiServer } from '../http/api-server.ts';
import { sendProblem } from '../http/error-handling.ts';
import { badRequest, commonFailures, instant } from '../http/fields.ts';
import { invalidRequest } from '../http/problem.ts';
import { readsOf } from '../http/replica-reads.ts';
import { integerInQuery, readFromText } from '../http/text-value.ts';

export interface StatisticsEffects {
  readonly database: Database;
  readonly now: () => number;
}

const METRICS = ['events', 'refused', 'delivered', 'failed', 'latency_p50', 'latency_p99'] as const;
type Metric = (typeof METRICS)[number];

/** In seconds. */
const STEPS = { '1m': 60, '5m': 300, '1h': 3_600, '1d': 86_400 } as const;
const KEPT_MS = 30 * 86_400_000;
const STEP_COUNT_MAX = 1_500;
const HOUR_MS = 3_600_000;
/** All rows of the names are read, so a chart of them goes back less far. */
const NAMES_RANGE_MS_MAX = 7 * 86_400_000;

const time = readFromText(
  (value) => parseRfc3339Ms(value, 'down'),
  'datetime',
  'must be a time that exists, as RFC 3339 writes it: 2026-03-01T12:00:00Z',
);

const query = z.strictObject({
  metric: z.enum(METRICS),
  step: z.enum(Object.keys(STEPS) as [keyof typeof STEPS]).default('1m'),
  from: time.optional().meta({ description: 'An hour before `to` by default.' }),
  to: time.optional().meta({ description: 'Now by default.' }),
  by: z.enum(['name', 'webhook']).optional(),
  webhook_id: integerInQuery(1, INTEGER_MAX).optional(),
});

const statistics = z.object({
  metric: z.enum(METRICS),
  step_seconds: z.int(),
  from: instant,
  to: instant,
  series: z.array(
    z.object({
      name: z.string().nullable().meta({
        description: 'Null: of all names. Of refused calls: the kind of call.',
      }),
      webhook_id: z.int().nullable(),
      points: z.array(z.object({ at: instant, value: z.number() })).meta({
        description: 'Counts, or milliseconds. A step without a value is left out.',
      }),
    }),
  ),
});

type Series = z.infer<typeof statistics>['series'][number];

export function registerStatistics(app: ApiServer, { database, now }: StatisticsEffects): void {
  app.get(
    '/v1/statistics',
    {
      config: { mayLag: true },
      schema: {
        tags: ['events'],
        summary: 'Counts and latencies over time',
        description: `Of the last 30 days, in at most ${STEP_COUNT_MAX.toLocaleString('en')} steps; by name, at most 7 days. \`by\` is \`name\` for events and refused calls, \`webhook\` for the others. \`webhook_id\` is for these alone, without \`by\`.`,
        querystring: query,
        response: { 200: statistics, ...badRequest, ...commonFailures },
      },
    },
    async (request, reply) => {
      const environmentId = environmentOf(request);
      const { metric, step, by, webhook_id: webhookId } = request.query;
      const range = rangeOf(request.query, STEPS[step], now());
      const reads = readsOf(request, database);
      const refusal = whyRefused(request.query, range, now());
      if (refusal) return sendProblem(request, reply, refusal);
      const series =
        metric === 'events' || metric === 'refused'
          ? await eventSeries(reads, environmentId, range, metric, by === 'name')
          : deliverySeries(
              await listDeliverySteps(
                reads,
                environmentId,
                range,
                await webhooksOf(reads, environmentId, range, by === 'webhook', webhookId),
              ),
              metric,
            );
      return reply.send({
        metric,
        step_seconds: range.stepSeconds,
        from: new Date(range.fromMs).toISOString(),
        to: new Date(range.toMs).toISOString(),
        series,
      });
    },
  );
}

/** Default: the last hour. A range begins with a step, so that its first point is whole. */
function rangeOf(
  { from, to }: { readonly from?: number | undefined; readonly to?: number | undefined },
  stepSeconds: number,
  nowMs: number,
): StatisticsRange {
  const toMs = to ?? nowMs;
  const stepMs = stepSeconds * 1_000;
  return { fromMs: Math.floor((from ?? toMs - HOUR_MS) / stepMs) * stepMs, toMs, stepSeconds };
}

function whyRefused(
  { metric, by, webhook_id: webhookId }: z.infer<typeof query>,
  { fromMs, toMs, stepSeconds }: StatisticsRange,
  nowMs: number,
) {
  const isOfEvents = metric === 'events' || metric === 'refused';
  const refuse = (field: string, message: string) =>
    invalidRequest([{ field, reason: 'invalid', message, source: { parameter: field } }]);
  if (fromMs >= toMs) return refuse('from', 'from must be before to');
  if (fromMs < nowMs - KEPT_MS - stepSeconds * 1_000)
    return refuse('from', 'from must be within the last 30 days');
  if (toMs - fromMs > STEP_COUNT_MAX * stepSeconds * 1_000)
    return refuse('step', `step must be longer: a chart has at most ${STEP_COUNT_MAX} steps`);
  if (by === 'name' && !isOfEvents) return refuse('by', `by of ${metric} must be webhook`);
  if (by === 'webhook' && isOfEvents) return refuse('by', `by of ${metric} must be name`);
  if (webhookId !== undefined && (isOfEvents || by !== undefined))
    return refuse(
      'webhook_id',
      'webhook_id must stand with delivered, failed or latency, without by',
    );
  if (by === 'name' && toMs - fromMs > NAMES_RANGE_MS_MAX)
    return refuse('from', 'from must be at most 7 days before to, by name');
  return undefined;
}

async function eventSeries(
  database: Database,
  environmentId: number,
  range: StatisticsRange,
  metric: 'events' | 'refused',
  byName: boolean,
): Promise<Series[]> {
  const of = metric === 'events' ? 'accepted' : 'refused';
  const steps = await listEventSteps(database, environmentId, range, of, byName);
  const byNames = Map.groupBy(steps, ({ name }) => name);
  return [...byNames].map(([name, rows]) => ({
    name: name === ALL_NAMES ? null : name,
    webhook_id: null,
    points: rows
      .filter((row) => row[of] > 0)
      .map((row) => ({ at: row.at.toISOString(), value: row[of] })),
  }));
}

async function webhooksOf(
  database: Database,
  environmentId: number,
  range: StatisticsRange,
  byWebhook: boolean,
  webhookId: number | undefined,
): Promise<readonly number[]> {
  if (webhookId !== undefined) return [webhookId];
  return byWebhook ? listBusyWebhooks(database, environmentId, range) : [ALL_WEBHOOKS];
}

function deliverySeries(
  steps: readonly DeliveryStep[],
  metric: Exclude<Metric, 'events' | 'refused'>,
): Series[] {
  const valueOf = ({ delivered, failed, latencyCounts }: DeliveryStep): number | undefined => {
    if (metric === 'delivered') return delivered || undefined;
    if (metric === 'failed') return failed || undefined;
    const ms = latencyPercentileMs(latencyCounts, metric === 'latency_p50' ? 0.5 : 0.99);
    return ms === undefined ? undefined : Math.round(ms * 10) / 10;
  };
  const byWebhooks = Map.groupBy(steps, ({ webhookId }) => webhookId);
  return [...byWebhooks].map(([webhookId, rows]) => ({
    name: null,
    webhook_id: webhookId === ALL_WEBHOOKS ? null : webhookId,
    points: rows.flatMap((row) => {
      const value = valueOf(row);
      return value === undefined ? [] : [{ at: row.at.toISOString(), value }];
    }),
  }));
}
