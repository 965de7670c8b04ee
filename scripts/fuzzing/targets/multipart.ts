/** A file sent as a form: it is kept whole, byte for byte, or deleted, and the sender gets the fault. It always ends. */
import { createHash } from 'node:crypto';
import { equal, ok } from 'node:assert/strict';
import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { RequestRefused } from '@sluice/api/http/request-validation';
import { receiveUpload, type UploadPort } from '@sluice/api/imports/receive-upload';
import type { ImportRow } from '@sluice/database/imports/imports';
import { cut, type FuzzTarget } from '../fuzz-target.ts';

const BOUNDARY = 'edge';
const TIMEOUT_MS = 10_000;
const ROW = { importId: 'imp' } as unknown as ImportRow;

const form = (...parts: string[]): string =>
  `${parts.map((part) => `--${BOUNDARY}\r\n${part}\r\n`).join('')}--${BOUNDARY}--\r\n`;
const FIELD = 'content-disposition: form-data; name="name"\r\n\r\nJan';
const FILE =
  'content-disposition: form-data; name="file"; filename="a.csv"\r\ncontent-type: text/csv; charset=utf-8\r\n\r\na,b\n1,2\n';

/** By RFC 2046 alone: the bytes stand whole between the head of a part and the next boundary. */
const isPart = (body: Buffer, bytes: Buffer): boolean =>
  body.includes(Buffer.concat([Buffer.from('\r\n\r\n'), bytes, Buffer.from(`\r\n--${BOUNDARY}`)]));

/** @public `scripts/fuzz.ts` imports it by the file's name. */
export const target: FuzzTarget = {
  seeds: [form(FIELD, FILE), form(FILE), form(FILE, FIELD), form(FIELD), form(FILE, FILE)],
  words: [
    `--${BOUNDARY}`,
    `--${BOUNDARY}--`,
    '\r\n',
    '\r\n\r\n',
    'content-disposition: form-data; name="',
    'filename="',
    '; charset="',
    'content-type: ',
    'content-transfer-encoding: base64',
    '__proto__',
    '"',
    '\0',
    '\xc3',
  ],
  async run(input, random) {
    const kept: Buffer[] = [];
    let isBegun = false;
    let isAbandoned = false;
    const port: UploadPort = {
      async begin() {
        isBegun = true;
        return ROW;
      },
      keep: async (_, bytes) => {
        kept.push(Buffer.from(bytes));
        return 'kept';
      },
      abandon: async () => void (isAbandoned = true),
      sizeBytesMax: 1_000_000,
      unfinishedSizeBytesMax: 1_000_000,
    };
    const payload = Readable.from(cut(input, random)) as unknown as IncomingMessage;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(() => reject(new Error('no end')), TIMEOUT_MS);
    });
    const headers = { 'content-type': `multipart/form-data; boundary=${BOUNDARY}` };
    try {
      const { sha256 } = await Promise.race([receiveUpload(payload, headers, port), late]);
      equal(sha256, createHash('sha256').update(Buffer.concat(kept)).digest('hex'));
      ok(!isAbandoned, 'kept and abandoned');
      ok(isPart(input, Buffer.concat(kept)), 'another file than the sender sent');
    } catch (error) {
      if (!(error instanceof RequestRefused)) throw error;
      equal(isAbandoned, isBegun, 'a refused form whose file stays');
    } finally {
      clearTimeout(timer);
    }
  },
};
