/** `POST /v1/stream` on real sockets: acknowledgements, issues, and waits. */
import { deflateRawSync, deflateSync, gzipSync } from 'node:zlib';
import type { TrackEvent } from '@sluice/domain/operations/operation';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  PIPELINES_AUTHORIZATION,
  startIntakeUnderTest,
  TRACK_AUTHORIZATION,
  type IntakeUnderTest,
} from '../support/intake-under-test.ts';
import { openRaw } from '../support/raw-http.ts';
import { openStream, type StreamClient, type StreamLine } from '../support/stream-client.ts';
import { expectUnharmed } from '../support/unharmed.ts';

const IDLE_TIMEOUT_MS = 30_000;

let intake: IntakeUnderTest;
beforeAll(async () => {
  intake = await startIntakeUnderTest(undefined, { idleTimeoutMs: IDLE_TIMEOUT_MS });
});
afterAll(() => intake.close());

/** Long enough for a machine that does other things too. */
const WAIT = { timeout: 20_000 };

const track = (person: string, event: string, more: object = {}) =>
  `${JSON.stringify({ type: 'track', userId: person, event, ...more })}\n`;

/** The names of a person's events that went through the broker, in order. */
const namesOf = (person: string): string[] => eventsOf(person).map(({ name }) => name);

function eventsOf(person: string): TrackEvent[] {
  return intake.operations.filter(
    (operation): operation is TrackEvent =>
      operation.type === 'event.track' && operation.person?.value === person,
  );
}

const issuesOf = (answers: readonly StreamLine[]) => answers.flatMap(({ issues = [] }) => issues);

const untilAcknowledged = (stream: StreamClient, line: number) =>
  vi.waitFor(() => expect(stream.answers.at(-1)?.line).toBeGreaterThanOrEqual(line), WAIT);

describe('a stream', () => {
  test('is acknowledged while it is open, line by line, and everything is taken in order', async () => {
    const stream = openStream(intake.url);
    await stream.write(track('ann', 'a-1') + track('ann', 'a-2'));
    await untilAcknowledged(stream, 2);
    await stream.write(track('ann', 'a-3'));
    await untilAcknowledged(stream, 3);
    expect(await stream.end()).toEqual({ line: 3, refused: 0, end: 'complete' });
    expect(stream.status()).toBe(200);
    await vi.waitFor(() => expect(namesOf('ann')).toEqual(['a-1', 'a-2', 'a-3']), WAIT);
  });

  test('of thousands of lines comes through whole, each group acknowledged', async () => {
    const stream = openStream(intake.url);
    const names = Array.from({ length: 5_000 }, (_, n) => `m-${n}`);
    for (let from = 0; from < names.length; from += 500) {
      await stream.write(
        names
          .slice(from, from + 500)
          .map((name) => track('many', name))
          .join(''),
      );
    }
    expect(await stream.end()).toMatchObject({ line: 5_000, end: 'complete' });
    expect(stream.answers.length).toBeGreaterThan(4);
    const lines = stream.answers.map(({ line }) => line);
    expect(lines).toEqual(lines.toSorted((a, b) => a - b));
    await vi.waitFor(() => expect(namesOf('many')).toEqual(names), WAIT);
  });

  test('reports its bad lines by number, records them, and takes their neighbours', async () => {
    const stream = openStream(intake.url);
    await stream.write(
      [
        track('bea', 'b-1'),
        '{"type":"track","userId":"bea"}\n',
        'not json\n',
        '\r\n',
        '{"userId":"bea","event":"no type"}\n',
        Buffer.from([0xff, 0x0a]).toString('latin1'),
        `{"type":"track","userId":"bea","event":"${'x'.repeat(70_000)}"}\n`,
        '["an array"]\n',
        track('bea', 'b-2', { timestamp: 'soon' }),
        // The last line needs no newline.
        track('bea', 'b-3').trimEnd(),
      ].join(''),
    );
    expect(await stream.end()).toMatchObject({ line: 10, refused: 6, end: 'complete' });
    expect(issuesOf(stream.answers)).toMatchObject([
      { line: 2, code: 'required', field: 'event', severity: 'error' },
      { line: 3, code: 'invalid_json', field: null, severity: 'error' },
      { line: 5, code: 'required', field: 'type', severity: 'error' },
      { line: 6, code: 'invalid_json', severity: 'error' },
      { line: 7, code: 'too_large', severity: 'error' },
      { line: 8, code: 'invalid', severity: 'error' },
      { line: 9, code: 'timestamp_invalid', field: 'timestamp', severity: 'warning' },
    ]);
    await vi.waitFor(() => expect(namesOf('bea')).toEqual(['b-1', 'b-2', 'b-3']), WAIT);
    await vi.waitFor(() => {
      const recorded = intake.operations.filter(
        (operation) => operation.type === 'issue.record' && operation.source === 'pipelines.stream',
      );
      expect(recorded.length).toBeGreaterThanOrEqual(6);
    }, WAIT);
  });

  test('with Track credentials holds the operations of Track v2', async () => {
    const stream = openStream(intake.url, { Authorization: TRACK_AUTHORIZATION });
    const event = { type: 'person', action: 'event', identifiers: { id: 'tom' }, name: 't-1' };
    await stream.write(`${JSON.stringify(event)}\n${track('tom', 'not Track')}`);
    expect(await stream.end()).toMatchObject({ line: 2, refused: 1 });
    expect(issuesOf(stream.answers)).toMatchObject([{ line: 2, field: 'action' }]);
    await vi.waitFor(() => expect(namesOf('tom')).toEqual(['t-1']), WAIT);
  });

  test('in strict mode ends at the first refused line: earlier lines are taken, later lines are not', async () => {
    const stream = openStream(intake.url, { 'X-Strict-Mode': '1' });
    await stream.write(`${track('sam', 's-1')}${track('sam', 's-2')}{}\n${track('sam', 's-4')}`);
    await stream.ended;
    expect(stream.answers.at(-1)).toMatchObject({
      line: 2,
      end: 'rejected',
      issues: [{ line: 3, code: 'required', field: 'type' }],
    });
    await vi.waitFor(() => expect(namesOf('sam')).toEqual(['s-1', 's-2']), WAIT);
  });

  test.each([
    ['gzip', 'gzip', gzipSync],
    ['deflate', 'deflate', deflateSync],
    ['deflate without its wrapper', 'deflate', deflateRawSync],
  ] as const)('in %s is inflated as it comes', async (person, encoding, compress) => {
    const names = Array.from({ length: 3_000 }, (_, n) => `z-${n}`);
    const bytes = compress(names.map((name) => track(person, name)).join(''));
    const stream = openStream(intake.url, { 'Content-Encoding': encoding });
    for (let from = 0; from < bytes.length; from += 1_000)
      await stream.write(bytes.subarray(from, from + 1_000));
    expect(await stream.end()).toEqual({ line: 3_000, refused: 0, end: 'complete' });
    await vi.waitFor(() => expect(namesOf(person)).toEqual(names), WAIT);
  });

  test('whose encoding breaks off ends with the number of its last line', async () => {
    const bytes = gzipSync(track('gil', 'g-1'));
    const stream = openStream(intake.url, { 'Content-Encoding': 'gzip' });
    await stream.write(bytes.subarray(0, bytes.length - 4));
    expect(await stream.end()).toMatchObject({ end: 'invalid_encoding' });
    const wrong = openStream(intake.url, { 'Content-Encoding': 'gzip' });
    await wrong.write(track('gil', 'g-2'));
    await wrong.ended;
    expect(wrong.answers.at(-1)).toMatchObject({ line: 0, end: 'invalid_encoding' });
  });

  test('with an id gives a line the same event id each time it is sent, so resuming counts once', async () => {
    const body = track('rex', 'r-1') + track('rex', 'r-2') + track('rex', 'r-3');
    const first = openStream(intake.url, {}, '?id=nightly');
    await first.write(body);
    await first.end();
    const second = openStream(intake.url, {}, '?id=nightly&line=2');
    await second.write(body.slice(body.indexOf('\n') + 1));
    expect(await second.end()).toMatchObject({ line: 3, end: 'complete' });
    await vi.waitFor(() => expect(eventsOf('rex')).toHaveLength(5), WAIT);
    expect(eventsOf('rex').map(({ eventId }) => eventId)).toEqual([
      'stream:nightly:1',
      'stream:nightly:2',
      'stream:nightly:3',
      'stream:nightly:2',
      'stream:nightly:3',
    ]);
  });

  test('that is cut keeps its acknowledged lines and no half line, and intake takes the next stream', async () => {
    const stream = openStream(intake.url);
    await stream.write(`${track('cut', 'c-1')}${track('cut', 'c-2').trimEnd()}`);
    await untilAcknowledged(stream, 1);
    stream.cut();
    await stream.ended;
    const after = openStream(intake.url);
    await after.write(track('cut', 'c-3'));
    await after.end();
    await vi.waitFor(() => expect(namesOf('cut')).toEqual(['c-1', 'c-3']), WAIT);
  });

  test('whose sender is silent for longer than silent sockets are kept goes on', async () => {
    const stream = openStream(intake.url);
    await stream.write(track('slow', 's-1'));
    await untilAcknowledged(stream, 1);
    // uWebSockets.js ends a silent connection after 10 to 12 s; only time can show that it does not.
    await new Promise((resolve) => setTimeout(resolve, 14_000));
    await stream.write(track('slow', 's-2'));
    expect(await stream.end()).toMatchObject({ line: 2, end: 'complete' });
  });

  test('whose sender does not read its acknowledgements is not read either, and goes on when it does', async () => {
    const raw = openRaw(intake.port);
    raw.socket.pause();
    const authorization = `Basic ${Buffer.from('write-key:').toString('base64')}`;
    raw.write(
      `POST /v1/stream HTTP/1.1\r\nHost: x\r\nAuthorization: ${authorization}\r\nTransfer-Encoding: chunked\r\n\r\n`,
    );
    const lines = `{"padding":"${'x'.repeat(500)}"}\n`.repeat(1_000);
    const chunk = `${lines.length.toString(16)}\r\n${lines}\r\n`;
    let sentCount = 0;
    // Each line costs 100 bytes of answer: the kernel's buffers are full before 40 of the 200 MB are sent.
    while (sentCount < 400 && raw.socket.write(chunk)) sentCount++;
    while (sentCount < 400) {
      const isTaken = await Promise.race([
        new Promise<boolean>((resolve) => raw.socket.once('drain', () => resolve(true))),
        new Promise<boolean>((resolve) => setTimeout(resolve, 1_000, false)),
      ]);
      if (!isTaken) break;
      raw.socket.write(chunk);
      sentCount++;
    }
    expect(sentCount).toBeLessThan(400);
    raw.socket.resume();
    raw.write('0\r\n\r\n');
    await vi.waitFor(async () => {
      // The socket's text grows until the last chunk of the answer.
      expect((await raw.answer()).text).toContain('"end":"complete"');
    }, 120_000);
    raw.destroy();
  }, 240_000);
});

describe('before the first line', () => {
  const refused = async (headers: Record<string, string>, query = '') => {
    const stream = openStream(intake.url, headers, query);
    await stream.end();
    return { status: stream.status(), answer: stream.answers[0] };
  };

  test('wrong credentials are 401 in both modes, so that a stream is never dropped silently', async () => {
    expect(await refused({ Authorization: 'Basic eDo=' })).toMatchObject({ status: 401 });
    expect(await refused({ Authorization: 'Basic eDo=', 'X-Strict-Mode': '1' })).toMatchObject({
      status: 401,
    });
  });

  test('an encoding that we do not know, a bad id and a bad line number are 400', async () => {
    expect(await refused({ 'Content-Encoding': 'br' })).toMatchObject({ status: 400 });
    expect(await refused({}, '?id=a%20b')).toMatchObject({ status: 400 });
    expect(await refused({}, '?line=0')).toMatchObject({ status: 400 });
  });

  test('a sender in the middle of its lines is refused once they have come, so that no reset can take the answer', async () => {
    const raw = openRaw(intake.port);
    const lines = '\n'.repeat(1_000_000);
    raw.write(
      `POST /v1/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Basic eDo=\r\nContent-Length: 2000000\r\n\r\n${lines}`,
    );
    await expectUnharmed(intake);
    expect(raw.text()).toBe('');
    raw.write(lines);
    expect(await raw.answer()).toMatchObject({ status: 401 });
    await vi.waitFor(() => expect(raw.socket.closed).toBe(true), 20_000);
  });

  // Bytes that close a connection must not be written between the chunks of an answer.
  test.each([
    ['is refused', { Authorization: 'Basic eDo=' }, '"code":"unauthorized"'],
    ['ends at a bad line', { 'X-Strict-Mode': '1' }, '"end":"rejected"'],
    ['is not what its encoding says', { 'Content-Encoding': 'gzip' }, '"end":"invalid_encoding"'],
  ])(
    'the answer to a stream that %s is whole',
    async (_, headers: Record<string, string>, told) => {
      const answer = await fetch(`${intake.url}/v1/stream`, {
        method: 'POST',
        body: 'bad\n',
        headers: { Authorization: PIPELINES_AUTHORIZATION, ...headers },
      });
      expect(await answer.text()).toContain(told);
    },
  );

  test('one stream more than there may be is 503, and there is capacity again when one ends', async () => {
    const open = Array.from({ length: 4 }, () => openStream(intake.url));
    for (const [index, stream] of open.entries()) {
      await stream.write(track('full', `f-${index}`));
      await untilAcknowledged(stream, 1);
    }
    expect(await refused({})).toMatchObject({ status: 503 });
    for (const stream of open) await stream.end();
    const again = openStream(intake.url);
    expect(await again.end()).toEqual({ line: 0, refused: 0, end: 'complete' });
  });
});

test('an idle stream is ended with the number of its last line', async () => {
  const other = await startIntakeUnderTest(undefined, { idleTimeoutMs: 300 });
  const stream = openStream(other.url);
  await stream.write(track('idle', 'i-1'));
  await stream.ended;
  expect(stream.answers.at(-1)).toMatchObject({ line: 1, end: 'idle' });
  await other.close();
});

test('a workspace over its rate is slowed down, not refused', async () => {
  const other = await startIntakeUnderTest({ perSecond: 20, windowSeconds: 1 });
  const stream = openStream(other.url);
  const startedAtMs = performance.now();
  await stream.write(Array.from({ length: 40 }, (_, n) => track('rate', `r-${n}`)).join(''));
  expect(await stream.end()).toMatchObject({ line: 40, refused: 0, end: 'complete' });
  expect(performance.now() - startedAtMs).toBeGreaterThan(900);
  await other.close();
});
