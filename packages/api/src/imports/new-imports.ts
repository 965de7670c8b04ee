/**
 * Makes an import, from a URL or an uploaded file.
 *
 * A file is stored before it is known whether the call is a new one, because an `Idempotency-Key` covers the whole
 * body, its file too. So a file that had come before, or must not be taken, is deleted again.
 *
 * Before: `receive-upload.ts`. After: `worker/src/imports/run-import.ts`.
 */
import type { Database } from '@sluice/database/connection/connection';
import {
  type NewImport,
  deleteImport,
  finishUpload,
  insertImport,
} from '@sluice/database/imports/import-changes';
import { isKnownEncoding } from '@sluice/database/imports/file-encoding';
import { appendImportChunk, type ImportStorage } from '@sluice/database/imports/import-chunks';
import type { ImportRow } from '@sluice/database/imports/imports';
import {
  TOO_MANY_IMPORTS,
  UNFINISHED_IMPORT_COUNT_MAX,
} from '@sluice/domain/imports/import-limits';
import type { IncomingMessage } from 'node:http';
import type { FastifyRequest } from 'fastify';
import { z } from 'zod';
import {
  changeOriginOf,
  environmentOf,
  isCallerInForce,
  NOT_IN_FORCE,
} from '../auth/authenticate.ts';
import { sendProblem } from '../http/error-handling.ts';
import {
  NOT_BLANK,
  badBody,
  badRequest,
  commonFailures,
  conflicting,
  text,
} from '../http/fields.ts';
import { heldCallOf } from '../http/idempotency.ts';
import { oneImport, toWire } from './import-view.ts';
import type { Problem } from '../http/problem.ts';
import { receiveUpload } from './receive-upload.ts';
import { readFields, RequestRefused } from '../http/request-validation.ts';
import type { ApiServer } from '../http/api-server.ts';
import { reachableAddress } from '../http/url-field.ts';

export interface ImportEffects {
  readonly database: Database;
  readonly importSizeBytesMax: number;
  readonly unfinishedImportSizeBytesMax: number;
  readonly importStorage: ImportStorage;
  readonly now: () => number;
}

declare module 'fastify' {
  interface FastifySchema {
    /** For the description: the fields of the body as `multipart/form-data`, which the route reads itself. */
    'x-sluice-form'?: z.ZodType;
  }
  interface FastifyRequest {
    /** The import whose file came with this request, until the call has taken it. */
    upload: ImportRow | null;
  }
}

const NAME_LENGTH_MAX = 200;
const ENCODING_LENGTH_MAX = 40;

const fields = z.object({
  name: text(NAME_LENGTH_MAX).trim().min(1).meta(NOT_BLANK),
  description: text(NAME_LENGTH_MAX * 5).optional(),
  type: z.literal('event').meta({ description: 'Only events are imported.' }),
  identifier: z
    .enum(['id', 'email'])
    .meta({ description: 'The kind of identifier in `_svc_customer_id`, for every row.' }),
  data_to_process: z
    .enum(['all', 'only_existing'])
    .default('all')
    .meta({ description: 'Both mean the same for events: they never make people.' }),
  encoding: text(ENCODING_LENGTH_MAX)
    .trim()
    .refine(isKnownEncoding, {
      error: 'must be an encoding of the WHATWG Encoding Standard, such as windows-1252',
    })
    .optional()
    .meta({
      description:
        'A name of the WHATWG Encoding Standard, of a file that is neither UTF-8 nor UTF-16; a byte order mark goes before it. Else the `charset` with which the file comes.',
    }),
});

const newImport = z
  .object({
    import: fields.extend({
      data_file_url: reachableAddress.meta({
        format: 'uri',
        description: 'Of the CSV; fetched once, soon.',
      }),
    }),
  })
  .meta({
    id: 'NewImport',
    description:
      'Or `multipart/form-data` with the same fields (not `data_file_url`) and then the file.',
    requestExamples: [
      {
        import: {
          name: 'Orders of January',
          type: 'event',
          identifier: 'email',
          data_file_url: 'https://example.com/orders.csv',
        },
      },
    ],
  });

/** Described, not checked: `receiveUpload` reads the parts one by one. */
const newImportForm = fields
  .extend({
    file: z.unknown().meta({
      type: 'string',
      format: 'binary',
      description: 'The CSV, as the last part and with a filename.',
    }),
  })
  .meta({ id: 'NewImportForm', description: 'The fields of a new import, then its file.' });

const TOO_MANY: Problem = {
  code: 'limit_reached',
  message: TOO_MANY_IMPORTS,
  meta: { limit: UNFINISHED_IMPORT_COUNT_MAX },
};

/** On a scope of its own: files are taken here and nowhere else. */
export function registerNewImports(parent: ApiServer, effects: ImportEffects): void {
  const {
    database,
    now,
    unfinishedImportSizeBytesMax: unfinishedSizeBytesMax,
    importStorage: storage,
    importSizeBytesMax,
  } = effects;
  void parent.register(async (app: ApiServer) => {
    app.decorateRequest('upload', null);
    app.addContentTypeParser(
      'multipart/form-data',
      async (request: FastifyRequest, payload: IncomingMessage) => {
        const origin = changeOriginOf(request);
        const { made, sha256 } = await receiveUpload(payload, request.headers, {
          begin: async (given) => {
            const wanted = toNew(request, readFields(fields, given), null, now());
            const begun = await insertImport(database, wanted, origin);
            if (begun === 'too_many') throw new RequestRefused(TOO_MANY);
            return begun;
          },
          keep: async (kept, bytes) => {
            // A file may come for hours.
            if (!(await isCallerInForce(request, database))) throw new RequestRefused(NOT_IN_FORCE);
            const bounds = { unfinishedSizeBytesMax, storage };
            const piece = { fencing: 0, bytes, leaseMs: 0, nowMs: now(), ...bounds };
            return appendImportChunk(database, kept, piece);
          },
          abandon: (kept) => deleteImport(database, kept, origin, now()),
          sizeBytesMax: importSizeBytesMax,
          unfinishedSizeBytesMax,
        });
        request.upload = made;
        // The body as the schema and an `Idempotency-Key` see it: the fields, which were checked before the file, and
        // the file's digest, so that equal bodies are equal.
        return {
          import: {
            name: made.name,
            ...(made.description !== null && { description: made.description }),
            type: 'event',
            identifier: made.identifier,
            data_to_process: made.dataToProcess,
            ...(made.encoding !== null && { encoding: made.encoding }),
            data_file_url: `https://upload.invalid/${sha256}`,
          },
        };
      },
    );

    const forget = async (request: FastifyRequest, upload: ImportRow): Promise<void> => {
      await deleteImport(database, upload, changeOriginOf(request), now()).catch((error: unknown) =>
        request.log.warn(
          { error, importId: upload.importId },
          'the file of a refused upload could not be deleted and stays stored; cancel the import to free the storage',
        ),
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
          description: `In UTF-8, in UTF-16, or in the declared \`encoding\`; cells are separated by commas, semicolons, tabs or |. The first line names the columns: \`_svc_name\`, \`_svc_customer_id\`, \`_svc_timestamp\` (optional), and properties. People must exist. At most ${UNFINISHED_IMPORT_COUNT_MAX} a workspace that have not ended, and their files together are bounded too: 409 \`limit_reached\`. If the files of all workspaces fill the storage: 503.`,
          body: newImport,
          'x-sluice-form': newImportForm,
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
          const made = await insertImport(
            database,
            toNew(request, given, url, now()),
            changeOriginOf(request),
          );
          if (made === 'too_many') return sendProblem(request, reply, TOO_MANY);
          return reply.send({ import: toWire(made) });
        }
        // From here on the import may be made, for every answer that we get.
        request.upload = null;
        const finished = await finishUpload(database, upload, heldCallOf(request), now());
        if (finished && finished.importId !== upload.importId) await forget(request, upload);
        if (finished) return reply.send({ import: toWire(finished) });
        return sendProblem(request, reply, {
          code: 'conflict',
          message: 'the import was cancelled; create another one',
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
    encoding: given.encoding ?? null,
    dataFileUrl,
    traceparent: request.traceparent,
    nowMs,
  };
}
