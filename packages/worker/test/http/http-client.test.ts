/** The client and the answers of receivers, in time and late. */
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { toStorableText } from '@sluice/domain/values/storable-text';
import { describe, expect, test } from 'vitest';
import { answer } from '../support/receiver.ts';
import {
  clientOf,
  closes,
  expectTimeout,
  post,
  receiverOf,
  respond,
  sendTo,
  startDeafListener,
  TIMEOUT_MS,
  until,
} from '../support/http-client-world.ts';

describe('an answer', () => {
  test('is reported with its status and the start of its body', async () => {
    const sent = await sendTo(respond(answer(202, 'thänks')));
    expect(sent).toMatchObject({ outcome: 'response', status: 202, body: 'thänks' });
    const [request] = sent.receiver.requests;
    expect(request).toMatch(/^POST \/hook HTTP\/1\.1\r\n/);
    expect(request).toContain(`host: 127.0.0.1:${sent.receiver.port}\r\n`);
    expect(request).toContain('content-type: application/json\r\n');
    expect(request).toMatch(/\r\n\r\n\{"text":"Grüße"\}$/);
  });

  test('is reported with its head', async () => {
    const head = 'HTTP/1.1 503 Busy\r\nretry-after: 5\r\nset-cookie: a=1\r\nset-cookie: b=2\r\n';
    const sent = await sendTo(respond(`${head}content-length: 0\r\n\r\n`));
    expect(sent.head).toBe(
      'HTTP/1.1 503 Busy\nretry-after: 5\nset-cookie: a=1\nset-cookie: b=2\ncontent-length: 0',
    );
  });

  test.each([200, 204, 299, 304, 400, 404, 429, 500, 503, 521, 599])(
    'of status %i is an answer',
    async (status) => {
      expect(await sendTo(respond(answer(status)))).toMatchObject({ outcome: 'response', status });
    },
  );

  test('that redirects is not followed', async () => {
    const target = await receiverOf(respond(answer(200)));
    const sent = await sendTo(respond(answer(301, '', `location: ${target.url}\r\n`)));
    expect(sent).toMatchObject({ outcome: 'response', status: 301 });
    expect(target.connectionCount()).toBe(0);
  });

  test('in chunks, or until the connection closes, is read whole', async () => {
    const chunked =
      'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n';
    expect(await sendTo(respond(chunked))).toMatchObject({ outcome: 'response', body: 'abcde' });
    const untilClose = await sendTo(
      ({ socket }) => void socket.end('HTTP/1.1 200 OK\r\n\r\nabcde'),
    );
    expect(untilClose).toMatchObject({ outcome: 'response', status: 200, body: 'abcde' });
  });

  test('without an end is cut and is still a success, with a short part of its body', async () => {
    const endless = await receiverOf(({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n');
      const more = (): void => {
        while (socket.writable && socket.write(Buffer.alloc(65_536, 'x')));
      };
      socket.on('drain', more);
      more();
    });
    const sent = await post(clientOf(), endless.url);
    expect(sent).toMatchObject({ outcome: 'response', status: 200, body: 'x'.repeat(16 * 1024) });
    await until(() => endless.openCount() === 0);
  });

  test('that is compressed is not unpacked', async () => {
    const bomb = gzipSync(Buffer.alloc(5_000_000));
    const head = `HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`;
    const sent = await sendTo(
      ({ socket }) => void socket.write(Buffer.concat([Buffer.from(head), bomb])),
    );
    expect(sent).toMatchObject({ outcome: 'response', status: 200 });
    expect(sent.body).toBe(toStorableText(bomb.toString()));
  });

  test('can be kept as text with any bytes', async () => {
    const sent = await sendTo(
      ({ socket }) =>
        void socket.write(
          Buffer.concat([
            Buffer.from(answer(200, 'xxxx').slice(0, -4)),
            Buffer.from([0x61, 0, 0xff, 0x62]),
          ]),
        ),
    );
    expect(sent.body).toBe('a\ufffd\ufffdb');
  });

  test('after informational ones is the answer', async () => {
    const early = 'HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n';
    expect(await sendTo(respond(early + answer(201)))).toMatchObject({
      outcome: 'response',
      status: 201,
    });
  });
});

describe('the deadline', () => {
  const SHORT = { timeoutMs: TIMEOUT_MS };

  test('of 4 s is 4 s', async () => {
    const receiver = await receiverOf(() => {});
    await expectTimeout(() => post(clientOf({ timeoutMs: 4_000 }), receiver.url), 4_000);
  });

  test('lets an answer through that comes before it', async () => {
    const receiver = await receiverOf(
      ({ socket }) => void setTimeout(() => socket.write(answer(200)), 2_800),
    );
    const sent = await post(clientOf({ timeoutMs: 8_000 }), receiver.url);
    expect(sent).toMatchObject({ outcome: 'response', status: 200 });
  });

  test('ends an attempt that gets no answer, and its connection', async () => {
    const receiver = await receiverOf(() => {});
    await expectTimeout(() => post(clientOf(SHORT), receiver.url));
    await until(() => receiver.openCount() === 0);
  });

  test('covers the name look-up', async () => {
    const client = clientOf({ ...SHORT, resolve: () => new Promise(() => {}) });
    await expectTimeout(() => post(client, 'http://slow.test/'));
  });

  test('covers a receiver that never accepts', async () => {
    const port = await startDeafListener();
    const sockets = (): number =>
      process.getActiveResourcesInfo().filter((name) => name === 'TCPSocketWrap').length;
    const before = sockets();
    const timedOut = expectTimeout(
      () => post(clientOf({ timeoutMs: 2_000 }), `http://127.0.0.1:${port}/`),
      2_000,
    );
    await until(() => sockets() > before);
    await timedOut;
    // The connection attempt ends: the system would try for minutes.
    await until(() => sockets() <= before);
  });

  test('covers a TLS handshake that is never answered', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    const sockets: Socket[] = [];
    server.on('connection', (socket) => sockets.push(socket.on('error', () => {})));
    closes.push(
      () => new Promise((resolve) => server.close(resolve)),
      () => sockets.forEach((socket) => socket.destroy()),
    );
    await new Promise((resolve) => server.once('listening', resolve));
    await expectTimeout(() =>
      post(clientOf(SHORT), `https://127.0.0.1:${(server.address() as AddressInfo).port}/`),
    );
  });

  test('is of the whole: a head that drips is no progress', async () => {
    await expectTimeout(() =>
      sendTo(({ socket }) => drip(socket, answer(200, 'x'.repeat(1_000))), SHORT),
    );
  });

  test('covers the body: a 2xx whose body drips is a timeout', async () => {
    const sent = await expectTimeout(
      () =>
        sendTo(
          ({ socket }) => {
            socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n');
            drip(socket, 'x'.repeat(1000));
          },
          { timeoutMs: 2_000 },
        ),
      2_000,
    );
    expect(sent.status).toBe(200);
  });

  test('does not replace an error status: an error whose body drips is that error', async () => {
    const sent = await sendTo(
      ({ socket }) => {
        socket.write('HTTP/1.1 500 Oh\r\ncontent-length: 1000\r\n\r\n');
        drip(socket, 'x'.repeat(1000));
      },
      { timeoutMs: 2_000 },
    );
    expect(sent).toMatchObject({ outcome: 'response', status: 500 });
  });
});

function drip(socket: Socket, text: string): void {
  let index = 0;
  const timer = setInterval(() => {
    if (!socket.writable || index >= text.length) clearInterval(timer);
    else socket.write(text[index++] as string);
  }, 20);
}
