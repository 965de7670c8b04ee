/**
 * The log of inbox previews used (`account-billing.md` §4, Inbox previews): recent days run by run, older ones from
 * their sums. Summaries of the same are in `inbox-preview-usage-summaries.ts`.
 */
import {
  listUsage,
  type UsageEntry,
  type UsageNames,
  type UsagePosition,
} from '@sluice/database/credits/inbox-preview-usage-reads';
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';
import { z } from 'zod';
import { accountCallerOf } from '../auth/account-guard.ts';
import { integerInQuery } from '../http/text-value.ts';
import { accountParams } from '../billing/billing-shapes.ts';
import type { BillingEffects } from '../billing/billing-effects.ts';
import { accountFailures } from '../http/fields.ts';
import { invalidRequest } from '../http/problem.ts';
import { RequestRefused } from '../http/request-validation.ts';
import type { ApiServer } from '../http/api-server.ts';
import { readUsageCursor, writeUsageCursor, type UsageCursor } from './usage-cursor.ts';
import {
  namesOf,
  rangeOf,
  rangeShape,
  refusedParameter,
  requireOwnWorkspace,
  usageQuery,
} from './usage-query.ts';

const LIMIT_DEFAULT = 50;
const LIMIT_MAX = 200;
/** Twice the length of a cursor with the longest id of a job. */
const CURSOR_LENGTH_MAX = 1_000;

const logQuery = z.object({
  ...usageQuery,
  user_id: integerInQuery(1, INTEGER_MAX).optional(),
  sort: z.enum(['date']).default('date'),
  order: z.enum(['desc', 'asc']).default('desc').meta({ description: 'desc: newest first.' }),
  cursor: z
    .string()
    .max(CURSOR_LENGTH_MAX)
    .optional()
    .meta({ description: 'The `next_cursor` of a page, with the same filters, within a day.' }),
  limit: integerInQuery(1, LIMIT_MAX)
    .default(LIMIT_DEFAULT)
    .meta({ description: `Entries a page; ${LIMIT_DEFAULT} by default.` }),
});

const entryShape = z
  .object({
    source: z.enum(['run', 'rollup']).meta({
      description:
        '`run` is one preview run of a recent day. `rollup` is the usage of one user in one workspace on an older day.',
    }),
    date: z.string().meta({ format: 'date' }),
    occurred_at: z.string().nullable(),
    preview_job_id: z.string().optional(),
    quantity: z.int(),
    refunded: z.int(),
    net: z.int(),
    environment_id: z.int(),
    workspace_name: z.string().nullable(),
    user_id: z.int().nullable(),
    run_by_name: z.string().nullable(),
  })
  .meta({ id: 'UsageLogEntry' });

export function registerInboxPreviewUsageLog(
  scope: ApiServer,
  { database, secret, now }: Pick<BillingEffects, 'database' | 'secret' | 'now'>,
): void {
  scope.get(
    '/v1/accounts/:account_id/billing/inbox_previews/usage_log',
    {
      config: { access: { role: 'member' } },
      schema: {
        tags: ['billing'],
        summary: 'Usage, entry by entry',
        description:
          'Recent days run by run, older ones by user and workspace; no day both ways. `total` counts the entries of the whole range. `next_cursor` is null on the last page.',
        params: accountParams,
        querystring: logQuery,
        response: {
          200: z.object({
            entries: z.array(entryShape),
            total: z.int(),
            next_cursor: z.string().nullable(),
            range: z.object(rangeShape),
          }),
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const { accountId } = accountCallerOf(request);
      const { limit, order, cursor: given } = request.query;
      const { start, end, environment_id: environmentId, user_id: userId } = request.query;
      const filters = { start, end, environmentId, userId, order };
      const nowMs = now();
      const cursor =
        given === undefined || given === ''
          ? undefined
          : cursorOf(secret, accountId, filters, given, nowMs);
      const range = cursor ?? rangeOf(request.query, nowMs);
      await requireOwnWorkspace(database, accountId, environmentId);
      const log = await listUsage(
        database,
        { accountId, start: range.start, end: range.end, environmentId, userId },
        {
          order,
          after: cursor?.after,
          closedThrough: cursor?.closedThrough ?? undefined,
          limit: limit + 1,
        },
      );
      const entries = log.entries.slice(0, limit);
      const names = await namesOf(request, database, accountId, entries);
      const last = entries.at(-1);
      return reply.send({
        entries: entries.map((entry) => entryToWire(entry, names)),
        total: log.total,
        next_cursor:
          last === undefined || log.entries.length <= limit
            ? null
            : writeUsageCursor(secret, accountId, filters, {
                begunAtMs: cursor?.begunAtMs ?? nowMs,
                start: range.start,
                end: range.end,
                closedThrough: log.closedThrough,
                after: positionOf(last),
              }),
        range: { start: range.start, end: range.end },
      });
    },
  );
}

/** @throws RequestRefused if it is not the cursor of this log. */
function cursorOf(...given: Parameters<typeof readUsageCursor>): UsageCursor {
  const read = readUsageCursor(...given);
  switch (read.outcome) {
    case 'read':
      return read.cursor;
    case 'malformed':
      throw new RequestRefused(
        invalidRequest([cursorDetail('must be the next_cursor of an earlier page')]),
      );
    case 'expired':
      throw refusedParameter('cursor', 'has expired; begin again without it');
    case 'mismatch':
      throw new RequestRefused({
        code: 'cursor_mismatch',
        message: 'cursor belongs to other filters; send the same filters, or no cursor',
        details: [cursorDetail('belongs to other filters; send the same filters, or no cursor')],
      });
  }
}

const cursorDetail = (message: string) => ({
  field: 'cursor',
  reason: 'invalid',
  message: `cursor ${message}`,
  source: { parameter: 'cursor' },
});

const positionOf = (entry: UsageEntry): UsagePosition =>
  entry.source === 'run'
    ? {
        source: 'run',
        day: entry.day,
        recordedAtMs: entry.recordedAt.getTime(),
        previewJobId: entry.previewJobId,
      }
    : {
        source: 'rollup',
        day: entry.day,
        environmentId: entry.environmentId,
        userId: entry.userId,
      };

const entryToWire = (entry: UsageEntry, names: UsageNames): z.infer<typeof entryShape> => ({
  source: entry.source,
  date: entry.day,
  occurred_at: entry.source === 'run' ? entry.recordedAt.toISOString() : null,
  ...(entry.source === 'run' && { preview_job_id: entry.previewJobId }),
  quantity: entry.quantity,
  refunded: entry.refunded,
  net: entry.quantity - entry.refunded,
  environment_id: entry.environmentId,
  workspace_name: names.workspaces.get(entry.environmentId) ?? null,
  user_id: entry.userId,
  run_by_name: entry.userId === null ? null : (names.users.get(entry.userId) ?? null),
});
