/** The reader of answers, without a socket: valid answers, their ends, and every cut into pieces. */
import { describe, expect, test } from 'vitest';
import { LastHead, ResponseReader, type ReadState } from '../../src/http/http-response.ts';

const KEEP_ALIVE_MS = 15_000;

interface Read {
  readonly state: ReadState | 'ended';
  readonly status: number | null;
  readonly head: string;
  readonly body: string;
  readonly keepAliveMs: number;
}

/** As the first answer of a connection, and as one whose head came over it just before: both give the same result. */
function readPieces(pieces: readonly Buffer[]): Read {
  const lastHead = new LastHead();
  const first = readWith(lastHead, pieces);
  expect(readWith(lastHead, pieces)).toEqual(first);
  return first;
}

/** Fed piece by piece; an incomplete answer then meets the end of the connection. */
function readWith(lastHead: LastHead, pieces: readonly Buffer[]): Read {
  const reader = new ResponseReader(KEEP_ALIVE_MS, lastHead);
  let state: Read['state'] = 'reading';
  for (const piece of pieces) {
    // The connection refuses a piece that comes behind the answer.
    if (state !== 'reading') break;
    state = reader.read(piece);
  }
  if (state === 'reading' && reader.end()) state = 'ended';
  const { status, head, body, keepAliveMs } = reader;
  return { state, status, head, body, keepAliveMs };
}

const read = (text: string): Read => readPieces([Buffer.from(text, 'latin1')]);

const LENGTH_3 = 'HTTP/1.1 200 OK\r\ncontent-length: 3\r\n';
const CHUNKED = 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n';

describe('an answer', () => {
  test.each<[string, string, Partial<Read>]>([
    ['a length', `${LENGTH_3}\r\nabc`, { body: 'abc', keepAliveMs: KEEP_ALIVE_MS }],
    ['no body', 'HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n', { body: '' }],
    ['no reason', 'HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n', { status: 200 }],
    [
      'chunks',
      `${CHUNKED}3\r\nabc\r\nA ;x="y"\r\n0123456789\r\n0\r\n\r\n`,
      { body: 'abc0123456789' },
    ],
    ['trailers', `${CHUNKED}3\r\nabc\r\n0\r\na: b\r\nc: d\r\n\r\n`, { body: 'abc' }],
    [
      'other codings before chunked',
      'HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\nTransfer-Encoding: Chunked\r\n\r\n0\r\n\r\n',
      { body: '' },
    ],
    [
      'informational ones before it',
      `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 E\r\nx: y\r\n\r\n${LENGTH_3}\r\nabc`,
      { body: 'abc' },
    ],
    ['204', 'HTTP/1.1 204 No\r\n\r\n', { status: 204, keepAliveMs: KEEP_ALIVE_MS }],
  ])('with %s ends where it says, and the connection may be used again', (_, text, expected) => {
    expect(read(text)).toMatchObject({ state: 'complete', ...expected });
    expect(read(text).keepAliveMs).toBeGreaterThan(0);
  });

  test.each<[string, string]>([
    ['its server closes', `${LENGTH_3}Connection: Close\r\n\r\nabc`],
    ['HTTP/1.0 does not keep it', 'HTTP/1.0 200 OK\r\ncontent-length: 3\r\n\r\nabc'],
    ['something follows', `${LENGTH_3}\r\nabcd`],
    ['another answer follows', `${LENGTH_3}\r\nabc${LENGTH_3}\r\nabc`],
    ['it is not kept for long', `${LENGTH_3}keep-alive: timeout=2\r\n\r\nabc`],
    ['a 204 says that it has a body', 'HTTP/1.1 204 No\r\ncontent-length: 3\r\n\r\n'],
    ['a 304 says that it has a body', 'HTTP/1.1 304 No\r\ntransfer-encoding: chunked\r\n\r\n'],
    ['its body is cut', `HTTP/1.1 200 OK\r\ncontent-length: 99999\r\n\r\n${'x'.repeat(20_000)}`],
    ['its chunks are cut', `${CHUNKED}ffffff\r\n${'x'.repeat(20_000)}`],
  ])('is complete and its connection is not used again if %s', (_, text) => {
    expect(read(text)).toMatchObject({ state: 'complete', keepAliveMs: 0 });
  });

  test('has the time for which its connection is kept', () => {
    const keptFor = (field: string) => read(`${LENGTH_3}${field}\r\n\r\nabc`).keepAliveMs;
    expect(keptFor('Keep-Alive: timeout=5, max=100')).toBe(3_000);
    expect(keptFor('keep-alive: timeout=600')).toBe(KEEP_ALIVE_MS);
    expect(keptFor('keep-alive: max=100')).toBe(KEEP_ALIVE_MS);
    const old = 'HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 0\r\n\r\n';
    expect(read(old).keepAliveMs).toBe(KEEP_ALIVE_MS);
  });

  test.each<[string, string]>([
    ['no length', 'HTTP/1.1 200 OK\r\n\r\nabc'],
    [
      'a coding that has no end of its own',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip\r\n\r\nabc',
    ],
  ])('with %s ends with its connection', (_, text) => {
    expect(read(text)).toMatchObject({ state: 'ended', status: 200, body: 'abc', keepAliveMs: 0 });
  });

  test.each<[string, string]>([
    ['in its head', LENGTH_3],
    ['in its body', `${LENGTH_3}\r\nab`],
    ['in a chunk', `${CHUNKED}3\r\nab`],
    ['before the last chunk', `${CHUNKED}3\r\nabc\r\n`],
    ['in its trailers', `${CHUNKED}0\r\na: b\r\n`],
    ['after an informational one', 'HTTP/1.1 100 Continue\r\n\r\n'],
  ])('that breaks off %s is not complete', (_, text) => {
    expect(read(text)).toMatchObject({ state: 'reading' });
  });

  test('keeps no more of a body than its first 16 KB', () => {
    const piece = Buffer.alloc(10_000, 'x');
    const head = Buffer.from('HTTP/1.1 200 OK\r\n\r\n');
    expect(readPieces([head, piece, piece, piece]).body).toHaveLength(16 * 1024);
  });
});

describe('it is no answer', () => {
  test.each<[string, string]>([
    ['of another protocol', 'SSH-2.0-OpenSSH_9.6\r\n'],
    ['that begins with something else', 'x'],
    ['of HTTP/2', 'HTTP/2.0 200 OK\r\n\r\n'],
    ['with an empty line before it', `\r\n${LENGTH_3}\r\nabc`],
    ['with a status that is none', 'HTTP/1.1 2OO OK\r\n\r\n'],
    ['with a status of two digits', 'HTTP/1.1 99 OK\r\n\r\n'],
    ['that changes the protocol', 'HTTP/1.1 101 Switching\r\nupgrade: x\r\n\r\n'],
    ['with too many informational ones', 'HTTP/1.1 103 E\r\n\r\n'.repeat(11)],
    ['with a head that has no end', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}`],
    ['with a head that ends too late', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(20_000)}\r\n\r\n`],
    ['with a field without a name', 'HTTP/1.1 200 OK\r\n: x\r\n\r\n'],
    ['with a space before the colon', 'HTTP/1.1 200 OK\r\ncontent-length : 3\r\n\r\nabc'],
    ['with a folded field', 'HTTP/1.1 200 OK\r\nx: y\r\n z\r\n\r\n'],
    ['with line feeds only', 'HTTP/1.1 200 OK\nx: y\n\n'],
    ['with a bare line feed', 'HTTP/1.1 200 OK\r\nx: y\nz: a\r\n\r\n'],
    ['with a bare carriage return', 'HTTP/1.1 200 OK\r\nx: y\rz\r\n\r\n'],
    ['with a null byte', 'HTTP/1.1 200 OK\r\nx: \0\r\n\r\n'],
    ['with two lengths', `${LENGTH_3}content-length: 3\r\n\r\nabc`],
    ['with a list of lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 3, 3\r\n\r\nabc'],
    ['with a negative length', 'HTTP/1.1 200 OK\r\ncontent-length: -3\r\n\r\nabc'],
    ['with an empty length', 'HTTP/1.1 200 OK\r\ncontent-length:\r\n\r\nabc'],
    ['with a huge length', `HTTP/1.1 200 OK\r\ncontent-length: ${'9'.repeat(30)}\r\n\r\n`],
    ['with a length and chunks', `${LENGTH_3}transfer-encoding: chunked\r\n\r\n0\r\n\r\n`],
    ['with a chunk of no size', `${CHUNKED}\r\n`],
    ['with a chunk of a size that is no number', `${CHUNKED}0x3\r\nabc\r\n`],
    ['with a chunk that is longer than its size', `${CHUNKED}3\r\nabcd\r\n0\r\n\r\n`],
    ['with a size of a chunk that has no end', `${CHUNKED}3;${'x'.repeat(2_000)}`],
    ['with a bare line feed in its trailers', `${CHUNKED}0\r\na: b\nc: d\r\n\r\n`],
    ['with a trailer that begins with a bare line feed', `${CHUNKED}0\r\n\na: b\r\n\r\n`],
    ['with trailers that have no end', `${CHUNKED}0\r\n${'a: b\r\n'.repeat(100)}`],
  ])('%s', (_, text) => {
    expect(read(text)).toMatchObject({ state: 'misbehaving' });
  });
});

test('an answer is the same however it is cut into pieces', () => {
  const texts = [
    `${LENGTH_3}set-cookie: a\r\n\r\nabc`,
    `HTTP/1.1 103 E\r\nx: y\r\n\r\n${LENGTH_3}\r\nabc`,
    `${CHUNKED}3\r\nabc\r\nA;x\r\n0123456789\r\n0\r\na: b\r\n\r\n`,
    `${CHUNKED}0\r\na\nb: c\r\n\r\n`,
    'HTTP/1.1 200 OK\r\n\r\nabc',
    `${CHUNKED}3\r\nabcd\r\n0\r\n\r\n`,
    'HTTP/1.1 200 OK\r\nx: y\r\n z\r\n\r\n',
    'garbage',
  ];
  for (const text of texts) {
    const bytes = Buffer.from(text, 'latin1');
    const whole = JSON.stringify(readPieces([bytes]));
    const cuts = [[...bytes].map((byte) => Buffer.from([byte]))];
    for (let first = 1; first < bytes.length; first++) {
      const begin = bytes.subarray(0, first);
      for (let second = first + 1; second < bytes.length; second++)
        cuts.push([begin, bytes.subarray(first, second), bytes.subarray(second)]);
    }
    const different = cuts.filter((pieces) => JSON.stringify(readPieces(pieces)) !== whole);
    expect(different.map((pieces) => pieces.map(String))).toEqual([]);
  }
});
