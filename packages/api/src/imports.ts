/**
 * Imports of events from CSV (`ingestion-webhooks.md` §2, `ingestion-conventions.md` §7): made from a
 * file or a URL, watched, cancelled, and what was wrong with their rows as CSV.
 *
 * The API takes the file and keeps it, a worker reads it; they meet in Postgres. Before:
 * `receive-upload.ts`. After: `worker/src/run-import.ts`.
 */
import { Readable } from 'node:stream';
import type { ChangeOrigin } from '@sluice/database/audit-logs';
import type { IncomingMessage } from 'node:http';
import type { NewImport } from '@sluice/database/import-changes';
import type { ImportKey, ImportRow } from '@sluice/database/imports';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { changeOriginOf, environmentOf } from './authenticate.ts';
import { sendProblem } from './error-handling.ts';
import {
  badBody,
  badRequest,
  commonFailures,
  conflicting,
  idInPath,
  missing,
  text,
} from './fields.ts';
import { importView, problemsAsCsv, toWire, type ListImportProblems } from './import-view.ts';
import { nextToken, pageQuery, readStart, splitPage } from './page.ts';
import { invalidRequest, notFound } from './problem.ts';
import { receiveUpload } from './receive-upload.ts';
import { RequestRefused } from './request-validation.ts';
import type { ApiServer } from './server.ts';
import { whyNoUrl } from './url-field.ts';

export interface ImportDependencies {
  readonly insertImport: (made: NewImport, origin: ChangeOrigin) => Promise<ImportRow>;
  readonly deleteImport: (key: ImportKey, origin: ChangeOrigin, nowMs: number) => Promise<void>;
  readonly findImport: (key: ImportKey) => Promise<ImportRow | undefined>;
  readonly listImports: (
    environmentId: number,
    beforeId: number | undefined,
    limit: number,
  ) => Promise<ImportRow[]>;
  readonly finishUpload: (key: ImportKey, nowMs: number) => Promise<ImportRow | undefined>;
  readonly cancelImport: (
    key: ImportKey,
    origin: ChangeOrigin,
    nowMs: number,
  ) => Promise<ImportRow | undefined>;
  readonly appendImportChunk: (
    key: ImportKey,
    fencing: number,
    bytes: Buffer,
    leaseMs: number,
    nowMs: number,
  ) => Promise<boolean>;
  readonly listImportProblems: ListImportProblems;
  readonly importSizeBytesMax: number;
  readonly now: () => number;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The import whose file came with this request. */
    upload: ImportRow | null;
  }
}

const NAME_LENGTH_MAX = 200;
const URL_LENGTH_MAX = 2048;
const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 20;

const fields = z.object({
  name: text(NAME_LENGTH_MAX).trim().min(1),
  description: text(NAME_LENGTH_MAX * 5).optional(),
  type: z.literal('event').meta({ description: 'Only events are imported.' }),
  identifier: z
    .enum(['id', 'email'])
    .meta({ description: 'What `_svc_customer_id` holds, in every row.' }),
  data_to_process: z
    .enum(['all', 'only_existing'])
    .default('all')
    .meta({ description: 'Both mean the same for events: they never make people.' }),
});

const newImport = z
  .object({
    import: fields.extend({
      data_file_url: text(URL_LENGTH_MAX)
        .superRefine((value, context) => {
          const message = whyNoUrl(value);
          if (message !== undefined) context.addIssue({ code: 'custom', message });
        })
        .meta({ format: 'uri', description: 'Of the CSV; fetched once, soon.' }),
    }),
  })
  .meta({
    id: 'NewImport',
    description:
      'Or `multipart/form-data` with the same fields (not `data_file_url`) and then the file.',
  });

const oneImport = z.object({ import: importView });
const params = z.object({ import_id: idInPath });
const position = z.tuple([z.int().positive()]).transform(([importId]) => importId);
const csv = { description: 'CSV.', content: { 'text/csv': { schema: z.string() } } };

export function registerImports(parent: ApiServer, dependencies: ImportDependencies): void {
  const { now } = dependencies;
  const tags = ['imports'];

  // A scope of its own: files are taken here and nowhere else.
  void parent.register(async (app: ApiServer) => {
    app.decorateRequest('upload', null);
    app.addContentTypeParser(
      'multipart/form-data',
      async (request: FastifyRequest, payload: IncomingMessage) => {
        const origin = changeOriginOf(request);
        request.upload = await receiveUpload(payload, request.headers, {
          begin: (given) => dependencies.insertImport(toNew(request, given, null, now()), origin),
          keep: (made, bytes) => dependencies.appendImportChunk(made, 0, bytes, 0, now()),
          abandon: (made) => dependencies.deleteImport(made, origin, now()),
          sizeBytesMax: dependencies.importSizeBytesMax,
        });
        // What the schema wants to see of an import whose fields were looked at before its file.
        return {
          import: {
            name: request.upload.name,
            type: 'event',
            identifier: request.upload.identifier,
            data_file_url: 'https://upload.invalid/',
          },
        };
      },
    );

    app.post(
      '/v1/imports',
      {
        config: { takesFile: true },
        schema: {
          tags,
          summary: 'Import events from a CSV file',
          description:
            'The first line names the columns: `_svc_name`, `_svc_customer_id`, `_svc_timestamp` (optional), and properties. People must exist.',
          body: newImport,
          response: {
            200: oneImport,
            ...badRequest,
            ...badBody,
            ...conflicting,
            ...commonFailures,
          },
        },
      },
      async (request, reply) => {
        if (request.upload === null) {
          const { data_file_url: url, ...given } = request.body.import;
          const made = await dependencies.insertImport(
            toNew(request, given, url, now()),
            changeOriginOf(request),
          );
          return reply.send({ import: toWire(made) });
        }
        const finished = await dependencies.finishUpload(request.upload, now());
        if (finished) return reply.send({ import: toWire(finished) });
        return sendProblem(request, reply, {
          code: 'conflict',
          message: 'the import was cancelled',
        });
      },
    );
  });

  parent.get(
    '/v1/imports',
    {
      schema: {
        tags,
        summary: 'Imports, newest first',
        querystring: z.object(pageQuery(LIMIT_MAX, LIMIT_DEFAULT)),
        response: {
          200: z.object({ imports: z.array(importView), next: nextToken }),
          ...badRequest,
          ...commonFailures,
        },
      },
    },
    async (request, reply) => {
      const { start, limit } = request.query;
      const rows = await dependencies.listImports(
        environmentOf(request),
        readStart(start, position),
        limit + 1,
      );
      const { page, next } = splitPage(rows, limit, ({ importId }) => [importId]);
      return reply.send({ imports: page.map(toWire), next });
    },
  );

  parent.get(
    '/v1/imports/:import_id',
    {
      schema: {
        tags,
        summary: 'How far an import is',
        params,
        response: { 200: oneImport, ...missing, ...commonFailures },
      },
    },
    async (request, reply) => {
      const environmentId = environmentOf(request);
      const importId = request.params.import_id;
      const row = await dependencies.findImport({ environmentId, importId });
      if (row) return reply.send({ import: toWire(row) });
      return sendProblem(request, reply, notFound('import'));
    },
  );

  parent.post(
    '/v1/imports/:import_id/cancel',
    {
      schema: {
        tags,
        summary: 'End an import that has not ended',
        description: 'What is imported stays.',
        params,
        response: { 200: oneImport, ...missing, ...conflicting, ...commonFailures },
      },
    },
    async (request, reply) => {
      const key = { environmentId: environmentOf(request), importId: request.params.import_id };
      const canceled = await dependencies.cancelImport(key, changeOriginOf(request), now());
      if (canceled) return reply.send({ import: toWire(canceled) });
      const row = await dependencies.findImport(key);
      if (!row) return sendProblem(request, reply, notFound('import'));
      return sendProblem(request, reply, {
        code: 'conflict',
        message: `the import has ended: ${row.state}`,
      });
    },
  );

  for (const [part, severity] of [
    ['errors', 'error'],
    ['warnings', 'warning'],
  ] as const) {
    parent.get(
      `/v1/imports/:import_id/${part}`,
      {
        schema: {
          tags,
          summary: `The rows of an import that have ${part}, as CSV`,
          description:
            'row_number, severity, column, code, message, then the columns of the file. Cells that a spreadsheet would take for a formula begin with an apostrophe. At most 100,000 rows are kept; all are counted.',
          params,
          response: { 200: csv, ...missing, ...commonFailures },
        },
      },
      async (request, reply) => {
        const key = { environmentId: environmentOf(request), importId: request.params.import_id };
        const row = await dependencies.findImport(key);
        if (!row) return sendProblem(request, reply, notFound('import'));
        return reply
          .header('content-type', 'text/csv; charset=utf-8')
          .header(
            'content-disposition',
            `attachment; filename="import-${row.importId}-${part}.csv"`,
          )
          .send(
            Readable.from(problemsAsCsv(dependencies.listImportProblems, row, severity)) as never,
          );
      },
    );
  }
}

/** @throws RequestRefused where the fields of a form make no import. */
function toNew(
  request: FastifyRequest,
  given: object,
  dataFileUrl: string | null,
  nowMs: number,
): NewImport {
  const parsed = fields.safeParse(given);
  if (!parsed.success) {
    const details = parsed.error.issues.map(({ path, message }) => ({
      field: path.join('.'),
      reason: 'invalid',
      message: `${path.join('.')}: ${message}`,
      source: { pointer: `/${path.join('/')}` },
    }));
    throw new RequestRefused(invalidRequest(details));
  }
  const { name, description, identifier, data_to_process: dataToProcess } = parsed.data;
  return {
    environmentId: environmentOf(request),
    name,
    description: description ?? null,
    identifier,
    dataToProcess,
    dataFileUrl,
    traceparent: request.traceparent,
    nowMs,
  };
}
