/** Hostile forms: all beside the file is bounded, and is answered before its end. */
import type { IncomingMessage } from 'node:http';
import { PassThrough, Readable } from 'node:stream';
import type { ImportRow } from '@sluice/database/imports/imports';
import { afterEach, expect, test, vi } from 'vitest';

import { RequestRefused } from '../../src/http/request-validation.ts';
import { receiveUpload, type UploadPort } from '../../src/imports/receive-upload.ts';

afterEach(() => void vi.useRealTimers());

const MEBIBYTE = 1_048_576;
const PIECE = Buffer.alloc(65_536, 'a');
const TYPE = { 'content-type': 'multipart/form-data; boundary=b' };

const partOf = (disposition: string, value: string): string =>
  `--b\r\nContent-Disposition: form-data; ${disposition}\r\n\r\n${value}\r\n`;
const NAME = partOf('name="name"', 'Orders');
const FILE_HEAD = '--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n';
const FILE = `${FILE_HEAD}a,b\r\n`;

/** Keeps the bytes in memory. */
function portOf(changes: Partial<UploadPort> = {}) {
  const kept: Buffer[] = [];
  const done = { beginCount: 0, abandonCount: 0 };
  const port: UploadPort = {
    begin: async () => {
      done.beginCount++;
      return {} as ImportRow;
    },
    keep: async (_, bytes) => {
      kept.push(bytes);
      return 'kept';
    },
    abandon: async () => void done.abandonCount++,
    sizeBytesMax: 100 * MEBIBYTE,
    unfinishedSizeBytesMax: 100 * MEBIBYTE,
    ...changes,
  };
  return { port, kept, done };
}

const receive = (body: Readable, port: UploadPort, headers: object = TYPE) =>
  receiveUpload(body as IncomingMessage, headers as IncomingMessage['headers'], port);

async function refusalOf(receiving: Promise<unknown>) {
  const error: unknown = await receiving.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(RequestRefused);
  return (error as RequestRefused).problem;
}

/** The start, and then 64 MB that are no part of a file. */
function endless(start: string, piece: Buffer = PIECE) {
  const sent = { sizeBytes: 0 };
  async function* pieces() {
    yield Buffer.from(start);
    for (; sent.sizeBytes < 64 * MEBIBYTE; sent.sizeBytes += piece.length) yield piece;
  }
  return { sent, body: Readable.from(pieces(), { objectMode: false }) };
}

const TOO_LARGE = {
  code: 'body_too_large',
  message:
    'the form must be at most 1048576 bytes besides its file; shorten the fields, and send the file last',
};

test.each([
  ['a field', `${NAME}--b\r\nContent-Disposition: form-data; name="description"\r\n\r\n`],
  ['the head of a part', `${NAME}--b\r\nContent-Disposition: form-data; name="`],
  ['a part that is neither field nor file', `${NAME}--b\r\nX: y\r\n\r\n`],
  ['what comes before the first part', ''],
  [
    'a field after the file',
    `${NAME}${FILE}--b\r\nContent-Disposition: form-data; name="x"\r\n\r\n`,
  ],
  ['the head of a part after the file', `${NAME}${FILE}--b\r\nX: `],
])('without an end is refused after a megabyte: %s', async (_, start) => {
  const { sent, body } = endless(start);
  const { port, done } = portOf();
  let sentSizeBytes: number | undefined;
  // The rest is let go by unread.
  const unpipe = body.unpipe.bind(body);
  body.unpipe = (form) => {
    sentSizeBytes ??= sent.sizeBytes;
    return unpipe(form);
  };
  expect(await refusalOf(receive(body, port))).toMatchObject(TOO_LARGE);
  expect(sentSizeBytes).toBeLessThan(4 * MEBIBYTE);
  expect(done.abandonCount).toBe(done.beginCount);
});

test('thousands of parts that are neither field nor file are refused', async () => {
  const { body } = endless(NAME, Buffer.from('--b\r\n\r\nx\r\n'.repeat(5_000)));
  expect(await refusalOf(receive(body, portOf().port))).toMatchObject({
    code: 'invalid_request',
    message: 'send at most 20 fields',
  });
});

test('a body in gzip is refused as such, and not as a broken form', async () => {
  const headers = { ...TYPE, 'content-encoding': 'gzip' };
  expect(await refusalOf(receive(Readable.from([PIECE]), portOf().port, headers))).toEqual({
    code: 'unsupported_media_type',
    message: 'the body must be sent uncompressed',
  });
});

test.each([
  ['none', 'multipart/form-data'],
  ['one of a kilobyte', `multipart/form-data; boundary=${'b'.repeat(1_024)}`],
])('a boundary that cannot be used is reported with the remedy: %s', async (_, type) => {
  const receiving = receive(Readable.from([PIECE]), portOf().port, { 'content-type': type });
  const { message } = await refusalOf(receiving);
  expect(message).toContain('name one of at most 70 characters in Content-Type');
});

test.each([
  ['a name of 200 KB', `name="file"; filename="${'a'.repeat(200_000)}"`, 'a,b'],
  ['no more than half of a quote', 'name="file"; filename="a.csv', 'a,b'],
  ['a name that is a path', 'name="file"; filename="../../etc/passwd"', 'a,b'],
  [
    'a form within',
    'name="file"; filename="a"',
    '--c\r\nContent-Disposition: form-data\r\n\r\nx\r\n--c--',
  ],
  ['what looks like the boundary', 'name="file"; filename="a"', '\r\n--\r\n-b\r\n --b\r\n--a'],
])('a file with %s comes byte for byte', async (_, disposition, file) => {
  const { port, kept } = portOf();
  const body = Readable.from([Buffer.from(`${NAME}${partOf(disposition, file)}--b--\r\n`)]);
  await receive(body, port);
  expect(Buffer.concat(kept).toString()).toBe(file);
});

// Almost a megabyte of each of hundreds of senders would wait in memory.
test('the bytes of a sender who stops are stored, though no other come', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  const { port, kept } = portOf();
  const body = new PassThrough();
  const receiving = receive(body, port);
  await new Promise((resolve) => body.write(`${NAME}${FILE_HEAD}${'x'.repeat(500_000)}`, resolve));
  await vi.waitFor(async () => {
    await vi.advanceTimersByTimeAsync(10_000);
    expect(Buffer.concat(kept).length).toBeGreaterThan(400_000);
  });
  vi.useRealTimers();
  body.end('y\r\n--b--\r\n');
  await receiving;
  expect(Buffer.concat(kept).toString()).toBe(`${'x'.repeat(500_000)}y`);
});
