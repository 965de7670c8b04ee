import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { TrackEvent } from '@sluice/domain/operations/operation';
import { runProgramUnderTest } from '@sluice/platform/testing/service-under-test';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { routes } from '../../../src/calls/calls.ts';
import {
  PIPELINES_AUTHORIZATION,
  startIntakeUnderTest,
  TRACK_AUTHORIZATION,
  type IntakeUnderTest,
} from '../support/intake-under-test.ts';
import { openRaw } from '../support/raw-http.ts';
import { eventsNamed, expectUnharmed } from '../support/unharmed.ts';

let intake: IntakeUnderTest;
beforeAll(async () => {
  intake = await startIntakeUnderTest();
});
afterAll(() => intake.close());

/** Members that clients of both shapes read (`ingestion-conventions.md` §3.3, §6). */
interface ProblemBody {
  code: string;
  message: string;
  errors: { field: string | null; reason: string; message: string; batch_index?: number }[];
  meta: { error: string; errors: string[] };
}

type RequestBody = NonNullable<RequestInit['body']>;

/** Publishing is for servers, though its path is one of the Pipelines API's. */
const takesWriteKey = (path: string): boolean => path.startsWith('/v1') && path !== '/v1/publish';

function send(
  path: string,
  body: RequestBody | null,
  headers: Record<string, string> = {},
  method = 'POST',
) {
  return fetch(`${intake.url}${path}`, {
    method,
    body,
    headers: {
      Authorization: takesWriteKey(path) ? PIPELINES_AUTHORIZATION : TRACK_AUTHORIZATION,
      ...headers,
    },
  });
}

const everyRoute = routes.map(({ method, pattern, call }) => ({
  name: `${method === 'del' ? 'DELETE' : method.toUpperCase()} ${pattern}`,
  method: method === 'del' ? 'DELETE' : method.toUpperCase(),
  path: pattern.replace(':segment', '7').replaceAll(/:\w+/g, 'p-1'),
  call,
}));
/** The routes whose body matters. */
const everyBodyRoute = everyRoute.filter(({ call }) => !/delete|suppress/.test(call.name));

describe('the table of ingestion-webhooks.md §7, on every path', () => {
  const guarded = everyRoute.filter(({ call }) => call.workspaceFrom === 'credentials');
  test.each(guarded)('$name: an authentication error', async ({ method, path, call }) => {
    for (const authorization of ['Basic d3Jvbmc6d3Jvbmc=', '', 'nonsense']) {
      const headers = { Authorization: authorization };
      const strict = await send(path, '{}', { ...headers, 'X-Strict-Mode': '1' }, method);
      expect(strict.status).toBe(401);
      expect(((await strict.json()) as ProblemBody).meta.error).toMatch(/unauthorized/i);
      const permissive = await send(path, '{}', headers, method);
      expect(permissive.status).toBe(call.api === 'pipelines' ? 200 : 401);
      await permissive.arrayBuffer();
    }
  });

  const cases: [
    string,
    (sizeBytesMax: number) => { body: RequestBody; headers?: Record<string, string> },
    RegExp,
  ][] = [
    [
      'truncated gzip',
      () => ({
        body: gzipSync('{"a":1}').subarray(0, 12),
        headers: { 'Content-Encoding': 'gzip' },
      }),
      /gzip/,
    ],
    [
      'text that is not deflate',
      () => ({ body: 'plain', headers: { 'Content-Encoding': 'deflate' } }),
      /deflate/,
    ],
    [
      'an unknown encoding',
      () => ({ body: '{}', headers: { 'Content-Encoding': 'br' } }),
      /encoding/,
    ],
    [
      'a gzip bomb',
      () => ({
        body: gzipSync(Buffer.alloc(20_000_000, 32)),
        headers: { 'Content-Encoding': 'gzip' },
      }),
      /larger than \d+ KB/,
    ],
    ['an oversized body', (max) => ({ body: `{"a":"${'x'.repeat(max)}"}` }), /larger than \d+ KB/],
    ['invalid JSON', () => ({ body: '{"userId":' }), /JSON/],
    ['invalid UTF-8', () => ({ body: new Uint8Array([0x22, 0xff, 0x22]) }), /UTF-8/],
    ['a number', () => ({ body: '42' }), /object/],
    ['an array', () => ({ body: '[1,2]' }), /object/],
    ['null', () => ({ body: 'null' }), /object/],
    ['a string', () => ({ body: '"x"' }), /object/],
  ];
  describe.each(cases)('%s', (name, make, message) => {
    // A body of null is Go's nil map, and all attributes are optional.
    const refusing = everyBodyRoute.filter(
      ({ call }) => name !== 'null' || call.name !== 'track.v1.identify',
    );
    test.each(refusing)('$name', async ({ method, path, call }) => {
      const { body, headers } = make(call.sizeBytesMax);
      const strict = await send(path, body, { ...headers, 'X-Strict-Mode': '1' }, method);
      expect(strict.status).toBe(400);
      const problem = (await strict.json()) as ProblemBody;
      expect(problem.message).toMatch(message);
      expect(problem.meta.error).toBe(problem.message);
      expect(problem.meta.errors.join()).toMatch(message);
      expect(problem.errors.length).toBeGreaterThan(0);
      expect(JSON.stringify(problem)).not.toMatch(/\bat .*\.ts|node_modules|stack/i);
      if (call.api === 'pipelines') {
        const before = intake.operations.length;
        const permissive = await send(path, body, headers, method);
        expect(permissive.status).toBe(200);
        expect(await permissive.json()).toEqual({});
        await vi.waitFor(() => {
          const recorded = intake.operations.slice(before);
          expect(recorded.map((operation) => operation.type)).toContain('issue.record');
        }, 20_000);
      }
    });
  });

  test.each([
    ['identify', { traits: {} }, 'userId'],
    ['track', { event: 'x' }, 'userId'],
    ['track', { userId: 'a' }, 'event'],
    ['page', { name: 'x' }, 'userId'],
    ['screen', { name: 'x' }, 'userId'],
    ['alias', { previousId: 'b' }, 'userId'],
    ['alias', { userId: 'a' }, 'previousId'],
    ['group', { userId: 'a' }, 'groupId'],
  ])('strict %s without %j names the field %s', async (call, body, field) => {
    const answer = await send(`/v1/${call}`, JSON.stringify(body), { 'X-Strict-Mode': '1' });
    expect(answer.status).toBe(400);
    const problem = (await answer.json()) as ProblemBody;
    expect(problem.errors.map((error) => error.field)).toContain(field);
    expect(problem.message).toContain(field);
  });
});

describe('hostile bodies', () => {
  const deep = (depth: number) =>
    `{"userId":"a","event":"deep","properties":{"a":${'['.repeat(depth)}${']'.repeat(depth)}}}`;

  test('10,000 levels of nesting are refused with the field named', async () => {
    const answer = await send('/v1/track', deep(10_000), { 'X-Strict-Mode': '1' });
    expect(answer.status).toBe(400);
    expect(((await answer.json()) as ProblemBody).errors[0]?.field).toMatch(/^properties/);
    expect((await send('/v1/track', deep(10_000))).status).toBe(200);
    await expectUnharmed(intake);
  });

  test('__proto__ and constructor keys change no prototype and are ordinary data', async () => {
    const body =
      '{"userId":"a","event":"proto","properties":{"__proto__":{"polluted":1},"constructor":{"prototype":{"polluted":1}}}}';
    expect((await send('/v1/track', body)).status).toBe(200);
    await vi.waitFor(() => {
      const [found] = eventsNamed(intake, 'proto');
      expect(Object.keys((found as TrackEvent).data)).toEqual(['__proto__', 'constructor']);
    }, 20_000);
    expect(({} as { polluted?: number }).polluted).toBeUndefined();
  });

  test('a batch of 2,500 broken items takes its good neighbours', async () => {
    const batch: unknown[] = Array.from({ length: 2_499 }, () => null);
    batch.splice(1_000, 0, { type: 'track', userId: 'a', event: 'the good one' });
    expect((await send('/v1/batch', JSON.stringify({ batch }))).status).toBe(200);
    await vi.waitFor(() => expect(eventsNamed(intake, 'the good one')).toHaveLength(1), 20_000);
  });
});

describe('paths and methods', () => {
  test('an unknown path is 404 and a wrong method is 405 with the allowed methods', async () => {
    const unknown = await send('/v1/nothing', '{}');
    expect(unknown.status).toBe(404);
    expect(((await unknown.json()) as ProblemBody).code).toBe('not_found');
    const wrong = await send('/v1/track', null, {}, 'GET');
    expect(wrong.status).toBe(405);
    expect(wrong.headers.get('allow')).toBe('POST');
    await wrong.arrayBuffer();
    const customers = await send('/api/v1/customers/a', null, {}, 'GET');
    expect(customers.headers.get('allow')).toBe('PUT, DELETE');
    await customers.arrayBuffer();
  });

  test('percent-encoded identifiers are decoded once, and broken encoding is refused', async () => {
    const answer = await send('/api/v1/customers/u%201%2B%40x%2Fy', '{"plan":"pro"}', {}, 'PUT');
    expect(answer.status).toBe(200);
    await vi.waitFor(() => {
      expect(intake.operations).toContainEqual(
        expect.objectContaining({
          type: 'person.identify',
          person: { kind: 'id', value: 'u 1+@x/y' },
        }),
      );
    }, 20_000);
    expect((await send('/api/v1/customers/%E0%A4%A', '{}', {}, 'PUT')).status).toBe(400);
  });

  // Each bare byte that is no UTF-8 is read as U+FFFD: two people would be one.
  test.each([
    ['UTF-8', 'Jos\u00c3\u00a9', 200],
    ['no UTF-8', 'Jos\u00e9', 400],
    ['no UTF-8 among what is', '%C3%A9\u00e9', 400],
    ['an encoded U+FFFD', 'Jos%EF%BF%BD', 200],
  ])('a path of %s is taken as it is, or not at all', async (_, identifier, status) => {
    const raw = openRaw(intake.port);
    const head = `PUT /api/v1/customers/${identifier} HTTP/1.1\r\nHost: x\r\nAuthorization: ${TRACK_AUTHORIZATION}\r\nContent-Length: 2\r\n\r\n{}`;
    raw.write(Buffer.from(head, 'latin1'));
    expect((await raw.answer()).status).toBe(status);
    raw.destroy();
  });

  test('browsers may call from any origin', async () => {
    const preflight = await fetch(`${intake.url}/v1/track`, {
      method: 'OPTIONS',
      headers: { Origin: 'https://shop.example', 'Access-Control-Request-Method': 'POST' },
    });
    expect(preflight.status).toBe(204);
    expect(preflight.headers.get('access-control-allow-origin')).toBe('*');
    // Headers that `@segment/analytics-next` 1.84 adds to a call that it sends again, and the instruments of traces.
    const allowed = preflight.headers
      .get('access-control-allow-headers')
      ?.toLowerCase()
      .split(', ');
    expect(allowed).toEqual(
      expect.arrayContaining(['authorization', 'content-type', 'x-retry-count', 'traceparent']),
    );
    const call = await send(
      '/v1/t',
      JSON.stringify({ userId: null, anonymousId: 'b', event: 'x', writeKey: 'write-key' }),
      {
        Authorization: '',
        Origin: 'https://shop.example',
        'Content-Type': 'text/plain',
      },
    );
    expect(call.status).toBe(200);
    expect(call.headers.get('access-control-allow-origin')).toBe('*');
    expect(call.headers.get('access-control-expose-headers')).toContain('Retry-After');
  });

  test('each call type answers with the documented success', async () => {
    const form = await send(
      '/api/v1/forms/f1/submit',
      JSON.stringify({ data: { email: 'a@b.example' } }),
    );
    expect(form.status).toBe(204);
    const entity = await send(
      '/v2/entity',
      JSON.stringify({ type: 'person', action: 'identify', identifiers: { id: 'a' } }),
    );
    expect([entity.status, await entity.text()]).toEqual([200, '{}\n']);
  });
});

// uWebSockets.js does not report why it cannot listen.
test('a port that another process has is named on the last line, and intake ends with 1', async () => {
  const holder = createServer().listen(0, '127.0.0.1');
  await once(holder, 'listening');
  const { port } = holder.address() as AddressInfo;
  const { url } = await createTestDatabase();
  const { code, output } = await runProgramUnderTest(
    fileURLToPath(new URL('../../../src/main.ts', import.meta.url)),
    {
      DATABASE_URL: url,
      LOG_LEVEL: 'fatal',
      INTAKE_PORT: String(port),
    },
  );
  holder.close();
  expect(code).toBe(1);
  expect(JSON.parse(output)).toMatchObject({
    level: 60,
    code: 'PORT_TAKEN',
    msg: expect.stringContaining(`another process listens on 127.0.0.1:${port}; `),
  });
});
