import { connect } from 'node:net';
import { describe, expect, test } from 'vitest';
import { expectProblem } from '../support/error-shapes.ts';
import { authorization, openServer } from '../support/fake-dependencies.ts';

describe('the request id', () => {
  test("is the caller's where it is well formed", async () => {
    const { app } = await openServer();
    const answer = await app.inject({ url: '/livez', headers: { 'x-request-id': 'abc-123:9' } });
    expect(answer.headers['x-request-id']).toBe('abc-123:9');
  });

  test.each([
    ['with a space', 'with space'],
    ['too long', 'a'.repeat(129)],
    ['with a quote', 'a"b'],
    ['not ASCII', 'é'],
    ['empty', ''],
  ])("is ours where the caller's is %s", async (_name, given) => {
    const { app } = await openServer();
    const answer = await app.inject({ url: '/livez', headers: { 'x-request-id': given } });
    expect(answer.headers['x-request-id']).toBe('id-1');
  });
});

describe('paths and methods', () => {
  test('an unknown path is 404 before its body is looked at', async () => {
    const { app } = await openServer();
    const answer = await app.inject({
      method: 'POST',
      url: '/v1/nothing',
      headers: { 'content-type': 'application/json' },
      payload: '{',
    });
    expectProblem(answer, 404, 'not_found');
  });

  test('a method that a path does not take is 405 with Allow', async () => {
    const { app } = await openServer();
    for (const method of ['PATCH', 'DELETE', 'PUT'] as const) {
      const answer = await app.inject({ method, url: '/v1/reporting_webhooks', payload: {} });
      const { message } = expectProblem(answer, 405, 'method_not_allowed');
      expect(message).toContain('Method Not Allowed');
      expect(answer.headers['allow']).toBe('GET, HEAD, OPTIONS, POST');
    }
  });

  test('OPTIONS says what a path takes, without credentials', async () => {
    const { app } = await openServer();
    const answer = await app.inject({ method: 'OPTIONS', url: '/v1/reporting_webhooks/1' });
    expect(answer.statusCode).toBe(204);
    expect(answer.headers['allow']).toBe('DELETE, GET, HEAD, OPTIONS, PUT');
    expect(answer.body).toBe('');
  });

  test('HEAD answers as GET does, without the body', async () => {
    const { app } = await openServer();
    const answer = await app.inject({
      method: 'HEAD',
      url: '/v1/reporting_webhooks',
      headers: { authorization },
    });
    expect(answer.statusCode).toBe(200);
    expect(answer.body).toBe('');
    expect(Number(answer.headers['content-length'])).toBeGreaterThan(0);
  });

  test('a path that is not valid percent-encoded UTF-8 is 400', async () => {
    const { app } = await openServer();
    expectProblem(
      await app.inject({ url: '/v1/customers/%ff%fe/attributes' }),
      400,
      'invalid_request',
    );
  });

  test('a name too long for anything to have it is 404', async () => {
    const { app } = await openServer();
    expectProblem(
      await app.inject({ url: `/v1/reporting_webhooks/${'9'.repeat(2000)}` }),
      404,
      'not_found',
    );
  });
});

describe('failures of our own', () => {
  test('are 500 without a word about the inside', async () => {
    const { app } = await openServer({
      listWebhooks: async () => {
        throw new Error('relation "secret_table" does not exist');
      },
    });
    const answer = await app.inject({ url: '/v1/reporting_webhooks', headers: { authorization } });
    expectProblem(answer, 500, 'internal');
    expect(answer.body).not.toContain('secret_table');
  });

  test.each(['ECONNREFUSED', 'ECONNRESET', '57P01', '08006', '53300', '40001', '40P01'])(
    'with the database away, or a transaction that Postgres gave up for another (%s), are 503 with Retry-After',
    async (code) => {
      const { app } = await openServer({
        listWebhooks: async () => {
          throw Object.assign(new Error('no'), { code });
        },
      });
      const answer = await app.inject({
        url: '/v1/reporting_webhooks',
        headers: { authorization },
      });
      expectProblem(answer, 503, 'unavailable');
      expect(answer.headers['retry-after']).toBe('1');
    },
  );

  test('a key that cannot be looked up now is 503 and not 401, so that no client throws its key away', async () => {
    let isAway = true;
    const { app } = await openServer({
      findAppKey: async () => {
        if (isAway) throw Object.assign(new Error('no'), { code: 'ECONNREFUSED' });
        return { environmentId: 1, credentialId: 1, name: 'test' };
      },
    });
    const call = () => app.inject({ url: '/v1/reporting_webhooks', headers: { authorization } });
    expectProblem(await call(), 503, 'unavailable');
    isAway = false;
    expect((await call()).statusCode).toBe(200);
  });

  test('a response that does not match its schema never leaves', async () => {
    const { app } = await openServer({
      findWorkspaceTotals: async () => ({
        environmentId: 1,
        name: 'a',
        people: 'many',
        objects: '0',
        objectTypes: '0',
      }),
    });
    const answer = await app.inject({ url: '/v1/workspaces', headers: { authorization } });
    expectProblem(answer, 500, 'internal');
  });
});

describe('on a real socket', () => {
  const exchange = (port: number, bytes: string): Promise<string> =>
    new Promise((resolve, reject) => {
      const socket = connect(port, '127.0.0.1', () => socket.write(bytes));
      let received = '';
      socket.setEncoding('utf8');
      socket.on('data', (chunk: string) => (received += chunk));
      socket.on('close', () => resolve(received));
      socket.on('error', reject);
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
      'huge headers',
      `GET / HTTP/1.1\r\nhost: a\r\nx: ${'y'.repeat(40_000)}\r\n\r\n`,
      431,
      'headers_too_large',
    ],
  ])('%s gets the one body too', async (_name, bytes, status, code) => {
    const { app } = await openServer();
    const { port } = new URL(await app.listen({ host: '127.0.0.1', port: 0 }));
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
  });

  test('a connection cut in the middle of its body disturbs nobody', async () => {
    const { app } = await openServer();
    const url = await app.listen({ host: '127.0.0.1', port: 0 });
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
  test('need no key and say what they found', async () => {
    const { app } = await openServer();
    expect((await app.inject('/livez')).body).toBe('alive\n');
    expect((await app.inject('/readyz')).json()).toEqual({
      ready: true,
      checks: { database: 'answers' },
    });
    expect((await app.inject('/metrics')).body).toBe('sluice_up 1\n');
  });

  test('readiness fails with what is missing', async () => {
    const { app } = await openServer({
      checkReadiness: async () => ({ isReady: false, checks: { database: 'does not answer' } }),
    });
    const answer = await app.inject('/readyz');
    expect(answer.statusCode).toBe(503);
    expect(answer.json()).toEqual({ ready: false, checks: { database: 'does not answer' } });
  });
});

test('requests are recorded by route, never by URL, which names people', async () => {
  const { app, records } = await openServer();
  await app.inject({ url: '/v1/customers/ada@example.com/attributes', headers: { authorization } });
  expect(records).toMatchObject([
    { method: 'GET', route: '/v1/customers/:identifier/attributes', status: 404 },
  ]);
});
