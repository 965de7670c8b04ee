/**
 * Hostile acts of a connection before, in and after a call.
 *
 * It gets an answer or an end, and does no harm to others.
 */
import { TickClock } from '@sluice/platform/testing/tick-clock';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startIntakeUnderTest, type IntakeUnderTest } from '../support/intake-under-test.ts';
import { openRaw, untilClosed } from '../support/raw-http.ts';
import { callHead, eventsNamed, expectUnharmed } from '../support/unharmed.ts';

let intake: IntakeUnderTest;
beforeAll(async () => {
  intake = await startIntakeUnderTest();
});
afterAll(() => intake.close());

const CHUNKED = '2\r\n{}\r\n0\r\n\r\n';
test('a header of 5 MB is refused and the connection ended', async () => {
  const raw = openRaw(intake.port);
  raw.write(`POST /v1/track HTTP/1.1\r\nHost: x\r\nX-Big: `);
  for (let sent = 0; sent < 5; sent++) raw.write('x'.repeat(1_048_576));
  const answer = await raw.answer();
  expect([431, 400, undefined]).toContain(answer.status);
  raw.destroy();
  await expectUnharmed(intake);
});

test.each([
  ['two equal lengths', ['Content-Length: 2', 'Content-Length: 2'], '{}'],
  ['two different lengths', ['Content-Length: 2', 'Content-Length: 40'], '{}'],
  [
    'a length and chunks',
    ['Content-Length: 2', 'Transfer-Encoding: chunked'],
    '2\r\n{}\r\n0\r\n\r\n',
  ],
  ['an unknown transfer coding', ['Transfer-Encoding: xchunked'], '2\r\n{}\r\n0\r\n\r\n'],
  ['two transfer codings', ['Transfer-Encoding: gzip', 'Transfer-Encoding: chunked'], CHUNKED],
  ['chunked twice', ['Transfer-Encoding: chunked', 'Transfer-Encoding: chunked'], CHUNKED],
  [
    'identity, then chunked',
    ['Transfer-Encoding: identity', 'Transfer-Encoding: chunked'],
    CHUNKED,
  ],
  ['an empty transfer coding', ['Transfer-Encoding:', 'Content-Length: 2'], '{}'],
  ['a list of transfer codings', ['Transfer-Encoding: gzip, chunked'], '2\r\n{}\r\n0\r\n\r\n'],
  ['a negative length', ['Content-Length: -1'], '{}'],
  ['a length that is no number', ['Content-Length: 0x2'], '{}'],
])('%s: refused, and the connection ended', async (_, lines, body) => {
  const raw = openRaw(intake.port);
  raw.write(callHead(...lines) + body);
  const answer = await raw.answer();
  expect(answer.status).toBe(400);
  await untilClosed(raw);
  await expectUnharmed(intake);
});

test.each(['GET /livez', 'HEAD /livez', 'GET /auth', 'OPTIONS /v1/track'])(
  '%s with a body that has no certain end: refused, and the connection ended',
  async (line) => {
    const raw = openRaw(intake.port);
    raw.write(`${line} HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nContent-Length: 40\r\n\r\n{}`);
    expect((await raw.answer()).status).toBe(400);
    await untilClosed(raw);
    await expectUnharmed(intake);
  },
);

test.each(['/livez', '/auth', '/api/v1/accounts/region'])(
  'HEAD %s is answered as GET is, without the body',
  async (path) => {
    const asked = await fetch(`${intake.url}${path}`, { method: 'HEAD' });
    const shown = await fetch(`${intake.url}${path}`);
    expect(asked.status).toBe(shown.status);
    expect(asked.headers.get('content-type')).toBe(shown.headers.get('content-type'));
    expect(await asked.text()).toBe('');
    expect(Number(asked.headers.get('content-length'))).toBeGreaterThan(0);
  },
);

test('a connection takes the next call after HEAD, and ends if a header asks for it', async () => {
  const raw = openRaw(intake.port);
  raw.write('HEAD /livez HTTP/1.1\r\nHost: a\r\n\r\n');
  await vi.waitFor(() => expect(raw.text()).toMatch(/^HTTP\/1.1 200 .*\r\n\r\n$/s), 20_000);
  raw.write('GET /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  await untilClosed(raw);
  expect(raw.text()).toMatch(/alive\n$/);
  const last = openRaw(intake.port);
  last.write('HEAD /livez HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  await untilClosed(last);
});

test('a chunked body is read whole', async () => {
  const raw = openRaw(intake.port);
  raw.write(callHead('Transfer-Encoding: chunked'));
  const text = JSON.stringify({ userId: 'a', event: 'chunked' });
  for (const character of text) raw.write(`1\r\n${character}\r\n`);
  raw.write('0\r\n\r\n');
  expect((await raw.answer()).status).toBe(200);
  raw.destroy();
});

test('a connection cut in the middle of a body stores no event', async () => {
  const raw = openRaw(intake.port);
  raw.write(`${callHead('Content-Length: 1000')}{"userId":"a","event":"cut"`);
  await new Promise((resolve) => raw.socket.once('connect', resolve));
  raw.destroy();
  await expectUnharmed(intake);
  expect(eventsNamed(intake, 'cut')).toEqual([]);
});

test('two hundred bodies that stop halfway cost bounded memory, and intake answers other calls', async () => {
  const half = `{"userId":"a","event":"${'x'.repeat(40_000)}`;
  const callers = Array.from({ length: 200 }, () => {
    const raw = openRaw(intake.port);
    raw.write(callHead('Content-Length: 60000') + half);
    return raw;
  });
  const answers = await Promise.race(callers.map((raw) => raw.answer()));
  expect(answers).toMatchObject({ status: 503 });
  expect(answers.text).toMatch(/Retry-After: \d+/);
  await expectUnharmed(intake);
  for (const raw of callers) raw.destroy();
  await expectUnharmed(intake);
});

test('callers that hang up before the answer leave intake unharmed', async () => {
  for (let n = 0; n < 50; n++) {
    const raw = openRaw(intake.port);
    const body = JSON.stringify({ userId: 'a', event: `hung up ${n}` });
    raw.write(callHead(`Content-Length: ${body.length}`) + body);
    raw.socket.once('connect', () => raw.destroy());
  }
  await expectUnharmed(intake);
});

test(
  'a body that drips in does not hold up other calls, and its connection is ended',
  { timeout: 180_000 },
  async () => {
    const raw = openRaw(intake.port);
    raw.write(callHead('Content-Length: 1000'));
    const drip = setInterval(() => raw.write('x'), 500);
    await expectUnharmed(intake);
    await untilClosed(raw, 35_000);
    clearInterval(drip);
    await expectUnharmed(intake);
  },
);

test('pipelined calls, which uWebSockets.js cannot answer in turn, end the connection and leave intake unharmed', async () => {
  const raw = openRaw(intake.port);
  const body = JSON.stringify({ userId: 'a', event: 'pipelined' });
  const call = callHead(`Content-Length: ${body.length}`) + body;
  raw.write(call + call + call);
  expect(await raw.answer()).toMatchObject({ status: undefined, isClosed: true });
  await expectUnharmed(intake);
});

const refusedCall = 'POST /v1/track HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\n{}';
test.each([
  ['OPTIONS /v1/track', 'OPTIONS /v1/track HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['GET /livez', 'GET /livez HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['HEAD /livez', 'HEAD /livez HTTP/1.1\r\nHost: a\r\n\r\n'],
  ['a call without credentials', refusedCall],
  ['a call of no sense', `${callHead('Content-Length: 2')}{}`],
])(
  '%s, a hundred thousand times without waiting for an answer, ends the connection after a few',
  async (_, request) => {
    const raw = openRaw(intake.port);
    raw.write(request.repeat(100_000));
    await untilClosed(raw, 20_000);
    expect(raw.text().split('HTTP/1.1 ').length).toBeLessThan(1_000);
    await expectUnharmed(intake);
  },
);

test.each([
  ['POST /nowhere', 404],
  ['PATCH /v1/track', 405],
  ['POST /livez', 405],
])(
  '%s is answered %i once the body has come, so that no reset can take the answer',
  async (line, status) => {
    const raw = openRaw(intake.port);
    raw.write(
      `${line} HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n${'x'.repeat(1_000_000)}`,
    );
    await expectUnharmed(intake);
    expect(raw.text()).toBe('');
    raw.write('x'.repeat(1_000_000));
    expect((await raw.answer()).status).toBe(status);
    await untilClosed(raw);
  },
);

test('of a body to an unknown path 16 MB are read and no more', async () => {
  const raw = openRaw(intake.port);
  raw.write('POST /nowhere HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n');
  const chunk = `100000\r\n${'x'.repeat(0x10_0000)}\r\n`;
  // As much as the socket takes: a busy intake reads slowly.
  await TickClock.pass(5, 5_000, () => {
    if (!raw.socket.writableNeedDrain) raw.write(chunk);
    return raw.socket.closed;
  });
  expect(raw.socket.closed).toBe(true);
  await expectUnharmed(intake);
});
