import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { connectApi } from '../src/connection/api-client.ts';
import { readEvents, tail } from '../src/live/tail.ts';
import { widthOf } from '../src/output/text-width.ts';
import { collectingTerminal } from './collecting-terminal.ts';
import { tailOfLine } from './tail-of-line.ts';

test('events are read whole, however the stream is cut; comments are passed over', async () => {
  const text =
    ': listening\n\nevent: received\nid: 1\ndata: {"name":"Ünïcode"}\n\nevent: dropped\ndata: {"count":3}\n\n';
  const bytes = new TextEncoder().encode(text);
  for (const size of [1, 2, 7, bytes.length]) {
    const body = new ReadableStream({
      start(controller) {
        for (let from = 0; from < bytes.length; from += size)
          controller.enqueue(bytes.slice(from, from + size));
        controller.close();
      },
    });
    const seen: string[][] = [];
    await readEvents(new Response(body), (event, data) => void seen.push([event, data]));
    expect(seen, `pieces of ${size}`).toEqual([
      ['received', '{"name":"Ünïcode"}'],
      ['dropped', '{"count":3}'],
    ]);
  }
});

const HEAD =
  'HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n';

test('a tail that ends is opened again at once, one that broke off or was short after a moment', async () => {
  let nowMs = 0;
  /** Duration of each stream, and whether its end is proper; then the server is gone. */
  const streams = [
    { durationMs: 600_000, isWhole: true },
    { durationMs: 499, isWhole: true },
    { durationMs: 600_000, isWhole: false },
    { durationMs: 500, isWhole: true },
  ];
  let opened = 0;
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () => {
      const { durationMs, isWhole } = streams[opened++] as (typeof streams)[number];
      nowMs += durationMs;
      const event = `event: received\ndata: {"n":${opened}}\n\n`;
      socket.write(
        `${HEAD}${event.length.toString(16)}\r\n${event}\r\n${isWhole ? '0\r\n\r\n' : ''}`,
        () => socket.destroy(),
      );
      if (opened === streams.length) server.close();
    });
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const terminal = collectingTerminal();
  const pausedAfter: number[] = [];
  const ending = tail(
    {
      api: connectApi({
        url,
        key: 'key',
        keyAdvice: '',
        signal: new AbortController().signal,
      }),
      terminal,
      now: () => nowMs,
      pause: async (durationMs) => {
        nowMs += durationMs;
        pausedAfter.push(opened);
      },
      signal: new AbortController().signal,
    },
    {},
  );
  await expect(ending).rejects.toMatchObject({
    code: 'COMMAND_NOT_REACHED',
    message: expect.stringContaining('cannot be reached'),
  });
  expect(terminal.lines.map((line) => JSON.parse(line) as unknown)).toEqual(
    streams.map((_, index) => ({ event: 'received', n: index + 1 })),
  );
  expect(pausedAfter.slice(0, 2)).toEqual([2, 3]);
  // One that is started anew may take a minute; every half second it is asked.
  expect(pausedAfter.slice(2)).toEqual(Array.from({ length: 120 }, () => streams.length));
  expect(terminal.notes.filter((note) => note.includes('cannot be reached'))).toHaveLength(1);
});

test('a tail outlasts an API that is away behind its proxy or cannot hear the others, and ends with a key that is revoked', async () => {
  const event = 'event: received\ndata: {}\n\n';
  const answers = [
    { status: 200, body: event },
    { status: 502, body: '<html>Bad Gateway</html>' },
    {
      status: 503,
      body: '{"message":"the live tail cannot reach the other processes; try again later"}',
    },
    { status: 200, body: event },
    { status: 401, body: '{}' },
  ];
  const server = createHttpServer((_, response) => {
    const { status, body } = answers.shift() ?? { status: 500, body: '' };
    response.writeHead(status, { connection: 'close' }).end(body);
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const terminal = collectingTerminal();
  const { signal } = new AbortController();
  const ending = tail(
    {
      api: connectApi({ url, key: 'key', keyAdvice: 'take another', signal }),
      terminal,
      now: () => 0,
      pause: () => Promise.resolve(),
      signal,
    },
    {},
  );
  await expect(ending).rejects.toMatchObject({ message: expect.stringContaining('take another') });
  expect(terminal.lines).toHaveLength(2);
  expect(answers).toEqual([]);
});

test('a line is no wider than the terminal, with letters of two columns and many people', async () => {
  const line = {
    at_ms: 0,
    outcome: 'accepted',
    name: '注文が完了しました',
    people: [{ id: 'ada' }, { id: 'grace' }, { email: '名前@example.com' }],
    details: { event_id: 'e-1', type: 'track' },
  };
  const writeTo = await tailOfLine(line);
  for (let width = 20; width <= 120; width++) {
    const terminal = collectingTerminal('table', { width });
    await writeTo(terminal);
    expect(terminal.lines).toHaveLength(1);
    expect(widthOf(terminal.lines[0] ?? '')).toBeLessThanOrEqual(width);
  }
});
