import { once } from 'node:events';
import { connect, createServer } from 'node:net';
import { createDatabase, type Database } from '@sluice/database/connection/connection';
import { startTcpProxyTo, type UrlProxy } from '@sluice/database/testing/tcp-proxy';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';
import type { RequestRecord } from '../../../src/api-effects.ts';
import { expectProblem } from '../../support/error-shapes.ts';
import { KEY_OF_A, startApi, type ApiUnderTest } from '../support/api-under-test.ts';

const authorization = `Bearer ${KEY_OF_A}`;

const records: RequestRecord[] = [];
let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi({
    newId: () => 'id-made-here',
    recordRequest: (record) => void records.push(record),
  });
});
afterAll(() => api.close());

/** One for a test that breaks it. */
async function startOwn(...given: Parameters<typeof startApi>): Promise<ApiUnderTest> {
  const own = await startApi(...given);
  onTestFinished(() => own.close());
  return own;
}

/** One that reaches Postgres by a way that can be cut, and remembers the key. */
async function startBehindProxy() {
  const proxies: UrlProxy[] = [];
  const databases: Database[] = [];
  const own = await startOwn(
    {},
    {
      openDatabase: async (databaseUrl) => {
        const proxy = await startTcpProxyTo(databaseUrl);
        proxies.push(proxy);
        const database = createDatabase({
          url: proxy.url,
          poolMax: 2,
          applicationName: 'behind a proxy',
          onError: () => undefined,
        });
        databases.push(database);
        return database;
      },
    },
  );
  const [proxy] = proxies;
  const [database] = databases;
  if (!proxy || !database) throw new Error('the API did not open its database');
  const closeProxy = async () => {
    if (proxies.pop()) await proxy.close();
  };
  onTestFinished(async () => {
    await database.destroy();
    await closeProxy();
  });
  return { own, database, proxy, closeProxy };
}

const listWebhooks = ({ app }: ApiUnderTest) =>
  app.inject({ url: '/v1/reporting_webhooks', headers: { authorization } });

/** From here on every read of the webhooks fails in this way. */
async function breakReads({ database }: ApiUnderTest, plpgsql: string): Promise<void> {
  await sql`
    create function fail_read() returns boolean stable language plpgsql as
      ${sql.lit(`begin ${plpgsql}; return true; end`)}`.execute(database);
  await sql`alter table webhooks rename to webhooks_out_of_reach`.execute(database);
  await sql`
    create view webhooks as select * from webhooks_out_of_reach where fail_read()`.execute(
    database,
  );
  await sql`grant select on webhooks to sluice_api`.execute(database);
}

/** Ends each connection to the port with a reset. */
async function startResetting(port: number): Promise<void> {
  const server = createServer((socket) => void socket.resetAndDestroy());
  server.listen(port, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    server.close();
    await once(server, 'close');
  });
}

describe('the request id', () => {
  test('comes from the caller if it is well formed', async () => {
    const answer = await api.app.inject({
      url: '/livez',
      headers: { 'x-request-id': 'abc-123:9' },
    });
    expect(answer.headers['x-request-id']).toBe('abc-123:9');
  });

  test.each([
    ['with a space', 'with space'],
    ['too long', 'a'.repeat(129)],
    ['with a quote', 'a"b'],
    ['not ASCII', 'é'],
    ['empty', ''],
  ])("is made by the API if the caller's is %s", async (_name, given) => {
    const answer = await api.app.inject({ url: '/livez', headers: { 'x-request-id': given } });
    expect(answer.headers['x-request-id']).toBe('id-made-here');
  });
});

describe('paths and methods', () => {
  test('an unknown path is 404 before its body is looked at', async () => {
    const answer = await api.app.inject({
      method: 'POST',
      url: '/v1/nothing',
      headers: { 'content-type': 'application/json' },
      payload: '{',
    });
    expectProblem(answer, 404, 'not_found');
  });

  test('a method that a path does not take is 405 with Allow', async () => {
    for (const method of ['PATCH', 'DELETE', 'PUT'] as const) {
      const answer = await api.app.inject({ method, url: '/v1/reporting_webhooks', payload: {} });
      const { message } = expectProblem(answer, 405, 'method_not_allowed');
      expect(message).toContain('Method Not Allowed');
      expect(answer.headers['allow']).toBe('GET, HEAD, OPTIONS, POST');
    }
  });

  test('OPTIONS lists the methods of a path without credentials', async () => {
    const answer = await api.app.inject({ method: 'OPTIONS', url: '/v1/reporting_webhooks/1' });
    expect(answer.statusCode).toBe(204);
    expect(answer.headers['allow']).toBe('DELETE, GET, HEAD, OPTIONS, PUT');
    expect(answer.body).toBe('');
  });

  test('HEAD answers as GET does, without the body', async () => {
    const answer = await api.app.inject({
      method: 'HEAD',
      url: '/v1/reporting_webhooks',
      headers: { authorization },
    });
    expect(answer.statusCode).toBe(200);
    expect(answer.body).toBe('');
    expect(Number(answer.headers['content-length'])).toBeGreaterThan(0);
  });

  test('a path that is not valid percent-encoded UTF-8 is 400', async () => {
    expectProblem(
      await api.app.inject({ url: '/v1/customers/%ff%fe/attributes' }),
      400,
      'invalid_request',
    );
  });

  test('a name too long for anything to have it is 404', async () => {
    expectProblem(
      await api.app.inject({ url: `/v1/reporting_webhooks/${'9'.repeat(2000)}` }),
      404,
      'not_found',
    );
  });
});

describe('failures of our own', () => {
  test('are 500 without a word about the inside', async () => {
    const own = await startOwn();
    await breakReads(own, 'perform 1 from secret_table');
    const answer = await listWebhooks(own);
    expectProblem(answer, 500, 'internal');
    expect(answer.body).not.toContain('secret_table');
  });

  test.each(['ECONNREFUSED', 'ECONNRESET'])(
    'with no way to the database (%s) are 503 with Retry-After',
    async (code) => {
      const { own, database, proxy, closeProxy } = await startBehindProxy();
      expect((await listWebhooks(own)).statusCode).toBe(200);
      await closeProxy();
      if (code === 'ECONNRESET') await startResetting(proxy.port);
      // Once the connection that the first call left open is given up.
      await vi.waitFor(
        () => expect(sql`select`.execute(database)).rejects.toMatchObject({ code }),
        {
          timeout: 30_000,
          interval: 10,
        },
      );
      const answer = await listWebhooks(own);
      expectProblem(answer, 503, 'unavailable');
      expect(answer.headers['retry-after']).toBe('1');
    },
  );

  test.each(['57P01', '08006', '53300', '40001', '40P01'])(
    'with the database away, or a transaction that Postgres gave up for another (%s), are 503 with Retry-After',
    async (code) => {
      const own = await startOwn();
      await breakReads(own, `raise exception using errcode = '${code}'`);
      const answer = await listWebhooks(own);
      expectProblem(answer, 503, 'unavailable');
      expect(answer.headers['retry-after']).toBe('1');
    },
  );

  test('a key that cannot be looked up now is 503 and not 401, so that no client throws its key away', async () => {
    const { own, proxy } = await startBehindProxy();
    proxy.cut();
    expectProblem(await listWebhooks(own), 503, 'unavailable');
    proxy.restore();
    expect((await listWebhooks(own)).statusCode).toBe(200);
  });

  test('a response that does not match its schema never leaves', async () => {
    const own = await startOwn();
    // More than a number of JSON can hold.
    await sql`
      insert into people_counts (environment_id, people)
      values (${own.a.environmentId}, ${String(2n ** 53n)})`.execute(own.database);
    const answer = await own.app.inject({ url: '/v1/workspaces', headers: { authorization } });
    expectProblem(answer, 500, 'internal');
  });
});

describe('on a real socket', () => {
  let url: string;
  beforeAll(async () => {
    url = await api.app.listen({ host: '127.0.0.1', port: 0 });
  });

  const exchange = (port: number, bytes: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
      let received = '';
      socket.setEncoding('utf8');
      socket.on('data', (chunk: string) => (received += chunk));
      socket.on('close', () => resolve(received));
      // The server may close with bytes unread: a reset follows the answer, and then 'close'.
      socket.on('error', (error) => {
        if (received === '') reject(error);
      });
    });

  test.each([
    ['garbage', 'garbage\r\n\r\n', 400, 'invalid_request'],
    [
      'two lengths',
      'POST /v1 HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nab',
      400,
      'invalid_request',
    ],
    [
      'two equal credentials',
      `GET /v1/reporting_webhooks HTTP/1.1\r\nhost: a\r\nconnection: close\r\n${`authorization: ${authorization}\r\n`.repeat(2)}\r\n`,
      400,
      'invalid_request',
    ],
    ['no Host', 'GET /livez HTTP/1.1\r\nconnection: close\r\n\r\n', 400, 'invalid_request'],
    [
      'two Hosts',
      'GET /livez HTTP/1.1\r\nhost: localhost\r\nHOST: a\r\nconnection: close\r\n\r\n',
      400,
      'invalid_request',
    ],
    [
      'an unknown expectation',
      'GET /v1 HTTP/1.1\r\nhost: a\r\nexpect: x\r\nconnection: close\r\n\r\n',
      404,
      'not_found',
    ],
    [
      'huge headers',
      `GET / HTTP/1.1\r\nhost: a\r\nx: ${'y'.repeat(40_000)}\r\n\r\n`,
      431,
      'headers_too_large',
    ],
  ])('%s gets the one body too', async (_name, bytes, status, code) => {
    const { port } = new URL(url);
    const [head = '', body = ''] = (await exchange(Number(port), bytes)).split('\r\n\r\n');
    const headers = Object.fromEntries(
      head
        .split('\r\n')
        .slice(1)
        .map((line) => line.split(': ')),
    );
    expectProblem(
      { statusCode: Number(head.split(' ')[1]), headers, body, json: () => JSON.parse(body) },
      status,
      code,
    );
    expect(headers['x-content-type-options']).toBe('nosniff');
  });

  test('a connection that is cut inside its body does not disturb the server', async () => {
    await new Promise<void>((resolve) => {
      const socket = connect(Number(new URL(url).port), '127.0.0.1', () => {
        socket.write(
          `POST /v1/reporting_webhooks HTTP/1.1\r\nhost: a\r\nauthorization: ${authorization}\r\n` +
            'content-type: application/json\r\ncontent-length: 100\r\n\r\n{"name":',
          () => socket.destroy(),
        );
      });
      socket.on('close', () => resolve());
    });
    expect((await fetch(`${url}/livez`)).status).toBe(200);
  });
});

describe('probes', () => {
  test('need no key and return their results', async () => {
    const { app } = await startOwn({
      checkReadiness: async () => ({ isReady: true, checks: { database: 'answers' } }),
      renderMetrics: async () => ({ contentType: 'text/plain', body: 'sluice_up 1\n' }),
    });
    expect((await app.inject('/livez')).body).toBe('alive\n');
    expect((await app.inject('/readyz')).json()).toEqual({
      ready: true,
      checks: { database: 'answers' },
    });
    expect((await app.inject('/metrics')).body).toBe('sluice_up 1\n');
  });

  test('readiness fails with 503 and the failed check', async () => {
    const { app } = await startOwn({
      checkReadiness: async () => ({ isReady: false, checks: { database: 'does not answer' } }),
    });
    const answer = await app.inject('/readyz');
    expect(answer.statusCode).toBe(503);
    expect(answer.json()).toEqual({ ready: false, checks: { database: 'does not answer' } });
  });
});

test('requests are recorded by route, never by URL, which names people', async () => {
  records.length = 0;
  await api.app.inject({
    url: '/v1/customers/ada@example.com/attributes',
    headers: { authorization },
  });
  expect(records).toMatchObject([
    { method: 'GET', route: '/v1/customers/:identifier/attributes', status: 404 },
  ]);
});
