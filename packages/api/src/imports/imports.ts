/**
 * Imports of events from CSV (`ingestion-webhooks.md` §2, `ingestion-conventions.md` §7). They are watched and
 * cancelled here, and the problems of their rows are answered as CSV.
 *
 * The API takes the file and keeps it (`new-imports.ts`), a worker reads it (`worker/src/imports/run-import.ts`); they
 * meet in Postgres.
 */
import { cancelImport } from '@sluice/database/imports/import-changes';
import { Readable } from 'node:stream';
import { findImport, listImports } from '@sluice/database/imports/imports';
import { INTEGER_MAX } from '@sluice/domain/value-rules/number-rule';
import { z } from 'zod';
import { changeOriginOf, environmentOf } from '../auth/authenticate.ts';
import { sendProblem } from '../http/error-handling.ts';
import { badRequest, commonFailures, conflicting, idInPath, missing } from '../http/fields.ts';
import { importView, oneImport, problemsAsCsv, toWire } from './import-view.ts';
import { registerNewImports, type ImportEffects } from './new-imports.ts';
import { nextToken, pageQuery, readStart, splitPage } from '../http/page.ts';
import { notFound } from '../http/problem.ts';
import type { ApiServer } from '../http/api-server.ts';
import { readsOf } from '../http/replica-reads.ts';

const LIMIT_MAX = 100;
const LIMIT_DEFAULT = 20;

const params = z.object({ import_id: idInPath });
const position = z.tuple([z.int().min(1).max(INTEGER_MAX)]).transform(([importId]) => importId);
const csv = { description: 'CSV.', content: { 'text/csv': { schema: z.string() } } };

export function registerImports(app: ApiServer, effects: ImportEffects): void {
  const { database, now } = effects;
  const tags = ['imports'];
  registerNewImports(app, effects);

  app.get(
    '/v1/imports',
    {
      config: { mayLag: true },
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
      const rows = await listImports(
        readsOf(request, database),
        environmentOf(request),
        readStart(start, position),
        limit + 1,
      );
      const { page, next } = splitPage(rows, limit, ({ importId }) => [importId]);
      return reply.send({ imports: page.map(toWire), next });
    },
  );

  app.get(
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
      const row = await findImport(database, { environmentId, importId });
      if (row) return reply.send({ import: toWire(row) });
      return sendProblem(request, reply, notFound('import'));
    },
  );

  app.post(
    '/v1/imports/:import_id/cancel',
    {
      schema: {
        tags,
        summary: 'End an import that has not ended',
        description: 'Imported rows stay.',
        params,
        response: { 200: oneImport, ...missing, ...conflicting, ...commonFailures },
      },
    },
    async (request, reply) => {
      const key = { environmentId: environmentOf(request), importId: request.params.import_id };
      const canceled = await cancelImport(database, key, changeOriginOf(request), now());
      if (canceled) return reply.send({ import: toWire(canceled) });
      const row = await findImport(database, key);
      if (!row) return sendProblem(request, reply, notFound('import'));
      return sendProblem(request, reply, {
        code: 'conflict',
        message: `the import has ended (${row.state}), so it cannot be cancelled`,
      });
    },
  );

  for (const [part, severity] of [
    ['errors', 'error'],
    ['warnings', 'warning'],
  ] as const) {
    app.get(
      `/v1/imports/:import_id/${part}`,
      {
        config: { mayLag: true },
        schema: {
          tags,
          summary: `The rows of an import that have ${part}, as CSV`,
          description:
            'row_number as a spreadsheet counts, severity, column, code, message, then the columns of the file. Cells that a spreadsheet would take for a formula begin with an apostrophe. At most 100,000 rows are kept. All imports of a workspace keep at most 256 MiB of such rows, and one import at most a quarter of the rest. All rows are counted.',
          params,
          response: { 200: csv, ...missing, ...commonFailures },
        },
      },
      async (request, reply) => {
        const key = { environmentId: environmentOf(request), importId: request.params.import_id };
        const reads = readsOf(request, database);
        const row = await findImport(reads, key);
        if (!row) return sendProblem(request, reply, notFound('import'));
        return reply
          .header('content-type', 'text/csv; charset=utf-8')
          .header(
            'content-disposition',
            `attachment; filename="import-${row.importId}-${part}.csv"`,
          )
          .send(Readable.from(problemsAsCsv(reads, row, severity)) as never);
      },
    );
  }
}
