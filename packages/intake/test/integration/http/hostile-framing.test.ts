/**
 * The corpus of requests with framing that no honest client sends.
 *
 * Each has its answer: intake refuses it, uWebSockets.js refuses it before, it is cut after a while, or it gets through
 * (`docs/operations/proxy.md` has the proxy settings that stop these). They must not harm the next caller.
 */
import { once } from 'node:events';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  PIPELINES_AUTHORIZATION,
  startIntakeUnderTest,
  type IntakeUnderTest,
} from '../support/intake-under-test.ts';
import { openRaw, untilClosed, type RawConnection } from '../support/raw-http.ts';
import { callHead, eventsNamed, expectUnharmed } from '../support/unharmed.ts';

let intake: IntakeUnderTest;
beforeAll(async () => {
  intake = await startIntakeUnderTest();
});
afterAll(() => intake.close());

const BODY = '{"userId":"u","event":"hostile"}';
const SIZE = BODY.length;
const HEX = SIZE.toString(16);
const LENGTH = `Content-Length: ${SIZE}`;
const sized = (...lines: string[]): string => callHead(...lines, LENGTH) + BODY;
const chunked = (body: string): string => callHead('Transfer-Encoding: chunked') + body;
const END = '0\r\n\r\n';
const coded = (coding: string): string =>
  callHead(`Transfer-Encoding: ${coding}`) + `${HEX}\r\n${BODY}\r\n${END}`;
const floodOf = (count: number): string =>
  sized(...Array.from({ length: count }, (_, index) => `X-${index}: y`));

/** As intake counts (`silent-connections.ts`). */
const untilCut = (raw: RawConnection, msMax: number, name = ''): Promise<void> =>
  untilClosed(raw, msMax, name, 250);

describe('refused at once, and the connection ended', () => {
  test.each<[string, string, number]>([
    ['a chunk size that is not hexadecimal', chunked(`zz\r\n${BODY}\r\n${END}`), 400],
    ['a chunk size with a sign', chunked(`+${HEX}\r\n${BODY}\r\n${END}`), 400],
    ['a negative chunk size', chunked(`-${HEX}\r\n${BODY}\r\n${END}`), 400],
    ['a chunk size with 0x', chunked(`0x${HEX}\r\n${BODY}\r\n${END}`), 400],
    ['a chunk size past 64 bits', chunked(`FFFFFFFFFFFFFFFFF\r\n${BODY}\r\n${END}`), 400],
    ['a chunk size that wraps to a small one', chunked(`100000000000000${HEX}\r\n${BODY}`), 400],
    ['a chunk extension over two lines', chunked(`${HEX};a="\r\n"\r\n${BODY}\r\n${END}`), 400],
    ['a list of lengths', callHead(`Content-Length: ${SIZE}, ${SIZE}`) + BODY, 400],
    ['a length with a plus', callHead(`Content-Length: +${SIZE}`) + BODY, 400],
    ['a length with a fraction', callHead(`Content-Length: ${SIZE}.0`) + BODY, 400],
    ['a length past 64 bits', callHead(`Content-Length: 18446744073709551648`) + BODY, 400],
    ['an empty length', callHead('Content-Length:'), 400],
    ['a length with an underscore', callHead(`Content-Length: 3_2`) + BODY, 400],
    ['an empty length beside another', callHead('Content-Length:', LENGTH) + BODY, 400],
    ['chunked with a parameter', coded('chunked;q=1'), 400],
    ['chunked in quotes', coded('"chunked"'), 400],
    ['chunked before another coding', coded('chunked, identity'), 400],
    ['an empty transfer coding', coded(''), 400],
    ['a transfer coding that is none', callHead('Transfer-Encoding: identity', LENGTH) + BODY, 400],
    ['a negative last chunk', chunked(`${HEX}\r\n${BODY}\r\n-0\r\n\r\n`), 400],
    ['a chunk that is longer than its size', chunked(`5\r\n${BODY}\r\n${END}`), 400],
    ['a host with a space', sized().replace('Host: a', 'Host: a b'), 400],
    ['a host with a path', sized().replace('Host: a', 'Host: a/b'), 400],
    ['a host with a user', sized().replace('Host: a', 'Host: b@a'), 400],
    ['a list of hosts', sized().replace('Host: a', 'Host: a,b'), 400],
    ['two hosts', sized('Host: b'), 400],
    ['two equal credentials', sized(`Authorization: ${PIPELINES_AUTHORIZATION}`), 400],
    ['two different credentials', sized('authorization: Basic eDo='), 400],
    ['no host', sized().replace('Host: a\r\n', ''), 400],
    ['a hundred and one headers', floodOf(101), 431],
    ['a thousand headers', floodOf(1_000), 431],
    ['HTTP/1.0', sized().replace('1.1', '1.0'), 505],
    ['HTTP/1.2', sized().replace('1.1', '1.2'), 505],
    ['HTTP/2 without asking', 'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n', 505],
    ['TLS', '\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03', 505],
    ['a whole address in place of a path', sized().replace('/v1', 'http://a/v1'), 505],
    ['a space in the path', sized().replace('/v1/track', '/v1/tr ack'), 505],
    ['tabs between method, path and version', sized().replace(/ (.+) /, '\t$1\t'), 505],
    ['lines that end with LF alone', sized().replaceAll('\r\n', '\n'), 505],
    ['CONNECT', 'CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n', 505],
  ])('%s', async (_, bytes, status) => {
    const raw = openRaw(intake.port);
    raw.write(Buffer.from(bytes, 'latin1'));
    expect((await raw.answer()).status).toBe(status);
    await untilClosed(raw);
    await expectUnharmed(intake);
  });
});

// Each waits for more than will come. No other request may come from their address meanwhile (`silent-connections.ts`).
describe('intake cuts requests that it never understands, without an answer or an event', () => {
  const heads: Record<string, string> = {
    'Transfer-Encoding with a space before the colon':
      callHead('Transfer-Encoding : chunked') + `${HEX}\r\n${BODY}\r\n${END}`,
    'Content-Length with a space before the colon': callHead(`Content-Length : ${SIZE}`) + BODY,
    'a folded header': sized('X-A: b\r\n c'),
    'a folded transfer coding':
      callHead('Transfer-Encoding:\r\n chunked') + `${HEX}\r\n${BODY}\r\n${END}`,
    'one line that ends with LF alone': sized('X-A: b\nX-B: c'),
    'a CR in a header': sized('X-A: b\rX-B: c'),
    'a NUL in a value': sized('X-A: b\0c'),
    'a NUL in a name': sized('X\0A: b'),
    'a space in a name': sized('X A: b'),
    'a line without a colon': sized('XA'),
    'an empty line before it': `\r\n${sized()}`,
    'HTTP/0.9': 'GET /\r\n',
    'a head that stops': sized().slice(0, 60),
    'nothing at all': '',
  };
  const expectCut = async (sent: Record<string, string>, msMax: number): Promise<void> => {
    const takenCount = eventsNamed(intake, 'hostile').length;
    const heard = await Promise.all(
      Object.entries(sent).map(async ([name, bytes]) => {
        const raw = openRaw(intake.port);
        raw.write(Buffer.from(bytes, 'latin1'));
        await untilCut(raw, msMax, name);
        return [name, raw.text()];
      }),
    );
    expect(heard.filter(([, answer]) => answer !== '')).toEqual([]);
    await expectUnharmed(intake);
    expect(eventsNamed(intake, 'hostile')).toHaveLength(takenCount);
  };

  test('a head within 3 s', () => expectCut(heads, 3_500));

  test(
    'a body, or a head behind a call on its connection, within 10 s',
    { timeout: 180_000 },
    async () => {
      const after = openRaw(intake.port);
      after.write(callHead(`Content-Length: 2`) + '{}');
      expect((await after.answer()).status).toBe(400);
      const answered = after.text();
      after.write(sized('X-A: b\r\n c'));
      await expectCut({ body: callHead('Content-Length: 9999999999') + BODY }, 35_000);
      await untilClosed(after);
      expect(after.text()).toBe(answered);
    },
  );
});

test('a call that takes longer than a head may is answered, beside silent connections', async () => {
  const raw = openRaw(intake.port);
  raw.write(callHead(LENGTH) + BODY.slice(0, 5));
  await expectUnharmed(intake);
  const silent = [openRaw(intake.port), openRaw(intake.port)];
  // When the first one would be closed too, had it not sent its head.
  for (const each of silent) await untilCut(each, 3_500);
  expect(raw.socket.closed).toBe(false);
  raw.write(BODY.slice(5));
  expect((await raw.answer()).status).toBe(200);
  raw.destroy();
  await expectUnharmed(intake);
});

// uWebSockets.js reads the extension as digits of the size, and waits for a chunk that is longer than the sent one.
test('a chunk extension or a missing chunk is cut after 3 s, and stores no event', async () => {
  const takenCount = eventsNamed(intake, 'hostile').length;
  const silentBefore = intake.cuts.counts.get('silent') ?? 0;
  const startedAtMs = performance.now();
  const all = [
    chunked(`${HEX};a=b\r\n${BODY}\r\n${END}`),
    chunked(`${HEX};a\r\n${BODY}\r\n${END}`),
    chunked(`2\r\n{}\r\n${HEX};a=b\r\n${BODY}\r\n${END}`),
    chunked(''),
  ].map((bytes) => {
    const raw = openRaw(intake.port);
    raw.write(bytes);
    return raw;
  });
  for (const raw of all) {
    await untilCut(raw, 6_000);
    expect(raw.text()).toBe('');
  }
  expect(intake.cuts.counts.get('silent')).toBeGreaterThanOrEqual(silentBefore + all.length);
  expect(performance.now() - startedAtMs).toBeGreaterThan(2_000);
  await expectUnharmed(intake);
  expect(eventsNamed(intake, 'hostile')).toHaveLength(takenCount);
});

// uWebSockets.js calls back for each chunk that it reads, in one turn of the event loop: 0.2 s for 2 MB.
describe.each([
  ['by its own setting', false],
  ['by the bound of intake', true],
])('with the receive buffer that the kernel has %s', (_, hasSmallBuffers) => {
  let flooded: IntakeUnderTest;
  beforeAll(async () => {
    flooded = await startIntakeUnderTest(undefined, {}, 10_000, hasSmallBuffers);
  });
  afterAll(() => flooded.close());

  test.each(['/v1/track', '/v1/batch', '/v1/stream', '/nowhere'])(
    'POST %s in hundreds of thousands of chunks of one byte is cut, and intake holds no byte of it',
    async (path) => {
      const raw = openRaw(flooded.port);
      raw.write(callHead('Transfer-Encoding: chunked').replace('/v1/track', path));
      raw.write('1\r\n \r\n'.repeat(300_000));
      await untilClosed(raw, 10_000);
      expect(raw.text()).toBe('');
      // The unknown path has no owner.
      expect(flooded.cuts.takeSummary()).toEqual({
        count: 1,
        countsByReason: { too_many_chunks: 1 },
        last: {
          reason: 'too_many_chunks',
          address: '127.0.0.1',
          ...(path !== '/nowhere' && { environmentId: 1 }),
        },
      });
      await expectUnharmed(flooded);
      expect(flooded.held()).toMatchObject({ collectedSizeBytes: 0, places: 0, inFlight: 0 });
    },
  );
});

// uWebSockets.js does not report the malformed ones, so each connection on which chunks came ends.
test.each<[string, string]>([
  ['a chunk size with a space after it', chunked(`${HEX} \r\n${BODY}\r\n${END}`)],
  ['chunks whose lines end with LF alone', chunked(`${HEX}\n${BODY}\n0\n\n`)],
  ['a chunk that ends with anything', chunked(`${HEX}\r\n${BODY}XX${END}`)],
  ['Chunked', callHead('Transfer-Encoding: Chunked') + `${HEX}\r\n${BODY}\r\n${END}`],
])('%s: read as it was meant, and the connection ended after the answer', async (_, bytes) => {
  const raw = openRaw(intake.port);
  raw.write(bytes);
  const answer = await raw.answer();
  expect(answer.status).toBe(200);
  expect(answer.text).toMatch(/^connection: close/im);
  await untilClosed(raw);
  await expectUnharmed(intake);
});

test.each(['GET /livez', 'HEAD /livez', 'OPTIONS /v1/track'])(
  'the body of %s is never read as a call, and in chunks it ends the connection',
  async (line) => {
    const takenCount = eventsNamed(intake, 'hostile').length;
    const inside = sized();
    const head = (framing: string) => callHead(framing).replace('POST /v1/track', line);
    const sent = [
      head(`Content-Length: ${inside.length}`) + inside,
      `${head('Transfer-Encoding: chunked')}${inside.length.toString(16)}\r\n${inside}\r\n${END}`,
    ];
    for (const [index, bytes] of sent.entries()) {
      const raw = openRaw(intake.port);
      raw.write(bytes);
      const status =
        index === 1 && !line.startsWith('GET') ? /^HTTP\/1\.1 400/ : /^HTTP\/1\.1 20[04]/;
      await vi.waitFor(() => expect(raw.text()).toMatch(status), 20_000);
      if (index === 1) await untilClosed(raw);
      await expectUnharmed(intake);
      expect(raw.text().match(/HTTP\/1\.1/g)).toHaveLength(1);
      raw.destroy();
    }
    expect(eventsNamed(intake, 'hostile')).toHaveLength(takenCount);
  },
);

describe('let through by uWebSockets.js', () => {
  test.each<[string, string]>([
    ['a length with spaces around it', callHead(`Content-Length:   ${SIZE}  `) + BODY],
    ['a length with zeros before it', callHead(`Content-Length: 00${SIZE}`) + BODY],
    // It trims bytes over 0x7F as it does white space, and does not show them.
    ['a length with a byte behind it', callHead(`Content-Length: ${SIZE}\xa0`) + BODY],
    ['a transfer coding with a byte behind it', coded('chunked\xa0')],
  ])('%s: read as it was meant', async (_, bytes) => {
    const raw = openRaw(intake.port);
    raw.write(bytes);
    expect((await raw.answer()).status).toBe(200);
    raw.destroy();
    await expectUnharmed(intake);
  });

  // It sees no body in requests in which another reader sees one: a proxy that passes these on could be fooled.
  test.each<[string, string]>([
    ['a chunk size with a space before it', chunked(` ${HEX}\r\n${BODY}\r\n${END}`)],
    ['an empty chunk size', chunked(`\r\n${BODY}\r\n${END}`)],
    ['a header without a name', sized(': b')],
  ])('%s: read as no body, which is refused', async (_, bytes) => {
    const takenCount = eventsNamed(intake, 'hostile').length;
    const raw = openRaw(intake.port);
    raw.write(bytes);
    expect((await raw.answer()).status).toBe(400);
    raw.destroy();
    await expectUnharmed(intake);
    expect(eventsNamed(intake, 'hostile')).toHaveLength(takenCount);
  });
});

// uWebSockets issue 1776. Its fix left these places: such a sender gets 505 and its call is not taken.
test('a call that comes in two pieces is read, but for one that is cut before its path or in its version', async () => {
  await expectUnharmed(intake);
  const call = sized();
  const version = call.indexOf(' HTTP/1.1');
  const cuts = Array.from({ length: call.length - 1 }, (_, index) => index + 1);
  const pieces = cuts.map((cut) => {
    const raw = openRaw(intake.port);
    raw.socket.setNoDelay();
    raw.write(call.slice(0, cut));
    return raw;
  });
  // Earlier bytes are read before this is answered. Not by a call that passes the broker: half a head may wait for 2.5 s.
  await Promise.all(pieces.map(({ socket }) => once(socket, 'connect')));
  const last = openRaw(intake.port);
  last.write('GET /livez HTTP/1.1\r\nHost: a\r\n\r\n');
  expect((await last.answer()).status).toBe(200);
  last.destroy();
  const takenCount = eventsNamed(intake, 'hostile').length;
  for (const [index, raw] of pieces.entries()) raw.write(call.slice(cuts[index]));
  const answers = await Promise.all(pieces.map((raw) => raw.answer()));
  const refused = cuts.filter((_, index) => answers[index]?.status !== 200);
  const inVersion = Array.from({ length: 10 }, (_, index) => version + 1 + index);
  expect(refused).toEqual(['POST '.length, ...inVersion]);
  for (const cut of refused) expect(answers[cut - 1]?.status).toBe(505);
  for (const raw of pieces) raw.destroy();
  await expectUnharmed(intake);
  expect(eventsNamed(intake, 'hostile')).toHaveLength(takenCount + cuts.length - refused.length);
});

test.each([
  ['POST', '/v1/track', '{"userId":"u","event":"e"}'],
  ['POST', '/v1/track', 'not json'],
  ['POST', '/v1/stream', '{"type":"track","userId":"u","event":"e"}\n'],
  ['GET', '/livez', undefined],
  ['GET', '/nowhere', undefined],
  ['GET', '/v1/projects/unknown/settings', undefined],
  ['OPTIONS', '/v1/track', undefined],
])('the answer to %s %s forbids browsers to guess its type', async (method, path, body) => {
  const answer = await fetch(intake.url + path, {
    method,
    headers: { Authorization: PIPELINES_AUTHORIZATION },
    ...(body !== undefined && { body }),
  });
  expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
  if (method !== 'OPTIONS') expect(answer.headers.get('content-type')).toMatch(/; charset=utf-8$/);
});
