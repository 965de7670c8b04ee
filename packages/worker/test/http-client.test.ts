/** The client against receivers that do what receivers do: each ending with the class it must give. */
import { spawn } from 'node:child_process';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { gzipSync } from 'node:zlib';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  createHttpClient,
  type HttpClient,
  type HttpClientOptions,
  type HttpOutcome,
} from '../src/http-client.ts';
import {
  AUTHORITY_CERTIFICATE,
  EXPIRED_CERTIFICATE,
  GOOD_CERTIFICATE,
  OTHER_NAME_CERTIFICATE,
  RECEIVER_KEY,
  SELF_SIGNED_CERTIFICATE,
} from './certificates.ts';
import { answer, startReceiver, type ReceivedRequest, type Receiver } from './receiver.ts';

const TIMEOUT_MS = 400;
/** What a busy test machine may add. */
const LATENESS_MS_MAX = 250;

const closes: (() => unknown)[] = [];
afterEach(async () => {
  for (let close = closes.pop(); close; close = closes.pop()) await close();
});

function clientOf(options: Partial<HttpClientOptions> = {}): HttpClient {
  const client = createHttpClient({
    timeoutMs: TIMEOUT_MS,
    allowPrivateAddresses: true,
    ...options,
  });
  closes.push(() => client.close());
  return client;
}

async function receiverOf(
  ...[onRequest, tls]: Parameters<typeof startReceiver>
): Promise<Receiver> {
  const receiver = await startReceiver(onRequest, tls);
  closes.push(() => receiver.close());
  return receiver;
}

const post = (client: HttpClient, endpoint: string): Promise<HttpOutcome> =>
  client.post({
    endpoint,
    headers: { 'content-type': 'application/json' },
    body: '{"text":"Grüße"}',
  });

const respond = (text: string) => (request: ReceivedRequest) => void request.socket.write(text);

/** Sends once to a receiver that behaves so. */
async function sendTo(
  onRequest: (request: ReceivedRequest) => void,
): Promise<HttpOutcome & { receiver: Receiver }> {
  const receiver = await receiverOf(onRequest);
  return { ...(await post(clientOf(), receiver.url)), receiver };
}

async function until(condition: () => boolean): Promise<void> {
  const deadlineMs = performance.now() + 5_000;
  while (!condition()) {
    if (performance.now() > deadlineMs) throw new Error('it did not come about');
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

describe('an answer', () => {
  test('is told with its status and the start of its body', async () => {
    const sent = await sendTo(respond(answer(202, 'thänks')));
    expect(sent).toMatchObject({ outcome: 'response', status: 202, body: 'thänks' });
    const [request] = sent.receiver.requests;
    expect(request).toMatch(/^POST \/hook HTTP\/1\.1\r\n/);
    expect(request).toContain(`host: 127.0.0.1:${sent.receiver.port}\r\n`);
    expect(request).toContain('content-type: application/json\r\n');
    expect(request).toMatch(/\r\n\r\n\{"text":"Grüße"\}$/);
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

  test('without an end is cut and is still a success; what is kept of it is short', async () => {
    const endless = await receiverOf(({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n');
      const more = (): void => {
        while (socket.writable && socket.write(Buffer.alloc(65_536, 'x')));
      };
      socket.on('drain', more);
      more();
    });
    const sent = await post(clientOf(), endless.url);
    expect(sent).toMatchObject({ outcome: 'response', status: 200, body: 'x'.repeat(1024) });
    await until(() => endless.openCount() === 0);
  });

  test('that is compressed is not unpacked', async () => {
    const bomb = gzipSync(Buffer.alloc(5_000_000));
    const head = `HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${bomb.length}\r\n\r\n`;
    const sent = await sendTo(
      ({ socket }) => void socket.write(Buffer.concat([Buffer.from(head), bomb])),
    );
    expect(sent).toMatchObject({ outcome: 'response', status: 200 });
    expect(sent.body.length).toBeLessThanOrEqual(1024);
  });

  test('can be kept as text whatever its bytes', async () => {
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
  const expectTimeout = (sent: HttpOutcome, timeoutMs = TIMEOUT_MS): void => {
    expect(sent).toMatchObject({ outcome: 'failure', failure: 'timeout' });
    expect(sent.durationMs).toBeGreaterThanOrEqual(timeoutMs);
    expect(sent.durationMs).toBeLessThan(timeoutMs + LATENESS_MS_MAX);
  };

  test('of 4 s is 4 s', async () => {
    const receiver = await receiverOf(() => {});
    expectTimeout(await post(clientOf({ timeoutMs: 4_000 }), receiver.url), 4_000);
  });

  test('lets an answer through that comes just before it', async () => {
    const sent = await sendTo(
      ({ socket }) => void setTimeout(() => socket.write(answer(200)), TIMEOUT_MS * 0.7),
    );
    expect(sent).toMatchObject({ outcome: 'response', status: 200 });
  });

  test('ends an attempt that gets no answer, and its connection', async () => {
    const receiver = await receiverOf(() => {});
    expectTimeout(await post(clientOf(), receiver.url));
    await until(() => receiver.openCount() === 0);
  });

  test('covers the name look-up', async () => {
    const client = clientOf({ resolve: () => new Promise(() => {}) });
    expectTimeout(await post(client, 'http://slow.test/'));
  });

  test('covers a receiver that never accepts', async () => {
    expectTimeout(await post(clientOf(), `http://127.0.0.1:${await startDeafListener()}/`));
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
    expectTimeout(
      await post(clientOf(), `https://127.0.0.1:${(server.address() as AddressInfo).port}/`),
    );
  });

  test('is of the whole: a head that drips is no progress', async () => {
    expectTimeout(await sendTo(({ socket }) => drip(socket, answer(200))));
  });

  test('covers the body: a 2xx whose body drips is a timeout', async () => {
    const sent = await sendTo(({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n');
      drip(socket, 'x'.repeat(1000));
    });
    expectTimeout(sent);
    expect(sent.status).toBe(200);
  });

  test('is not what a status says: an error whose body drips is that error', async () => {
    const sent = await sendTo(({ socket }) => {
      socket.write('HTTP/1.1 500 Oh\r\ncontent-length: 1000\r\n\r\n');
      drip(socket, 'x'.repeat(1000));
    });
    expect(sent).toMatchObject({ outcome: 'response', status: 500 });
  });
});

describe('a connection that fails is', () => {
  test('refused where nothing listens', async () => {
    const server = createServer().listen(0, '127.0.0.1');
    await new Promise((resolve) => server.once('listening', resolve));
    const { port } = server.address() as AddressInfo;
    await new Promise((resolve) => server.close(resolve));
    const sent = await post(clientOf(), `http://127.0.0.1:${port}/`);
    expect(sent).toMatchObject({ outcome: 'failure', failure: 'connection_refused', status: null });
  });

  test('refused also where every address of a name refuses', async () => {
    const resolve = async () => [
      { address: '127.0.0.2', family: 4 },
      { address: '127.0.0.3', family: 4 },
    ];
    const sent = await post(clientOf({ resolve }), 'http://receiver.test:9/');
    expect(sent).toMatchObject({
      failure: 'connection_refused',
      message: expect.stringContaining('ECONNREFUSED'),
    });
  });

  test.each<[string, string]>([
    ['before the head', ''],
    ['during the head', 'HTTP/1.1 20'],
    ['after the head', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc'],
  ])('reset, %s', async (_, text) => {
    const sent = await sendTo(({ socket }) =>
      socket.write(text, () => setTimeout(() => socket.resetAndDestroy(), 20)),
    );
    expect(sent).toMatchObject({ outcome: 'failure', failure: 'connection_reset' });
    expect(sent.receiver.requests).toHaveLength(1);
  });

  test.each<[string, string]>([
    ['before the head', ''],
    ['during the head', 'HTTP/1.1 20'],
    ['in the body', 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nabc'],
    ['in a chunked body', 'HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab'],
    ['in the last body', 'HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 10\r\n\r\nabc'],
    [
      'in the last chunked body',
      'HTTP/1.1 200 OK\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n5\r\nab',
    ],
  ])('at its end, %s', async (_, text) => {
    const sent = await sendTo(({ socket }) => void socket.end(text));
    expect(sent).toMatchObject({ outcome: 'failure', failure: 'end_of_file' });
    expect(sent.receiver.requests).toHaveLength(1);
  });

  test('an answer all the same where an error status came before', async () => {
    const sent = await sendTo(
      ({ socket }) => void socket.end('HTTP/1.1 502 Bad\r\ncontent-length: 10\r\n\r\nabc'),
    );
    expect(sent).toMatchObject({ outcome: 'response', status: 502, body: 'abc' });
  });

  test.each<[string, string]>([
    ['another protocol', 'SSH-2.0-OpenSSH_9.6\r\n'],
    ['no protocol', '\0\0\0\u0001garbage garbage garbage'],
    ['a bare page', '<html>hello</html>'],
    ['a status that is none', 'HTTP/1.1 OK OK\r\n\r\n'],
    ['a head without end', `HTTP/1.1 200 OK\r\nx: ${'y'.repeat(64 * 1024)}\r\n\r\n`],
    ['two lengths', 'HTTP/1.1 200 OK\r\ncontent-length: 3\r\ncontent-length: 5\r\n\r\nabc'],
    [
      'an upgrade nobody asked for',
      'HTTP/1.1 101 Switching\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n',
    ],
    ['a flood of early hints', 'HTTP/1.1 103 Early Hints\r\n\r\n'.repeat(5_000)],
    ['a flood of continues', 'HTTP/1.1 100 Continue\r\n\r\n'.repeat(5_000)],
  ])('a misbehaving server that sends %s', async (_, text) => {
    expect(await sendTo(respond(text))).toMatchObject({
      outcome: 'failure',
      failure: 'misbehaving_server',
    });
  });

  test('a name without an address', async () => {
    const resolve = async () => {
      throw Object.assign(new Error('getaddrinfo ENOTFOUND receiver.test'), { code: 'ENOTFOUND' });
    };
    const sent = await post(clientOf({ resolve }), 'http://receiver.test/');
    expect(sent).toMatchObject({
      outcome: 'failure',
      failure: 'name_not_resolved',
      message: 'getaddrinfo ENOTFOUND receiver.test',
    });
  });

  test.each([
    '',
    'receiver.test',
    'ftp://receiver.test/',
    'http://',
    'file:///etc/passwd',
    'http://a b/',
  ])('no endpoint: %j', async (endpoint) => {
    expect(await post(clientOf(), endpoint)).toMatchObject({
      outcome: 'failure',
      failure: 'unusable_endpoint',
    });
  });
});

describe('TLS', () => {
  beforeAll(() => {
    const before = getCACertificates('default');
    setDefaultCACertificates([...before, AUTHORITY_CERTIFICATE]);
    return () => setDefaultCACertificates(before);
  });

  const resolve = async () => [{ address: '127.0.0.1', family: 4 }];

  async function sendOverTls(
    cert: string,
    name = 'receiver.test',
    options = {},
  ): Promise<HttpOutcome> {
    const receiver = await receiverOf(respond(answer(200)), {
      key: RECEIVER_KEY,
      cert,
      ...options,
    });
    return post(clientOf({ resolve }), `https://${name}:${receiver.port}/`);
  }

  test('with a good certificate is an answer', async () => {
    expect(await sendOverTls(GOOD_CERTIFICATE)).toMatchObject({ outcome: 'response', status: 200 });
  });

  test.each<[string, string, string]>([
    ['expired', EXPIRED_CERTIFICATE, 'receiver.test'],
    ['for another name', OTHER_NAME_CERTIFICATE, 'receiver.test'],
    ['signed by itself', SELF_SIGNED_CERTIFICATE, 'receiver.test'],
    ['for a name, at an address', GOOD_CERTIFICATE, '127.0.0.1'],
  ])('with a certificate that is %s fails verification', async (_, certificate, name) => {
    expect(await sendOverTls(certificate, name)).toMatchObject({
      outcome: 'failure',
      failure: 'tls_verification',
    });
  });

  test('older than 1.2 fails the handshake', async () => {
    const old = { minVersion: 'TLSv1', maxVersion: 'TLSv1.1', ciphers: 'DEFAULT@SECLEVEL=0' };
    expect(await sendOverTls(GOOD_CERTIFICATE, 'receiver.test', old)).toMatchObject({
      outcome: 'failure',
      failure: 'tls_handshake',
    });
  });

  test('to a receiver that does not speak it fails the handshake', async () => {
    const plain = createServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'));
    });
    plain.listen(0, '127.0.0.1');
    closes.push(() => void plain.close());
    await new Promise((done) => plain.once('listening', done));
    const sent = await post(
      clientOf({ resolve }),
      `https://receiver.test:${(plain.address() as AddressInfo).port}/`,
    );
    expect(sent).toMatchObject({ outcome: 'failure', failure: 'tls_handshake' });
  });

  test('offers HTTP/1.1 only', async () => {
    const receiver = await receiverOf(respond(answer(200)), {
      key: RECEIVER_KEY,
      cert: GOOD_CERTIFICATE,
      ALPNProtocols: ['h2', 'http/1.1'],
    });
    await post(clientOf({ resolve }), `https://receiver.test:${receiver.port}/`);
    expect(receiver.requests[0]).toContain(' HTTP/1.1\r\n');
  });
});

describe('a connection that is kept', () => {
  test('is used again', async () => {
    const receiver = await receiverOf(respond(answer(200)));
    const client = clientOf();
    for (let count = 0; count < 3; count++)
      expect(await post(client, receiver.url)).toMatchObject({ status: 200 });
    expect(receiver.connectionCount()).toBe(1);
    expect(client.idleConnections()).toBe(1);
  });

  test('is not shared between two requests at the same time', async () => {
    const receiver = await receiverOf(
      ({ socket }) => void setTimeout(() => socket.write(answer(200)), 30),
    );
    const client = clientOf();
    await Promise.all([post(client, receiver.url), post(client, receiver.url)]);
    expect(receiver.connectionCount()).toBe(2);
  });

  test('is given up when the answer says so', async () => {
    const receiver = await receiverOf(
      ({ socket }) => void socket.end(answer(200, '', 'connection: close\r\n')),
    );
    const client = clientOf();
    for (let count = 0; count < 3; count++)
      expect(await post(client, receiver.url)).toMatchObject({ status: 200 });
    await until(() => client.idleConnections() === 0);
  });

  test('is forgotten when the receiver closes it while idle', async () => {
    const receiver = await receiverOf(({ socket }) => {
      socket.write(answer(200));
      setTimeout(() => socket.end(), 20);
    });
    const client = clientOf();
    await post(client, receiver.url);
    await until(() => client.idleConnections() === 0);
    expect(await post(client, receiver.url)).toMatchObject({ status: 200 });
    expect(receiver.requests).toHaveLength(2);
  });

  test.each<[string, (socket: Socket) => void]>([
    ['reset', (socket) => void socket.resetAndDestroy()],
    ['closed', (socket) => void socket.end()],
  ])(
    'and %s at the very moment of its next use costs nothing: the request goes over a fresh one',
    async (_, breakIt) => {
      const receiver = await receiverOf(({ socket, ordinal }) => {
        if (ordinal === 1) socket.write(answer(200));
        else breakIt(socket);
      });
      const client = clientOf();
      await post(client, receiver.url);
      expect(await post(client, receiver.url)).toMatchObject({ outcome: 'response', status: 200 });
      expect(receiver.connectionCount()).toBe(2);
      expect(receiver.requests).toHaveLength(3);
    },
  );

  test('is the only one for which a request is sent twice, and twice at most', async () => {
    let isBroken = false;
    const receiver = await receiverOf(({ socket }) => {
      if (isBroken) socket.resetAndDestroy();
      else socket.write(answer(200));
    });
    const client = clientOf();
    await post(client, receiver.url);
    isBroken = true;
    expect(await post(client, receiver.url)).toMatchObject({ failure: 'connection_reset' });
    expect(receiver.requests).toHaveLength(3);
    expect(await post(client, receiver.url)).toMatchObject({ failure: 'connection_reset' });
    expect(receiver.requests).toHaveLength(4);
  });

  test('and breaks after the first byte of an answer is a failure like any other', async () => {
    const receiver = await receiverOf(({ socket, ordinal }) => {
      if (ordinal === 1) socket.write(answer(200));
      else socket.write('H', () => setTimeout(() => socket.resetAndDestroy(), 20));
    });
    const client = clientOf();
    await post(client, receiver.url);
    expect(await post(client, receiver.url)).toMatchObject({ failure: 'connection_reset' });
    expect(receiver.requests).toHaveLength(2);
  });

  test('and hangs is a timeout, and the request is not sent twice', async () => {
    const receiver = await receiverOf(({ socket, ordinal }) => {
      if (ordinal === 1) socket.write(answer(200));
    });
    const client = clientOf();
    await post(client, receiver.url);
    expect(await post(client, receiver.url)).toMatchObject({ failure: 'timeout' });
    expect(receiver.requests).toHaveLength(2);
  });

  test('leaves one deadline for both when it breaks', async () => {
    const receiver = await receiverOf(({ socket, ordinal }) => {
      if (ordinal === 1 && receiver.connectionCount() === 1) socket.write(answer(200));
      else if (ordinal > 1) setTimeout(() => socket.resetAndDestroy(), TIMEOUT_MS * 0.6);
    });
    const client = clientOf();
    await post(client, receiver.url);
    const sent = await post(client, receiver.url);
    expect(sent).toMatchObject({ failure: 'timeout' });
    expect(sent.durationMs).toBeLessThan(TIMEOUT_MS + LATENESS_MS_MAX);
  });

  test('is one of a bounded number; the longest idle goes first', async () => {
    const receivers = await Promise.all(
      Array.from({ length: 5 }, () => receiverOf(respond(answer(200)))),
    );
    const client = clientOf({ idleConnectionsMax: 2 });
    for (const receiver of receivers) await post(client, receiver.url);
    expect(client.idleConnections()).toBe(2);
    await until(() => receivers.map((receiver) => receiver.openCount()).join() === '0,0,0,1,1');
  });
});

describe('addresses', () => {
  const closed = { allowPrivateAddresses: false };

  test.each(['127.0.0.1', 'localhost', '127.1', '0x7f000001', '2130706433'])(
    '%s is not connected to',
    async (host) => {
      const receiver = await receiverOf(respond(answer(200)));
      const sent = await post(clientOf(closed), `http://${host}:${receiver.port}/`);
      expect(sent).toMatchObject({
        outcome: 'failure',
        failure: 'address_refused',
        message: expect.stringContaining('loopback'),
      });
      expect(receiver.connectionCount()).toBe(0);
    },
  );

  test('a name is judged by what it resolves to', async () => {
    const receiver = await receiverOf(respond(answer(200)));
    const resolve = async () => [{ address: '127.0.0.1', family: 4 }];
    const sent = await post(
      clientOf({ ...closed, resolve }),
      `http://public.example:${receiver.port}/`,
    );
    expect(sent).toMatchObject({ failure: 'address_refused' });
    expect(receiver.connectionCount()).toBe(0);
  });

  test('of several only those that are allowed are connected to', async () => {
    const receiver = await receiverOf(respond(answer(200)));
    const resolve = async () => [
      { address: '169.254.169.254', family: 4 },
      { address: '127.0.0.1', family: 4 },
    ];
    const sent = await post(clientOf({ resolve }), `http://both.example:${receiver.port}/`);
    expect(sent).toMatchObject({ outcome: 'response', status: 200 });
  });

  test('a name that changes its answer is connected to at the address that was judged', async () => {
    const receiver = await receiverOf(respond(answer(200)));
    let lookups = 0;
    const resolve = async () => [
      { address: ++lookups === 1 ? '127.0.0.1' : '169.254.169.254', family: 4 },
    ];
    const client = clientOf({ resolve });
    const url = `http://rebinding.example:${receiver.port}/`;
    expect(await post(client, url)).toMatchObject({ status: 200 });
    expect(lookups).toBe(1);
    await until(() => client.idleConnections() === 1);
    expect(await post(client, url)).toMatchObject({ status: 200 });
    expect(lookups).toBe(1);
  });

  test('a name has one look-up under way, however many wait for it', async () => {
    const receiver = await receiverOf(respond(answer(200)));
    let lookups = 0;
    const resolve = async () => {
      lookups++;
      await new Promise((done) => setTimeout(done, 50));
      return [{ address: '127.0.0.1', family: 4 }];
    };
    const client = clientOf({ resolve });
    await Promise.all(
      Array.from({ length: 10 }, () => post(client, `http://busy.example:${receiver.port}/`)),
    );
    expect(lookups).toBe(1);
  });

  test('user and password of the endpoint become an Authorization header', async () => {
    const receiver = await receiverOf(respond(answer(200)));
    await post(clientOf(), receiver.url.replace('//', '//us%40er:p%3Ass@'));
    expect(receiver.requests[0]).toContain(
      `authorization: Basic ${Buffer.from('us@er:p:ss').toString('base64')}\r\n`,
    );
  });
});

function drip(socket: Socket, text: string): void {
  let index = 0;
  const timer = setInterval(() => {
    if (!socket.writable || index >= text.length) clearInterval(timer);
    else socket.write(text[index++] as string);
  }, 20);
}

/** A listener that is stopped, with its backlog full: the system completes no further connection. */
async function startDeafListener(): Promise<number> {
  const script = `require('node:net').createServer().listen({port: 0, host: '127.0.0.1', backlog: 1}, function () { console.log(this.address().port) })`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  closes.push(() => child.kill('SIGKILL'));
  const port = await new Promise<number>((resolve) =>
    child.stdout.once('data', (text: Buffer) => resolve(Number(text))),
  );
  child.kill('SIGSTOP');
  const fillers = Array.from({ length: 8 }, () => connect(port, '127.0.0.1').on('error', () => {}));
  closes.push(() => fillers.forEach((socket) => socket.destroy()));
  await until(() => fillers.filter((socket) => socket.readyState === 'open').length >= 2);
  return port;
}
