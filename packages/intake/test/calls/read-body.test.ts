import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { inflateBody as inflate } from '../../src/calls/inflate-body.ts';
import { readBody as read, readContentEncoding } from '../../src/calls/read-body.ts';

function withWrongChecksum(gzip: Buffer): Buffer {
  gzip.writeUInt32LE(0, gzip.length - 8);
  return gzip;
}
const inflateBody = (body: Uint8Array, encoding: 'gzip' | 'deflate', sizeBytesMax: number) =>
  inflate(body, encoding, sizeBytesMax, undefined);
const readBody = (body: Uint8Array) => read(body, undefined);
const bytes = (text: string) => new Uint8Array(Buffer.from(text));

describe('plain bodies', () => {
  test('JSON in UTF-8 is read, with its size in bytes', () => {
    expect(readBody(bytes('{"name":"Zoë"}'))).toEqual({
      outcome: 'read',
      value: { name: 'Zoë' },
      sizeBytes: 15,
      hasEscapes: false,
    });
  });

  test('escapes are noticed, since only they can bring in characters that Postgres refuses', () => {
    expect(readBody(bytes('{"name":"\\ud800"}'))).toMatchObject({ hasEscapes: true });
  });

  test('an empty body is read as no value, because some calls have no body', () => {
    expect(readBody(new Uint8Array())).toEqual({
      outcome: 'read',
      value: undefined,
      sizeBytes: 0,
      hasEscapes: false,
    });
  });

  test.each([
    ['a lone continuation byte', [0x80]],
    ['an overlong slash', [0xc0, 0xaf]],
    ['a surrogate in UTF-8', [0xed, 0xa0, 0x80]],
    ['a cut sequence', [0xe2, 0x82]],
    ['a character of latin-1', [0xfc]],
  ])(
    '%s is marked in its text, so that it can be no identifier, and reported with its place',
    (_, wrong) => {
      const body = Buffer.concat([
        Buffer.from('{"a":["'),
        Buffer.from(wrong),
        Buffer.from('\ufffd"]}'),
      ]);
      const found = readBody(body);
      if (found.outcome !== 'read') throw new Error(found.outcome);
      const [text = ''] = (found.value as { a: string[] }).a;
      expect(text.isWellFormed()).toBe(false);
      // U+FFFD that the sender wrote is no fault.
      expect(text.endsWith('\ufffd')).toBe(true);
      expect(found.hasEscapes).toBe(true);
      expect(found.faults?.get(null)).toMatchObject([{ kind: 'not-utf8', path: ['a', 0] }]);
    },
  );

  test('noncharacters and U+FFFD stay as they are, beside wrong bytes too', () => {
    const sent = '\ufdd0\ufffd\ufdd1';
    const body = Buffer.concat([
      Buffer.from(`{"a":"${sent}","b":"`),
      Buffer.from([0xff]),
      Buffer.from('"}'),
    ]);
    expect(readBody(body)).toMatchObject({ outcome: 'read', value: { a: sent } });
  });

  test('bytes that are no UTF-8 outside of texts are refused', () => {
    expect(readBody(new Uint8Array([0x7b, 0x80, 0x7d]))).toEqual({
      outcome: 'invalid-json',
      message: 'the body is not valid UTF-8',
    });
  });

  test('the message names the fault of invalid JSON and does not repeat the body', () => {
    const secret = 'card 4242424242424242';
    const found = readBody(bytes(`{"note": ${secret}}`));
    expect(found.outcome).toBe('invalid-json');
    expect(JSON.stringify(found)).not.toContain('4242');
    expect(readBody(bytes('{"a":'))).toEqual({
      outcome: 'invalid-json',
      message: 'the body is not valid JSON: it ends too early',
    });
  });

  test('10,000 levels of nesting are read without a crash', () => {
    expect(readBody(bytes('['.repeat(10_000) + ']'.repeat(10_000))).outcome).toBe('read');
  });
});

describe('compressed bodies', () => {
  const text = JSON.stringify({ event: 'x'.repeat(500) });

  test.each([
    ['gzip', 'gzip', gzipSync(text)],
    ['deflate with the zlib wrapper', 'deflate', deflateSync(text)],
    ['bare deflate', 'deflate', deflateRawSync(text)],
  ] as const)('%s is inflated, and its inflated size counts', async (_, encoding, body) => {
    expect(await inflateBody(body, encoding, text.length - 1)).toEqual({ outcome: 'too-large' });
    expect(await inflateBody(body, encoding, text.length)).toEqual(Buffer.from(text));
  });

  test.each([
    ['gzip', gzipSync(text)],
    ['deflate', deflateSync(text)],
    ['deflate', deflateRawSync(text)],
  ] as const)('any bytes behind the end of %s are refused', async (encoding, body) => {
    for (const rest of [Buffer.from('{}'), Buffer.alloc(1), Buffer.alloc(512)]) {
      const inflated = await inflateBody(Buffer.concat([body, rest]), encoding, 10_000);
      expect(inflated).toMatchObject({ outcome: 'invalid-encoding' });
    }
  });

  test('gzip may have several members, empty ones too', async () => {
    const empty = gzipSync('');
    const body = Buffer.concat([empty, gzipSync(text.slice(0, 9)), empty, gzipSync(text.slice(9))]);
    expect(await inflateBody(body, 'gzip', 10_000)).toEqual(Buffer.from(text));
  });

  test('a bomb costs no more than the limit', async () => {
    const bomb = gzipSync(Buffer.alloc(64 * 1_048_576));
    const before = process.memoryUsage().arrayBuffers;
    expect(await inflateBody(bomb, 'gzip', 64 * 1_024)).toEqual({ outcome: 'too-large' });
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1_048_576);
  });

  test.each([
    ['truncated gzip', 'gzip', gzipSync(text).subarray(0, -6)],
    ['gzip that is plain text', 'gzip', Buffer.from(text)],
    ['gzip with a wrong checksum', 'gzip', withWrongChecksum(gzipSync(text))],
    ['an empty gzip body', 'gzip', Buffer.alloc(0)],
    ['truncated deflate', 'deflate', deflateSync(text).subarray(0, 20)],
  ] as const)('%s is an encoding error', async (_, encoding, body) => {
    expect(await inflateBody(body, encoding, 1_024)).toMatchObject({ outcome: 'invalid-encoding' });
  });
});

test('content encodings are recognised in lower and upper case', () => {
  expect(
    ['', 'identity', 'GZIP', 'x-gzip', ' deflate ', 'br', 'gzip, gzip'].map(readContentEncoding),
  ).toEqual(['identity', 'identity', 'gzip', 'gzip', 'deflate', 'unsupported', 'unsupported']);
});

test('empty members and identity in a list of codings are ignored', () => {
  expect(
    [
      'gzip,',
      ', gzip',
      'identity, gzip',
      'deflate,identity,',
      ',',
      'identity,identity',
      'gzip,br',
    ].map(readContentEncoding),
  ).toEqual(['gzip', 'gzip', 'gzip', 'deflate', 'identity', 'identity', 'unsupported']);
});
