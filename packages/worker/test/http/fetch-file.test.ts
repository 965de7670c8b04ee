/** Files behind URLs, from real sockets: reachable ones, refused ones, and ones that break off. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { createServer as createTcpServer, type AddressInfo, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import { FetchFault, fetchFile, type FetchOptions } from '../../src/http/fetch-file.ts';
import { parseProxy, ProxyFailure, type Proxy } from '@sluice/platform/outgoing/proxy-tunnel';
import {
  createVettedConnector,
  type ResolveName,
} from '@sluice/platform/outgoing/vetted-connection';
import { startConnectProxy } from '../support/connect-proxy.ts';

const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});

async function serve(
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<number> {
  const server = createServer(answer);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function read(
  url: string,
  allowPrivate = true,
  resolve?: ResolveName,
  options?: FetchOptions,
): Promise<string> {
  const pieces: Buffer[] = [];
  const connector = createVettedConnector({ allowPrivate }, resolve);
  for await (const piece of fetchFile(connector, url, options)) pieces.push(piece);
  return Buffer.concat(pieces).toString();
}

async function fault(promise: Promise<string>): Promise<FetchFault> {
  const error: unknown = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(FetchFault);
  return error as FetchFault;
}

test('a file comes whole, by its path, its query and the credentials of its URL', async () => {
  let seen: IncomingMessage | undefined;
  const port = await serve((request, response) => {
    seen = request;
    response.end('a,b\n'.repeat(100_000));
  });
  const text = await read(`http://me:p%40w@localhost:${port}/files/a.csv?sig=1%2B2`);
  expect(text).toBe('a,b\n'.repeat(100_000));
  expect(seen?.url).toBe('/files/a.csv?sig=1%2B2');
  expect(seen?.headers.host).toBe(`localhost:${port}`);
  expect(seen?.headers.authorization).toBe(`Basic ${Buffer.from('me:p@w').toString('base64')}`);
});

describe('the address rules of webhooks hold', () => {
  test.each(['http://127.0.0.1', 'http://[::1]', 'http://169.254.169.254', 'http://10.0.0.1'])(
    '%s is not reached',
    async (address) => {
      let requestCount = 0;
      const port = await serve((_request, response) => {
        requestCount++;
        response.end('secret');
      });
      const { message } = await fault(read(`${address}:${port}/latest/meta-data`, false));
      expect(message).toContain('refused address');
      expect(requestCount).toBe(0);
    },
  );

  test('nor is a name that leads to a private address', async () => {
    const resolve: ResolveName = () => Promise.resolve([{ address: '127.0.0.1', family: 4 }]);
    const port = await serve((_request, response) => void response.end('secret'));
    const { message } = await fault(read(`http://files.example:${port}/`, false, resolve));
    expect(message).toContain('refused address');
  });

  test('nor is the target of a redirect', async () => {
    let requestCount = 0;
    const port = await serve((_request, response) => {
      requestCount++;
      response.writeHead(302, { location: '/elsewhere' }).end();
    });
    const { message, mayPass } = await fault(read(`http://localhost:${port}/`));
    expect(message).toContain('302');
    expect(mayPass).toBe(false);
    expect(requestCount).toBe(1);
  });

  test.each(['file:///etc/passwd', 'ftp://files.example/a.csv', 'nonsense'])(
    '%s is no address',
    async (address) => {
      expect((await fault(read(address))).mayPass).toBe(false);
    },
  );
});

describe('another try may help', () => {
  test('if the server fails', async () => {
    const port = await serve((_request, response) => void response.writeHead(503).end());
    expect((await fault(read(`http://localhost:${port}/`))).mayPass).toBe(true);
  });

  test('if the file breaks off', async () => {
    const port = await serve((_request, response) => {
      response.writeHead(200, { 'content-length': '100' });
      response.write('half', () => response.destroy());
    });
    const { message, mayPass } = await fault(read(`http://localhost:${port}/`));
    expect(message).toContain('broke off');
    expect(mayPass).toBe(true);
  });

  test('if the port is closed', async () => {
    const port = await serve(() => undefined);
    for (const close of closers.splice(0)) close();
    expect((await fault(read(`http://localhost:${port}/`))).mayPass).toBe(true);
  });
});

test('a file that is not there, and one that is compressed, are not tried again', async () => {
  const missing = await serve((_request, response) => void response.writeHead(404).end());
  expect((await fault(read(`http://localhost:${missing}/`))).mayPass).toBe(false);
  const compressed = await serve((_request, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync('a,b\n'));
  });
  const { message, mayPass } = await fault(read(`http://localhost:${compressed}/`));
  expect(message).toContain('gzip');
  expect(mayPass).toBe(false);
});

describe('a file that never ends', () => {
  const drip = () =>
    serve((_request, response) => {
      response.write('a,b\n');
      const timer = setInterval(() => response.write('c,d\n'), 10);
      response.once('close', () => clearInterval(timer));
    });

  test('is given up after its time, for good', async () => {
    const port = await drip();
    const url = `http://127.0.0.1:${port}/`;
    const { message, mayPass } = await fault(read(url, true, undefined, { timeoutMs: 2_000 }));
    expect(message).toBe('the file had not come whole within 2 s');
    expect(mayPass).toBe(false);
  });

  test('of which no byte comes for a while is left, and may be tried again', async () => {
    const port = await serve((_request, response) => void response.write('a,b\n'));
    const options = { silenceTimeoutMs: 300 };
    const { message, mayPass } = await fault(
      read(`http://127.0.0.1:${port}/`, true, undefined, options),
    );
    expect(message).toBe('the file broke off: silence');
    expect(mayPass).toBe(true);
  });

  test('and whose head comes a byte at a time is left, and may be tried again', async () => {
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined).write('HTTP/1.1 200 OK\r\nx: ');
      const timer = setInterval(() => socket.write('y'), 10);
      socket.once('close', () => clearInterval(timer));
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => server.close());
    const { port } = server.address() as AddressInfo;
    const options = { headTimeoutMs: 1_000 };
    const { message, mayPass } = await fault(
      read(`http://127.0.0.1:${port}/`, true, undefined, options),
    );
    expect(message).toBe('the URL cannot be reached: no answer within 1 s');
    expect(mayPass).toBe(true);
  });

  test('does not keep a worker from stopping, which leaves it to the next', async () => {
    const port = await drip();
    const stopping = new AbortController();
    const pieces = fetchFile(
      createVettedConnector({ allowPrivate: true }),
      `http://127.0.0.1:${port}/`,
      {
        signal: stopping.signal,
      },
    );
    await pieces.next();
    stopping.abort();
    const { mayPass } = await fault(
      pieces.next().then(async () => {
        for await (const _ of pieces);
        return '';
      }),
    );
    expect(mayPass).toBe(true);
  });
});

test('a file comes through an egress proxy, which gets its address', async () => {
  const port = await serve((_, response) => response.end('a,b\n'.repeat(100_000)));
  const egress = await startConnectProxy();
  const { proxy, asked } = egress;
  closers.push(() => egress.close());
  const connector = createVettedConnector(
    { allowPrivate: true },
    async () => [{ address: '127.0.0.1', family: 4 }],
    proxy,
  );
  const pieces: Buffer[] = [];
  for await (const piece of fetchFile(connector, `http://files.test:${port}/a.csv`, {
    signal: AbortSignal.timeout(30_000),
  }))
    pieces.push(piece);
  expect(Buffer.concat(pieces).toString()).toBe('a,b\n'.repeat(100_000));
  expect(asked).toEqual([`127.0.0.1:${port}`]);
});

describe('a proxy that does not answer in time', () => {
  /** Never answers requests for `silentAbout`; refuses the rest. */
  async function serveProxy(silentAbout: string) {
    const sockets: Socket[] = [];
    const heard = Promise.withResolvers<void>();
    const server = createTcpServer((socket) => {
      sockets.push(socket);
      socket.on('error', () => undefined);
      socket.on('data', (asked) => {
        if (asked.includes(silentAbout)) heard.resolve();
        else socket.end('HTTP/1.1 403 No\r\n\r\n');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => {
      server.close();
      for (const socket of sockets) socket.destroy();
    });
    const { port } = server.address() as AddressInfo;
    return { proxy: parseProxy(`http://127.0.0.1:${port}`), heard: heard.promise };
  }

  const fetchThrough = (proxy: Proxy, url: string, timeoutMs = 500): Promise<unknown> => {
    const connector = createVettedConnector({ allowPrivate: true }, undefined, proxy, timeoutMs);
    return fetchFile(connector, url)
      .next()
      .catch((error: unknown) => error);
  };

  test('is a failure of the proxy, and not of the file’s host', async () => {
    const { proxy } = await serveProxy('CONNECT');
    const failure = await fetchThrough(proxy, 'http://127.0.0.2/a.csv');
    expect(failure).toBeInstanceOf(ProxyFailure);
    expect(failure).toMatchObject({
      message: 'the egress proxy: no answer within 0.5 s',
      mayBeOfTarget: false,
    });
  });

  // Or an import from a host that drops packets would wait for ever.
  test('but answers others meanwhile counts as a fault of the file’s host, which may pass', async () => {
    const { proxy, heard } = await serveProxy('127.0.0.2');
    // The other answer must come before this one is given up, also on a busy machine.
    const silent = fetchThrough(proxy, 'http://127.0.0.2/a.csv', 4_000);
    await heard;
    expect(await fetchThrough(proxy, 'http://127.0.0.3/a.csv')).toBeInstanceOf(ProxyFailure);
    const failure = await silent;
    expect(failure).toBeInstanceOf(FetchFault);
    expect(failure).toMatchObject({ mayPass: true });
  });
});

describe('a connection to a silent server ends when the worker stops', () => {
  /** `taken` is fulfilled with the connection. */
  async function serveSilence() {
    const taken = Promise.withResolvers<Socket>();
    const server = createTcpServer((socket) => {
      socket.on('error', () => undefined).resume();
      taken.resolve(socket);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => server.close());
    return { port: (server.address() as AddressInfo).port, taken: taken.promise };
  }

  test.each(['https without TLS on the other side', 'a proxy'])('%s', async (kind) => {
    const { port, taken } = await serveSilence();
    const proxy = { hostname: '127.0.0.1', port, authorization: undefined };
    const connector = createVettedConnector(
      { allowPrivate: true },
      async () => [{ address: '127.0.0.1', family: 4 }],
      kind === 'a proxy' ? proxy : undefined,
    );
    const url = kind === 'a proxy' ? 'http://files.test/' : `https://files.test:${port}/`;
    const stopping = new AbortController();
    const ending = fault(
      fetchFile(connector, url, { signal: stopping.signal })
        .next()
        .then(() => ''),
    );
    const socket = await taken;
    const closed = new Promise((resolve) => socket.once('close', resolve));
    stopping.abort(new Error('the worker stops'));
    expect(await ending).toMatchObject({
      message: 'the URL cannot be reached: the worker stops',
      mayPass: true,
    });
    await closed;
  });

  test('also if the worker stopped before it began', async () => {
    const { port } = await serveSilence();
    const signal = AbortSignal.abort(new Error('the worker stops'));
    const url = `https://127.0.0.1:${port}/`;
    const { message } = await fault(read(url, true, undefined, { signal }));
    expect(message).toBe('the URL cannot be reached: the worker stops');
  });
});
