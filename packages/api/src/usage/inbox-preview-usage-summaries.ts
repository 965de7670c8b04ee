/**
 * Inbox previews used, summed by time and by workspace or user.
 *
 * Steps are days, weeks or months (`account-billing.md` §4, Inbox previews). The sums are equal to the log's
 * (`inbox-preview-usage-log.ts`).
 */
import { listBalances } from '@sluice/database/credits/credit-reads';
import { sumUsage } from '@sluice/database/credits/inbox-preview-usage-reads';
import {
  bucketsOf,
  countBuckets,
  GRANULARITIES,
  summarizeUsage,
  type UsageSums,
} from '@sluice/domain/billing/usage-summary';
import { z } from 'zod';
import { billingAccountOf, isPaidPlan } from '../billing/billing.ts';
import type { BillingEffects } from '../billing/billing-effects.ts';
import { accountParams, poolShape, poolsToWire } from '../billing/billing-shapes.ts';
import { accountFailures } from '../http/fields.ts';
import type { ApiServer } from '../http/api-server.ts';
import { readsOf } from '../http/replica-reads.ts';
import {
  namesOf,
  rangeOf,
  rangeShape,
  refusedParameter,
  requireOwnWorkspace,
  usageQuery,
} from './usage-query.ts';

/** Of one answer: buckets of all groups together. About 10 MB. */
const POINTS_MAX = 100_000;

const sums = { used: z.int(), refunded: z.int(), net: z.int() };
const point = z
  .object({ bucket_start: z.string(), bucket_end: z.string(), ...sums })
  .meta({ id: 'UsagePoint', description: 'Both days included.' });

const summariesShape = z.object({
  range: z.object({ ...rangeShape, granularity: z.enum(GRANULARITIES) }),
  totals: z.object({ ...sums, runs: z.int() }),
  series: z.array(point),
  groups: z
    .array(
      z.object({
        key: z.union([
          z.object({ environment_id: z.int() }),
          z.object({ user_id: z.int().nullable() }),
        ]),
        name: z.string().nullable(),
        ...sums,
        series: z.array(point),
      }),
    )
    .optional(),
  credit_balance: z.object({ pools: z.array(poolShape) }),
  rollup_through: z.string().nullable().meta({
    description: 'The last day that is summed up; later ones are added up run by run.',
  }),
});

export function registerInboxPreviewUsageSummaries(
  scope: ApiServer,
  { database, now }: Pick<BillingEffects, 'database' | 'now'>,
): void {
  scope.get(
    '/v1/accounts/:account_id/billing/inbox_previews/usage_summaries',
    {
      config: { access: { role: 'member' }, mayLag: true },
      schema: {
        tags: ['billing'],
        summary: 'Usage, summed up',
        description:
          'One point a bucket, also without usage. Weeks begin on Monday, the first and the last bucket are cut to the range. Totals are the sum of the series and of the groups. The credit balance is of the whole account.',
        params: accountParams,
        querystring: z.object({
          ...usageQuery,
          granularity: z.enum(GRANULARITIES).default('month'),
          group_by: z.enum(['none', 'workspace', 'user']).default('none'),
        }),
        response: {
          200: summariesShape,
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const { granularity, group_by: groupBy, environment_id: environmentId } = request.query;
      const reads = readsOf(request, database);
      const account = await billingAccountOf(request, reads);
      const { accountId } = account;
      const nowMs = now();
      const range = rangeOf(request.query, nowMs);
      await requireOwnWorkspace(reads, accountId, environmentId);
      requirePoints(countBuckets(range, granularity));
      const buckets = bucketsOf(range, granularity);
      const filter = { accountId, ...range, environmentId, userId: undefined };
      const starts = buckets.map((bucket) => bucket.start);
      const [{ cells, closedThrough }, balances] = await Promise.all([
        sumUsage(reads, filter, starts, groupBy),
        listBalances(reads, accountId, ['inbox_previews']),
      ]);
      if (groupBy !== 'none')
        requirePoints(buckets.length * new Set(cells.map((cell) => cell.group)).size);
      const summary = summarizeUsage(cells, buckets.length);
      const seriesToWire = (series: readonly UsageSums[]) =>
        series.map((each, index) => ({
          bucket_start: buckets[index]?.start ?? '',
          bucket_end: buckets[index]?.end ?? '',
          ...sumsToWire(each),
        }));
      const isByUser = groupBy === 'user';
      const names =
        groupBy === 'none'
          ? undefined
          : await namesOf(
              request,
              reads,
              accountId,
              summary.groups.map(({ key }) => ({
                environmentId: isByUser ? null : key,
                userId: isByUser ? key : null,
              })),
            );
      const grants = balances.get('inbox_previews') ?? [];
      return reply.send({
        range: { ...range, granularity },
        totals: { ...sumsToWire(summary.totals), runs: summary.totals.runs },
        series: seriesToWire(summary.series),
        ...(names && {
          groups: summary.groups.map((group) => ({
            key: isByUser ? { user_id: group.key } : { environment_id: group.key ?? 0 },
            name: (isByUser ? names.users : names.workspaces).get(group.key ?? 0) ?? null,
            ...sumsToWire(group),
            series: seriesToWire(group.series),
          })),
        }),
        credit_balance: { pools: poolsToWire(grants, nowMs, isPaidPlan(account)) },
        rollup_through: closedThrough,
      });
    },
  );
}

function requirePoints(count: number): void {
  if (count <= POINTS_MAX) return;
  throw refusedParameter(
    'granularity',
    `is too fine for this range: ${count} points, at most ${POINTS_MAX} are given`,
  );
}

const sumsToWire = ({ used, refunded }: UsageSums) => ({ used, refunded, net: used - refunded });
