/**
 * Makes an import, from the URL of a file or from a file that comes with the call.
 *
 * A file is kept before anybody knows whether the call is a new one: an `Idempotency-Key` is looked at with
 * the whole body, its file too. So a file that came before, or must not be taken, is deleted again.
 *
 * Before: `receive-upload.ts`. After: `worker/src/run-import.ts`.
 */
import type { ChangeOrigin } from '@sluice/database/audit-logs';
import type { NewImport } from '@sluice/database/import-changes';
import type { ImportKey, ImportRow } from '@sluice/database/imports';
import type { HeldCall } from '@sluice/database/transact-once';
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import { changeOriginOf, environmentOf } from './authenticate.ts';
import { sendProblem } from './error-handling.ts';
import { badBody, badRequest, commonFailures, conflicting, text } from './fields.ts';
import { heldCallOf } from './idempotency.ts';
import { oneImport, toWire } from './import-view.ts';
import { receiveUpload } from './receive-upload.ts';
import { readFields } from './request-validation.ts';
import type { ApiServer } from './server.ts';
import { webAddress } from './url-field.ts';

export interface NewImportDependencies {
  readonly insertImport: (made: NewImport, origin: ChangeOrigin) => Promise<ImportRow>;
  readonly deleteImport: (key: ImportKey, origin: ChangeOrigin, nowMs: number) => Promise<void>;
  readonly finishUpload: (
    key: ImportKey,
    call: HeldCall | undefined,
    nowMs: number,
  ) => Promise<ImportRow | undefined>;
  readonly appendImportChunk: (
    key: ImportKey,
    fencing: number,
    bytes: Buffer,
    leaseMs: number,
    nowMs: number,
  ) => Promise<boolean>;
  readonly importSizeBytesMax: number;
  readonly now: () => number;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** The import whose file came with this request, until the call has taken it. */
    upload: ImportRow | null;
  }
}

const NAME_LENGTH_MAX = 200;

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
      data_file_url: webAddress.meta({
        format: 'uri',
        description: 'Of the CSV; fetched once, soon.',
      }),
    }),
  })
  .meta({
    id: 'NewImport',
    description:
      'Or `multipart/form-data` with the same fields (not `data_file_url`) and then the file.',
  });

/** On a scope of its own: files are taken here and nowhere else. */
export function registerNewImports(parent: ApiServer, dependencies: NewImportDependencies): void {
  const { now } = dependencies;
  void parent.register(async (app: ApiServer) => {
    app.decorateRequest('upload', null);
    app.addContentTypeParser(
      'multipart/form-data',
      async (request: FastifyRequest, payload: IncomingMessage) => {
        const origin = changeOriginOf(request);
        const { made, sha256 } = await receiveUpload(payload, request.headers, {
          begin: (given) =>
            dependencies.insertImport(
              toNew(request, readFields(fields, given), null, now()),
              origin,
            ),
          keep: (kept, bytes) => dependencies.appendImportChunk(kept, 0, bytes, 0, now()),
          abandon: (kept) => dependencies.deleteImport(kept, origin, now()),
          sizeBytesMax: dependencies.importSizeBytesMax,
        });
        request.upload = made;
        // What the schema wants to see of fields that were looked at before the file, and an
        // `Idempotency-Key` of the file: the same body has the same.
        return {
          import: {
            name: made.name,
            ...(made.description !== null && { description: made.description }),
            type: 'event',
            identifier: made.identifier,
            data_to_process: made.dataToProcess,
            data_file_url: `https://upload.invalid/${sha256}`,
          },
        };
      },
    );

    const forget = async (request: FastifyRequest, upload: ImportRow): Promise<void> => {
      await dependencies
        .deleteImport(upload, changeOriginOf(request), now())
        .catch((error: unknown) =>
          request.log.warn({ error, importId: upload.importId }, 'a file that is not wanted stays'),
        );
    };
    app.addHook('onSend', async (request) => {
      const { upload } = request;
      request.upload = null;
      if (upload) await forget(request, upload);
    });

    app.post(
      '/v1/imports',
      {
        config: { takesFile: true },
        schema: {
          tags: ['imports'],
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
        const { upload } = request;
        if (upload === null) {
          const { data_file_url: url, ...given } = request.body.import;
          const made = await dependencies.insertImport(
            toNew(request, given, url, now()),
            changeOriginOf(request),
          );
          return reply.send({ import: toWire(made) });
        }
        // From here on it may be finished, whatever we hear of it.
        request.upload = null;
        const finished = await dependencies.finishUpload(upload, heldCallOf(request), now());
        if (finished && finished.importId !== upload.importId) await forget(request, upload);
        if (finished) return reply.send({ import: toWire(finished) });
        return sendProblem(request, reply, {
          code: 'conflict',
          message: 'the import was cancelled',
        });
      },
    );
  });
}

function toNew(
  request: FastifyRequest,
  given: z.infer<typeof fields>,
  dataFileUrl: string | null,
  nowMs: number,
): NewImport {
  return {
    environmentId: environmentOf(request),
    name: given.name,
    description: given.description ?? null,
    identifier: given.identifier,
    dataToProcess: given.data_to_process,
    dataFileUrl,
    traceparent: request.traceparent,
    nowMs,
  };
}
