/** Connections that the client keeps, uses again, and refuses to make. */
import { once } from 'node:events';
import { createServer, type Socket } from 'node:net';
import { parseNetwork } from '@sluice/domain/delivery/network-address';
import { describe, expect, test } from 'vitest';
import { answer } from '../support/receiver.ts';
import {
  clientOf,
  closes,
  expectTimeout,
  post,
  receiverOf,
  respond,
  until,
} from '../support/http-client-world.ts';

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

  test('is given up when the answer asks for it', async () => {
    // It is ours to close: the receiver leaves it open.
    const receiver = await receiverOf(respond(answer(200, '', 'connection: close\r\n')));
    const client = clientOf();
    for (let count = 1; count <= 3; count++) {
      expect(await post(client, receiver.url)).toMatchObject({ status: 200 });
      expect(client.idleConnections()).toBe(0);
      expect(receiver.connectionCount()).toBe(count);
    }
    await until(() => receiver.openCount() === 0);
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

  test('is given up when the receiver sends bytes unasked', async () => {
    const receiver = await receiverOf(({ socket }) => {
      socket.write(answer(200));
      setTimeout(() => socket.write(answer(500)), 20);
    });
    const client = clientOf();
    await post(client, receiver.url);
    await until(() => client.idleConnections() === 0);
    expect(await post(client, receiver.url)).toMatchObject({ status: 200 });
    expect(receiver.connectionCount()).toBe(2);
  });

  test.each<[string, (socket: Socket) => void]>([
    ['reset', (socket) => void socket.resetAndDestroy()],
    ['closed', (socket) => void socket.end()],
  ])(
    'and %s at the moment of its next use does not fail the request, which goes over a fresh one',
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
    const client = clientOf({ timeoutMs: 4_000 });
    await post(client, receiver.url);
    expect(await post(client, receiver.url)).toMatchObject({ failure: 'timeout' });
    expect(receiver.requests).toHaveLength(2);
  });

  test('leaves one deadline for both when it breaks', async () => {
    // A deadline for each would end after nearly two of them: more than one beside the lateness of a busy machine.
    const timeoutMs = 8_000;
    const receiver = await receiverOf(({ socket, ordinal }) => {
      if (ordinal === 1 && receiver.connectionCount() === 1) socket.write(answer(200));
      else if (ordinal > 1) setTimeout(() => socket.resetAndDestroy(), timeoutMs * 0.95);
    });
    const client = clientOf({ timeoutMs });
    await post(client, receiver.url);
    await expectTimeout(() => post(client, receiver.url), timeoutMs);
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
  /** Finds a name at the first look-up; the others end as `later` does. */
  const foundOnce = (later: () => Promise<never>) => {
    let lookups = 0;
    const resolve = async () => (++lookups > 1 ? later() : [{ address: '127.0.0.1', family: 4 }]);
    return { resolve, lookupCount: () => lookups };
  };
  const failsWith = (code: string) => () =>
    Promise.reject(Object.assign(new Error(code), { code }));

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

  test('a name is judged by the addresses that it resolves to', async () => {
    const receiver = await receiverOf(respond(answer(200)));
    const resolve = async () => [{ address: '127.0.0.1', family: 4 }];
    const sent = await post(
      clientOf({ ...closed, resolve }),
      `http://public.example:${receiver.port}/`,
    );
    expect(sent).toMatchObject({ failure: 'address_refused' });
    expect(receiver.connectionCount()).toBe(0);
  });

  test('of several addresses only the allowed ones are connected to', async () => {
    const receiver = await receiverOf(respond(answer(200)));
    let refusedCount = 0;
    const refused = createServer((socket) => {
      refusedCount++;
      socket.destroy();
    }).listen(receiver.port, '127.0.0.2');
    closes.push(() => void refused.close());
    await once(refused, 'listening');
    const resolve = async () =>
      ['127.0.0.2', '127.0.0.1', '127.0.0.2'].map((address) => ({ address, family: 4 }));
    const allowedNetworks = ['127.0.0.1/32'].flatMap((text) => parseNetwork(text) ?? []);
    const client = clientOf({ ...closed, allowedNetworks, resolve });
    const sent = await post(client, `http://both.example:${receiver.port}/`);
    expect(sent).toMatchObject({ outcome: 'response', status: 200 });
    expect(refusedCount).toBe(0);
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

  // The system has few threads for look-ups: names of others whose servers do not answer hold them all.
  test('a name that was found before keeps its addresses while its look-up hangs', async () => {
    const receiver = await receiverOf(respond(answer(200, '', 'connection: close\r\n')));
    const { resolve, lookupCount } = foundOnce(() => new Promise(() => {}));
    const url = `http://known.example:${receiver.port}/`;
    const client = clientOf({ resolve, timeoutMs: 4_000 });
    for (let request = 0; request < 3; request++)
      expect(await post(client, url)).toMatchObject({ status: 200 });
    expect(lookupCount()).toBe(2);
  });

  // glibc reports this for name servers that do not answer it: often our own.
  test('a name that was found before keeps its addresses while every name server fails', async () => {
    const receiver = await receiverOf(respond(answer(200, '', 'connection: close\r\n')));
    const { resolve, lookupCount } = foundOnce(failsWith('EAI_AGAIN'));
    const client = clientOf({ resolve });
    for (let request = 0; request < 3; request++)
      expect(await post(client, `http://known.example:${receiver.port}/`)).toMatchObject({
        status: 200,
      });
    expect(lookupCount()).toBe(3);
    expect(await post(client, 'http://unknown.example/')).toMatchObject({
      failure: 'name_not_resolved',
    });
  });

  test('the former addresses of a name are judged anew', async () => {
    const receiver = await receiverOf(respond(answer(200)));
    const { resolve } = foundOnce(failsWith('EAI_AGAIN'));
    const client = clientOf({ ...closed, resolve });
    for (let request = 0; request < 2; request++)
      expect(await post(client, `http://known.example:${receiver.port}/`)).toMatchObject({
        failure: 'address_refused',
      });
    expect(receiver.connectionCount()).toBe(0);
  });

  test('a name that is not found any more is connected to no more, though it was found before', async () => {
    const receiver = await receiverOf(respond(answer(200, '', 'connection: close\r\n')));
    const { resolve } = foundOnce(failsWith('ENOTFOUND'));
    const client = clientOf({ resolve });
    const url = `http://gone.example:${receiver.port}/`;
    expect(await post(client, url)).toMatchObject({ status: 200 });
    for (let request = 0; request < 2; request++)
      expect(await post(client, url)).toMatchObject({ failure: 'name_not_resolved' });
  });

  test('user and password of the endpoint become an Authorization header', async () => {
    const receiver = await receiverOf(respond(answer(200)));
    await post(clientOf(), receiver.url.replace('//', '//us%40er:p%3Ass@'));
    expect(receiver.requests[0]).toContain(
      `authorization: Basic ${Buffer.from('us@er:p:ss').toString('base64')}\r\n`,
    );
  });
});

describe('headers', () => {
  const sendWith = async (headers: Record<string, string>) => {
    const receiver = await receiverOf(respond(answer(200)));
    const sent = await clientOf().post({ endpoint: receiver.url, headers, body: 'grün' });
    return { sent, receiver };
  };

  test.each<[string, string]>([
    ['x', 'a\r\nhost: elsewhere'],
    ['x', 'a\n'],
    ['x', 'a\0'],
    ['x', '€'],
    ['x: y\r\nz', 'a'],
    ['', 'a'],
    ['Host', 'elsewhere'],
    ['Content-Length', '3'],
    ['transfer-encoding', 'chunked'],
    ['x y', 'a'],
  ])('that would change the request are not sent: %j, %j', async (name, value) => {
    const { sent, receiver } = await sendWith({ [name]: value });
    expect(sent).toMatchObject({ outcome: 'failure', failure: 'other', status: null });
    expect(receiver.connectionCount()).toBe(0);
  });

  test('beyond ASCII go out in Latin-1, and the body in UTF-8', async () => {
    const { sent, receiver } = await sendWith({ x: 'grün' });
    expect(sent).toMatchObject({ outcome: 'response', status: 200 });
    // The receiver reads all of it as UTF-8.
    expect(receiver.requests[0]).toContain('x: gr\ufffdn\r\ncontent-length: 5\r\n\r\ngrün');
  });
});
