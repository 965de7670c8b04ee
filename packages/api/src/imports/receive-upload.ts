/**
 * A file that is sent with `multipart/form-data`: its fields, then its bytes.
 *
 * The bytes go to Postgres in pieces of a megabyte, or of ten seconds, as they come. The sender is read only as fast as
 * they are kept. The fields come before the file, so that their faults are answered before a gigabyte is taken; a field
 * after the file is refused. A file that breaks off is deleted, and so is the file of a form with too many parts. All
 * that is not the file is bounded together, for it may have no end and is read without being kept.
 *
 * Before: `new-imports.ts` declares the content type. After: `database/src/imports/import-chunks.ts`.
 */
import { createHash } from 'node:crypto';
import type { EventEmitter } from 'node:events';
import type { IncomingMessage } from 'node:http';
import { Busboy, type BusboyFileStream, type BusboyHeaders } from '@fastify/busboy';
import { inChunks } from '@sluice/database/imports/in-chunks';
import type { PieceOutcome } from '@sluice/database/imports/import-chunks';
import type { ImportRow } from '@sluice/database/imports/imports';
import { noCapacityForImport, NO_STORAGE_FOR_IMPORT } from '@sluice/domain/imports/import-limits';
import { isPassing } from '../http/error-handling.ts';
import type { Problem } from '../http/problem.ts';
import { refuseEncoded } from '../http/body.ts';
import { RequestRefused } from '../http/request-validation.ts';

export interface UploadPort {
  /** From the fields before the file. @throws RequestRefused if they do not make an import. */
  readonly begin: (fields: Readonly<Record<string, string>>) => Promise<ImportRow>;
  readonly keep: (made: ImportRow, bytes: Buffer) => Promise<PieceOutcome>;
  readonly abandon: (made: ImportRow) => Promise<void>;
  readonly sizeBytesMax: number;
  /** Of the files of all unfinished imports of the workspace together. */
  readonly unfinishedSizeBytesMax: number;
}

/** A file that came whole. */
export interface Upload {
  readonly made: ImportRow;
  /** SHA-256 of its bytes, in hexadecimal. */
  readonly sha256: string;
}

const FIELD_SIZE_BYTES_MAX = 10_000;
const FIELD_COUNT_MAX = 20;
/** Besides fields and the file, for parts that are neither. */
const PART_COUNT_MAX = FIELD_COUNT_MAX + 10;
/** Of all that is not the file, boundaries and the heads of parts too. */
const FORM_SIZE_BYTES_MAX = 1_048_576;
/** RFC 2046 §5.1.1 */
const BOUNDARY_LENGTH_MAX = 70;
/** So often the bytes of a slow sender are stored, and its key is looked at. */
const KEEP_INTERVAL_MS = 10_000;

/**
 * Takes the whole request, and keeps its file.
 *
 * @throws RequestRefused
 */
export async function receiveUpload(
  payload: IncomingMessage,
  headers: IncomingMessage['headers'],
  port: UploadPort,
): Promise<Upload> {
  const encoded = refuseEncoded(headers);
  if (encoded !== undefined) throw encoded;
  const form = openForm(headers);
  const fields: Record<string, string> = Object.create(null) as Record<string, string>;
  let file: BusboyFileStream | undefined;
  let upload: Promise<Upload> | undefined;
  try {
    await new Promise<void>((resolve, reject) => {
      form.on('field', (name, value) => {
        if (upload === undefined) fields[name] = value;
        else reject(refused('send the fields before the file'));
      });
      const charset = charsetOfParts(form);
      form.on('file', (_name, found) => {
        // Both its reader and the form hear of an error. A later one without a listener would end the process.
        found.on('error', () => undefined);
        if (upload !== undefined) {
          found.resume();
          reject(refused('send one file'));
          return;
        }
        file = found;
        const said = charset();
        const given =
          said === undefined || fields['encoding'] ? fields : { ...fields, encoding: said };
        upload = keepFile(found, given, port);
        upload.catch(reject);
      });
      form.on('fieldsLimit', () => reject(refused(`send at most ${FIELD_COUNT_MAX} fields`)));
      form.on('partsLimit', () => reject(refused(`send at most ${FIELD_COUNT_MAX} fields`)));
      let passedSizeBytes = 0;
      payload.on('data', (piece: Buffer) => {
        // The form has read the pieces before this one.
        if (passedSizeBytes - (file?.bytesRead ?? 0) > FORM_SIZE_BYTES_MAX) reject(formTooLarge());
        passedSizeBytes += piece.length;
      });
      form.on('finish', resolve).on('error', reject);
      payload.on('error', reject).once('close', () => {
        // A whole file is closed too, before its last part is stored.
        if (!payload.readableEnded) reject(new Error('the sender is gone'));
      });
      payload.pipe(form);
    });
  } catch (error) {
    // The rest of the body has no reader.
    payload.unpipe(form);
    payload.resume();
    file?.destroy(new Error('the form broke off'));
    await upload?.then(
      ({ made }) => port.abandon(made),
      () => undefined,
    );
    if (error instanceof RequestRefused) throw error;
    if (upload !== undefined) await upload.catch(rethrowOthers);
    throw refused('the multipart body is malformed or incomplete; send it again');
  }
  if (upload === undefined)
    throw refused('send the file as a part with a filename, after the fields');
  return upload;
}

/**
 * The `charset` of the part whose header came last. busboy gives a file's type without its parameters. So they are read
 * from the event of its parser of parts, which comes first; a test holds that this stays so.
 */
function charsetOfParts(form: object): () => string | undefined {
  let charset: string | undefined;
  const { parser } = (form as { _parser: { parser: EventEmitter } })._parser;
  parser.prependListener('part', (part: EventEmitter) => {
    part.once('header', (header: Readonly<Record<string, readonly string[]>>) => {
      const type = header['content-type']?.[0] ?? '';
      charset = /;\s*charset\s*=\s*"?([^\s;"]+)/i.exec(type)?.[1];
    });
  });
  return () => charset;
}

/** A failure of Postgres is no fault of the form. */
function rethrowOthers(error: unknown): void {
  if (isPassing(error)) throw error;
}

async function keepFile(
  file: AsyncIterable<Buffer>,
  fields: Readonly<Record<string, string>>,
  port: UploadPort,
): Promise<Upload> {
  const made = await port.begin(fields);
  const hash = createHash('sha256');
  try {
    let sizeBytes = 0;
    for await (const chunk of inChunks(file, KEEP_INTERVAL_MS)) {
      if (chunk.length === 0) continue;
      hash.update(chunk);
      sizeBytes += chunk.length;
      if (sizeBytes > port.sizeBytesMax) {
        const message = `the file must be at most ${port.sizeBytesMax} bytes`;
        throw new RequestRefused({ code: 'body_too_large', message });
      }
      const outcome = await port.keep(made, chunk);
      if (outcome === 'ended') throw refused('the import has ended; create another one');
      if (outcome === 'no_room')
        throw new RequestRefused(withoutCapacity(port.unfinishedSizeBytesMax));
      if (outcome === 'no_storage')
        throw new RequestRefused({ code: 'unavailable', message: NO_STORAGE_FOR_IMPORT });
    }
    return { made, sha256: hash.digest('hex') };
  } catch (error) {
    await port.abandon(made);
    throw error;
  }
}

function openForm(headers: IncomingMessage['headers']) {
  try {
    return new Busboy({
      headers: headers as BusboyHeaders,
      limits: {
        fieldSize: FIELD_SIZE_BYTES_MAX,
        fields: FIELD_COUNT_MAX,
        files: 2,
        parts: PART_COUNT_MAX,
        headerPairs: FIELD_COUNT_MAX,
      },
    });
  } catch {
    throw refused(
      `the multipart body has no boundary, or too long a one; name one of at most ${BOUNDARY_LENGTH_MAX} characters in Content-Type`,
    );
  }
}

const formTooLarge = (): RequestRefused =>
  new RequestRefused({
    code: 'body_too_large',
    message: `the form must be at most ${FORM_SIZE_BYTES_MAX} bytes besides its file; shorten the fields, and send the file last`,
  });

const withoutCapacity = (limit: number): Problem => ({
  code: 'limit_reached',
  message: noCapacityForImport(limit),
  meta: { limit },
});

const refused = (message: string): RequestRefused => {
  const problem: Problem = { code: 'invalid_request', message };
  return new RequestRefused(problem);
};
