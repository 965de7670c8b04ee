/**
 * Exports of the audit log: ordered, polled, fetched (`account-conventions.md` §4.4).
 *
 * An order is written down, with its own entry in the log, before it is answered; a worker writes the
 * file (`worker/src/maintenance/export-audit-logs.ts`). A poll only reads. The file is fetched by a link that is
 * made anew at each poll and good for ten minutes; each download has its entry in the log.
 */
import { choose, hasMember, hasMemberAs, where } from '../http/conditions.ts';
import type { Database } from '@sluice/database/connection/connection';
import { Readable } from 'node:stream';
import {
  type AuditLogExport,
  type AuditLogExportKey,
  findAuditLogExport,
  findExportPart,
  orderAuditLogExport,
  recordExportDownload,
} from '@sluice/database/audit/audit-log-exports';
import { EXPORT_FORMATS, type ExportFormat } from '@sluice/domain/accounts/audit-export';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { accountCallerOf, originOf } from '../auth/account-guard.ts';
import { checkFilter, filterBody, toFilter } from './audit-log-filters.ts';
import { sendProblem } from '../http/error-handling.ts';
import { openExportLink, writeExportLink } from './export-link.ts';
import {
  accountFailures,
  accountReadFailures,
  badBody,
  commonFailures,
  conflicting,
  idInPath,
  instant,
  missing,
} from '../http/fields.ts';
import { notFound, validationFailed } from '../http/problem.ts';
import type { ApiServer } from '../http/api-server.ts';
import { readsOf } from '../http/replica-reads.ts';
import { sourceOf } from '../serving/call-source.ts';

export interface AuditLogExportEffects {
  readonly database: Database;
  /** Lets a worker begin now; losing a call only delays it until the next reconcile loop. */
  readonly wakeExport: (key: AuditLogExportKey) => Promise<void>;
  readonly newId: () => string;
  readonly now: () => number;
  readonly secret: string;
}

const LINK_TTL_MS = 600_000;
const DAY_MS = 86_400_000;
const WINDOW_DAYS_MAX = 366;
const POLL_AFTER_SECONDS_MAX = 5;

const TOO_LONG = {
  field: 'start_time',
  reason: 'invalid',
  message: `start_time must be at most ${WINDOW_DAYS_MAX} days before end_time`,
  source: { pointer: '/start_time' },
};

const tags = ['audit logs'];
const config = { access: { role: 'account_admin' } } as const;
const exportIdInPath = z.string().regex(/^[\w-]{1,64}$/);

/** An empty text counts as absent. */
const isNamed = (member: string) => hasMemberAs(member, { minLength: 1 });

const exportRequest = z
  .strictObject({
    format: z
      .enum(EXPORT_FORMATS)
      .default('csv')
      .meta({
        description:
          '`csv` is for spreadsheets; a cell that looks like a formula begins with an apostrophe. ' +
          '`ndjson` has one entry a line, as `GET …/audit_log/{id}` shows it.',
      }),
    ...filterBody,
  })
  .superRefine(checkFilter)
  .meta({
    id: 'ExportAuditLogsRequest',
    ...where(
      choose(isNamed('object_id'), isNamed('object_type')),
      choose(
        { anyOf: [hasMember('action'), hasMember('attribute_name')] },
        { anyOf: [isNamed('object_type'), isNamed('object_id')] },
      ),
    ),
    description: `The filters of the list. At most ${WINDOW_DAYS_MAX} days; without start_time, the last ones.`,
    requestExamples: [
      {
        format: 'ndjson',
        start_time: '2026-01-01T00:00:00Z',
        end_time: '2026-02-01T00:00:00Z',
        object_type: 'api_credential',
        action: 'deleted',
      },
    ],
  });

const exportResponse = z
  .object({
    export: z.object({
      id: z.string(),
      status: z.enum(['pending', 'processing', 'completed', 'failed']),
      format: z.enum(EXPORT_FORMATS),
      progress: z.number().meta({ description: 'From 0 to 1.' }),
      row_count: z.int().nullable().meta({ description: 'Null until it is completed.' }),
      size_bytes: z.int().nullable(),
      sha256: z.string().nullable().meta({ description: 'Of the file, in hexadecimal.' }),
      download_url: z.string().nullable().meta({
        description: 'Opens the file for ten minutes, without a token. Each poll makes another.',
      }),
      start_time: instant,
      end_time: instant,
      requested_by_user_id: z.int().nullable(),
      requested_by_service_account_id: z.int().nullable(),
      created_at: instant,
      completed_at: instant.nullable(),
      expires_at: instant.nullable().meta({ description: 'The file is cleared away then.' }),
    }),
  })
  .meta({ id: 'ExportResponse' });

export function registerAuditLogExports(
  scope: ApiServer,
  { database, now, secret, wakeExport, newId }: AuditLogExportEffects,
): void {
  scope.post(
    '/v1/accounts/:account_id/audit_logs/export',
    {
      config,
      schema: {
        tags,
        summary: 'Order an export of the audit log',
        description: 'Poll `GET …/audit_logs/exports/{export_id}` until it is completed.',
        params: z.object({ account_id: idInPath }),
        body: exportRequest.nullish(),
        response: {
          200: exportResponse,
          ...conflicting,
          ...badBody,
          ...accountFailures,
        },
      },
    },
    async (request, reply) => {
      const body: Partial<z.infer<typeof exportRequest>> = request.body ?? {};
      const { format = 'csv', ...given } = body;
      const nowMs = now();
      const endMs = given.end_time ?? nowMs;
      const startMs = given.start_time ?? Math.max(0, endMs - WINDOW_DAYS_MAX * DAY_MS);
      if (endMs - startMs > WINDOW_DAYS_MAX * DAY_MS)
        return sendProblem(request, reply, validationFailed([TOO_LONG]));
      const filter = { ...toFilter(given), startMs, endMs: Math.max(startMs, endMs) };
      const { accountId } = accountCallerOf(request);
      const key = { accountId, exportId: `exp_${newId()}` };
      const ordered = await orderAuditLogExport(
        database,
        { ...key, format, filter },
        originOf(request),
        nowMs,
      );
      if (!ordered)
        return sendProblem(request, reply, {
          code: 'conflict',
          message:
            'other exports of this account are in progress; wait until one of them has ended',
        });
      await wakeExport(key).catch((error: unknown) => {
        request.log.warn(
          { error, ...key },
          'an export could not be woken; the reconciliation loop will find it',
        );
      });
      return reply.send(toWire(ordered, request));
    },
  );

  scope.get(
    '/v1/accounts/:account_id/audit_logs/exports/:export_id',
    {
      config,
      schema: {
        tags,
        summary: 'Poll an export of the audit log',
        description: 'Until it is finished, `Retry-After` has the seconds until the next poll.',
        params: z.object({ account_id: idInPath, export_id: exportIdInPath }),
        response: { 200: exportResponse, ...accountReadFailures },
      },
    },
    async (request, reply) => {
      const { accountId } = accountCallerOf(request);
      const { export_id: exportId } = request.params;
      const found = await findAuditLogExport(database, { accountId, exportId });
      if (!found || isCleared(found, now()))
        return sendProblem(request, reply, notFound('the export was'));
      if (found.status === 'pending' || found.status === 'processing') {
        const ageSeconds = (now() - found.createdAt.getTime()) / 1000;
        const seconds = Math.min(POLL_AFTER_SECONDS_MAX, Math.max(1, Math.ceil(ageSeconds / 5)));
        void reply.header('retry-after', seconds);
      }
      return reply.send(toWire(found, request));
    },
  );

  function toWire(found: AuditLogExport, request: FastifyRequest): z.infer<typeof exportResponse> {
    const isCompleted = found.status === 'completed';
    const link = writeExportLink(secret, found, originOf(request), now() + LINK_TTL_MS);
    return {
      export: {
        id: found.exportId,
        status: found.status,
        format: found.format,
        progress: isCompleted ? 1 : found.afterId / (found.untilId + 1),
        row_count: isCompleted ? found.rowCount : null,
        size_bytes: isCompleted ? found.sizeBytes : null,
        sha256: found.sha256,
        download_url: isCompleted
          ? `${request.protocol}://${request.host}/v1/audit_log_exports/${link}`
          : null,
        start_time: new Date(found.filter.startMs ?? 0).toISOString(),
        end_time: new Date(found.filter.endMs ?? 0).toISOString(),
        requested_by_user_id: found.requestedByUserId,
        requested_by_service_account_id: found.requestedByServiceAccountId,
        created_at: found.createdAt.toISOString(),
        completed_at: found.completedAt?.toISOString() ?? null,
        expires_at: found.expiresAt?.toISOString() ?? null,
      },
    };
  }
}

/** The file counts as gone once its time is over, even if it is not reconciled yet. */
const isCleared = ({ expiresAt }: AuditLogExport, nowMs: number): boolean =>
  expiresAt !== null && expiresAt.getTime() <= nowMs;

const CONTENT_TYPES: Readonly<Record<ExportFormat, string>> = {
  csv: 'text/csv; charset=utf-8; header=present',
  ndjson: 'application/x-ndjson',
};

/** Declares the route that the links lead to, on a scope that asks for no token. */
export function registerExportDownload(
  scope: ApiServer,
  { database, secret, now }: AuditLogExportEffects,
): void {
  const file = { schema: z.string() };
  scope.get(
    '/v1/audit_log_exports/:link',
    {
      config: { mayLag: true },
      schema: {
        tags,
        summary: 'Fetch the file of an export',
        description: 'By the `download_url` of the export, which needs no token.',
        security: [],
        params: z.object({ link: z.string().max(200) }),
        response: {
          200: {
            description: 'The file.',
            content: { 'text/csv': file, 'application/x-ndjson': file },
          },
          ...missing,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const opened = openExportLink(secret, request.params.link, now(), LINK_TTL_MS);
      if (opened.outcome === 'expired')
        return sendProblem(request, reply, {
          code: 'not_found',
          message: 'the link has expired; poll the export for another one',
        });
      const found =
        opened.outcome === 'opened' ? await findAuditLogExport(database, opened) : undefined;
      if (found?.status !== 'completed' || isCleared(found, now()))
        return sendProblem(request, reply, notFound('the export was'));
      if (opened.outcome === 'opened' && request.method === 'GET')
        await recordExportDownload(
          database,
          found,
          {
            ...opened.holder,
            ...sourceOf(request),
            requestId: request.id,
          },
          now(),
        );
      void reply.headers({
        'content-type': CONTENT_TYPES[found.format],
        'content-length': found.sizeBytes,
        'content-disposition': `attachment; filename="audit-log-${found.exportId}.${found.format}"`,
      });
      return reply.send(Readable.from(partsOf(readsOf(request, database), found)) as never);
    },
  );

  /** A part never changes once it is there, so one that a replica has is as good as the primary's. */
  async function* partsOf(reads: Database, found: AuditLogExport): AsyncGenerator<Buffer> {
    for (let part = 0; part < found.partCount; part++) {
      const content =
        (await findExportPart(reads, found, part)) ?? (await findExportPart(database, found, part));
      // The parts were deleted meanwhile: the client sees that the file ends early.
      if (!content) throw new Error(`part ${part} of export ${found.exportId} is gone`);
      if (content.length > 0) yield content;
    }
  }
}
