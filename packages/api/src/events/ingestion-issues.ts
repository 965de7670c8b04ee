/**
 * `GET /v1/ingestion_issues`: data that intake refused or corrected, or that the worker could not apply. It explains a
 * missing event after a 200, since permissive mode answers 200 to everything (ingestion-webhooks.md §7).
 */
import type { Database } from '@sluice/database/connection/connection';
import {
  type IngestionIssueRow,
  listIngestionIssues,
} from '@sluice/database/events/ingestion-issue-reads';
import { ISSUE_CODES } from '@sluice/domain/operations/issue';
import { parseUtcDay } from '@sluice/domain/values/utc-day';
import { z } from 'zod';
import { environmentOf } from '../auth/authenticate.ts';
import { badRequest, commonFailures, text, unixSecondsInQuery } from '../http/fields.ts';
import { nextToken, pageQuery, readStart, splitPage } from '../http/page.ts';
import type { ApiServer } from '../http/api-server.ts';
import { readsOf } from '../http/replica-reads.ts';

const LIMIT_MAX = 1000;
const LIMIT_DEFAULT = 100;
const FILTER_LENGTH_MAX = 500;

const ingestionIssue = z
  .object({
    code: z.string(),
    severity: z
      .enum(['error', 'warning'])
      .meta({ description: '`error`: not taken. `warning`: taken, but not quite as sent.' }),
    source: z.string().meta({ description: 'Which call: `pipelines.track`, `track.v2.batch`, …' }),
    field: z
      .string()
      .nullable()
      .meta({ description: 'Path in the request body, dots between levels.' }),
    message: z.string().meta({ description: 'Of the latest.' }),
    sample: z.string().nullable().meta({ description: 'The start of the latest offending value.' }),
    credential_id: z.int().nullable().meta({
      description:
        'The API credential of the latest call, as `/v1/accounts/{account_id}/api_credentials` shows it; null if it is not known.',
    }),
    day: z.string().meta({ format: 'date', description: 'UTC.' }),
    count: z.int().meta({ description: 'How often on this day.' }),
    first_at: z.int().meta({ description: 'Unix seconds.' }),
    last_at: z.int().meta({ description: 'Unix seconds.' }),
  })
  .meta({ id: 'IngestionIssue', description: 'One kind of problem on one day.' });

/** Postgres knows no year 0. */
const utcDay = z.string().refine((given) => parseUtcDay(given) === given);
const position = z
  .tuple([utcDay, text(FILTER_LENGTH_MAX), text(FILTER_LENGTH_MAX), text(FILTER_LENGTH_MAX)])
  .transform(([day, code, source, field]) => ({ day, code, source, field }));

export function registerIngestionIssues(
  app: ApiServer,
  { database }: { readonly database: Database },
): void {
  app.get(
    '/v1/ingestion_issues',
    {
      config: { mayLag: true },
      schema: {
        tags: ['ingestion issues'],
        summary: 'Refused, skipped and corrected input',
        description: 'Newest day first. The filters match exactly.',
        querystring: z.object({
          code: text(FILTER_LENGTH_MAX).optional(),
          source: text(FILTER_LENGTH_MAX).optional(),
          field: text(FILTER_LENGTH_MAX).optional(),
          since: unixSecondsInQuery
            .optional()
            .meta({ description: 'Unix seconds: only issues that were seen at or after it.' }),
          until: unixSecondsInQuery
            .optional()
            .meta({ description: 'Unix seconds: only issues that were first seen before it.' }),
          severity: z
            .enum(['error', 'warning'])
            .optional()
            .meta({ description: '`error`: the operation was refused.' }),
          ...pageQuery(LIMIT_MAX, LIMIT_DEFAULT),
        }),
        response: {
          200: z.object({ ingestion_issues: z.array(ingestionIssue), next: nextToken }),
          ...badRequest,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const { code, severity, source, field, since, until, start, limit } = request.query;
      const rows = await listIngestionIssues(readsOf(request, database), {
        environmentId: environmentOf(request),
        code,
        source,
        field,
        codes: severity === undefined ? undefined : codesOf(severity),
        untilMs: until === undefined ? undefined : until * 1000,
        sinceMs: since === undefined ? undefined : since * 1000,
        after: readStart(start, position),
        limit: limit + 1,
      });
      const { page, next } = splitPage(rows, limit, (row) => [
        row.day,
        row.code,
        row.source,
        row.field,
      ]);
      return reply.send({ ingestion_issues: page.map(toWire), next });
    },
  );
}

const codesOf = (severity: 'error' | 'warning'): string[] =>
  Object.entries(ISSUE_CODES).flatMap(([code, each]) => (each === severity ? [code] : []));

const toWire = (row: IngestionIssueRow): z.infer<typeof ingestionIssue> => ({
  code: row.code,
  severity: ISSUE_CODES[row.code] ?? 'error',
  source: row.source,
  field: row.field === '' ? null : row.field,
  message: row.message,
  sample: row.sample,
  credential_id: row.credentialId === null ? null : Number(row.credentialId),
  day: row.day,
  count: Number(row.count),
  first_at: Math.floor(row.firstAt.getTime() / 1000),
  last_at: Math.floor(row.lastAt.getTime() / 1000),
});
