/**
 * Addresses, credentials, sizes and headers of other services' clients.
 *
 * On real sockets.
 */
import { deflateSync, gzipSync } from 'node:zlib';
import { PIPELINES_BATCH_SIZE_BYTES_MAX } from '@sluice/domain/operations/limits';
import type { RecordIssue, TrackEvent } from '@sluice/domain/operations/operation';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { routes } from '../../../src/calls/calls.ts';
import {
  PIPELINES_AUTHORIZATION,
  startIntakeUnderTest,
  TRACK_AUTHORIZATION,
  type IntakeUnderTest,
} from '../support/intake-under-test.ts';

let intake: IntakeUnderTest;
beforeAll(async () => {
  intake = await startIntakeUnderTest();
});
afterAll(() => intake.close());

const WAIT = { timeout: 20_000 };

const send = (path: string, body: BodyInit, headers: Record<string, string> = {}) =>
  fetch(`${intake.url}${path}`, {
    method: 'POST',
    headers: { Authorization: PIPELINES_AUTHORIZATION, ...headers },
    body,
  });
type BodyInit = string | Uint8Array;

const countOf = (person: string): number =>
  intake.operations.filter(
    (operation) => operation.type === 'event.track' && operation.person?.value === person,
  ).length;
const issues = (): RecordIssue[] =>
  intake.operations.filter(
    (operation): operation is RecordIssue => operation.type === 'issue.record',
  );

test.each(['/v1/import', '/v1/import/', '/v1/batch/', '/v1/b'])(
  '%s takes batches',
  async (path) => {
    const person = `path ${path}`;
    const batch = [{ type: 'track', userId: person, event: 'e' }];
    const answer = await send(
      path,
      JSON.stringify({ batch, sentAt: new Date().toISOString(), sequence: 1 }),
    );
    expect(answer.status).toBe(200);
    await vi.waitFor(() => expect(countOf(person)).toBe(1), WAIT);
  },
);

describe('a slash at the end of a path changes no answer', () => {
  const paths = routes.map(({ method, pattern }) => ({
    method: method === 'del' ? 'DELETE' : method.toUpperCase(),
    path: pattern.replace(':segment', '7').replaceAll(/:\w+/g, 'p-1'),
  }));
  const others = [
    { method: 'GET', path: '/livez' },
    { method: 'GET', path: '/auth' },
    { method: 'POST', path: '/v1/stream' },
    { method: 'PATCH', path: '/v1/track' },
  ];

  test.each([...paths, ...others])('$method $path/', async ({ method, path }) => {
    const ask = async (asked: string) => {
      const answer = await fetch(`${intake.url}${asked}`, {
        method,
        headers: { Authorization: TRACK_AUTHORIZATION, 'X-Strict-Mode': '1' },
        ...(method !== 'GET' && { body: '{}' }),
      });
      return { status: answer.status, body: await answer.text() };
    };
    const closed = await ask(`${path}/`);
    expect(closed.status).not.toBe(404);
    expect(closed).toEqual(await ask(path));
  });
});

describe('a write key as a Bearer token', () => {
  test('opens calls and streams, as it does as the user of Basic', async () => {
    const body = JSON.stringify({ userId: 'bearer', event: 'e' });
    for (const path of ['/v1/track', '/v1/stream']) {
      const line = JSON.stringify({ type: 'track', userId: 'bearer', event: 'e' });
      const answer = await send(path, path === '/v1/stream' ? line : body, {
        Authorization: 'Bearer write-key',
        'X-Strict-Mode': '1',
      });
      expect(answer.status).toBe(200);
      await answer.text();
    }
    await vi.waitFor(() => expect(countOf('bearer')).toBe(2), WAIT);
  });

  test.each(['Bearer wrong', 'Bearer', 'Bearer api-key', 'Bearer write-key:', 'Bearer a b'])(
    '%j opens nothing',
    async (authorization) => {
      const headers = { Authorization: authorization, 'X-Strict-Mode': '1' };
      const answer = await send('/v1/track', '{"userId":"u","event":"e"}', headers);
      expect(answer.status).toBe(401);
    },
  );

  test('opens no call of the Track API', async () => {
    const headers = { Authorization: 'Bearer write-key' };
    expect((await send('/v2/entity', '{}', headers)).status).toBe(401);
  });
});

describe('a preflight', () => {
  const allowed = async (asked: string | undefined): Promise<string> => {
    const answer = await fetch(`${intake.url}/v1/track`, {
      method: 'OPTIONS',
      headers: {
        Origin: 'https://shop.example',
        'Access-Control-Request-Method': 'POST',
        ...(asked !== undefined && { 'Access-Control-Request-Headers': asked }),
      },
    });
    expect(answer.status).toBe(204);
    expect(answer.headers.get('access-control-allow-origin')).toBe('*');
    expect(answer.headers.get('access-control-allow-credentials')).toBeNull();
    return answer.headers.get('access-control-allow-headers') ?? '';
  };

  test('allows the headers that are asked for', async () => {
    for (const asked of ['anonymousid,authorization,content-type', 'x-any', 'a, b ,c'])
      expect(await allowed(asked)).toBe(asked);
  });

  test('allows the default headers if the request names no headers or invalid ones', async () => {
    for (const asked of [undefined, '', 'a b', 'a,,b', 'x'.repeat(101), '<script>'])
      expect(await allowed(asked)).toContain('Authorization, Content-Type');
  });
});

describe('a batch over 1 MB', () => {
  const batchOf = (person: string, count: number, sizeBytes: number): string =>
    JSON.stringify({
      batch: Array.from({ length: count }, (_, index) => ({
        type: 'track',
        userId: person,
        event: 'e',
        messageId: `${person}-${index}`,
        // Brackets and quotes in texts are no calls.
        properties: { text: '[{"{', pad: 'x'.repeat(sizeBytes) },
      })),
    });

  test.each([undefined, 'gzip'])(
    'is taken up to 4 MB, compressed (%s) or not',
    async (encoding) => {
      const person = `large-${encoding ?? 'plain'}`;
      const body = batchOf(person, 100, 12_000);
      expect(body.length).toBeGreaterThan(1_048_576);
      const answer = await send('/v1/batch', encoding ? gzipSync(body) : body, {
        ...(encoding && { 'Content-Encoding': encoding }),
      });
      expect(answer.status).toBe(200);
      await vi.waitFor(() => expect(countOf(person)).toBe(100), WAIT);
    },
  );

  test('is refused in strict mode, and the answer counts the lost calls', async () => {
    const answer = await send('/v1/batch', batchOf('strict', 100, 12_000), {
      'X-Strict-Mode': '1',
    });
    expect(answer.status).toBe(400);
    expect(await answer.json()).toMatchObject({
      code: 'too_large',
      message:
        'the request body is larger than 1024 KB; the 100 calls in it are lost. Send them again in smaller bodies',
    });
    expect(countOf('strict')).toBe(0);
  });

  test('keeps each item within its own limit', async () => {
    const before = issues().length;
    const person = 'one too large';
    const large = batchOf(person, 1, 70_000).slice('{"batch":['.length, -2);
    const body = batchOf(person, 90, 12_000).replace('{"batch":[', `{"batch":[${large},`);
    expect((await send('/v1/batch', body)).status).toBe(200);
    await vi.waitFor(() => expect(countOf(person)).toBe(90), WAIT);
    // Commit batches of several shards come in any order.
    await vi.waitFor(
      () =>
        expect(issues().slice(before)).toMatchObject([
          { issue: { code: 'too_large', batchIndex: 0 }, count: 1 },
        ]),
      WAIT,
    );
  });

  test.each([undefined, 'gzip', 'deflate'])(
    'that is too large (%s) is one issue with the count of its calls',
    async (encoding) => {
      const before = issues().length;
      const body = batchOf('lost', 97, 45_000);
      expect(body.length).toBeGreaterThan(PIPELINES_BATCH_SIZE_BYTES_MAX);

      const bytes =
        encoding === 'gzip' ? gzipSync(body) : encoding === 'deflate' ? deflateSync(body) : body;
      const headers = encoding === undefined ? {} : { 'Content-Encoding': encoding };
      expect((await send('/v1/batch', bytes, headers)).status).toBe(200);
      await vi.waitFor(() => expect(issues().length).toBe(before + 1), WAIT);
      expect(issues().at(-1)).toMatchObject({
        issue: { code: 'too_large', field: null, message: expect.stringContaining('97 calls') },
        count: 97,
      });
      expect(countOf('lost')).toBe(0);
    },
  );

  test('with too many items is one issue with their count', async () => {
    const before = issues().length;
    expect((await send('/v1/batch', batchOf('many', 2_501, 10))).status).toBe(200);
    await vi.waitFor(() => expect(issues().length).toBe(before + 1), WAIT);
    expect(issues().at(-1)).toMatchObject({
      issue: { code: 'too_large', field: 'batch' },
      count: 2_501,
    });
  });
});

test('a nil map of Go is no attributes, whether it is a body or a member', async () => {
  const put = (path: string, body: string | null) =>
    fetch(`${intake.url}${path}`, {
      method: 'PUT',
      headers: { Authorization: TRACK_AUTHORIZATION },
      ...(body !== null && { body }),
    });
  for (const [person, body] of [
    ['nil-1', 'null'],
    ['nil-2', ' null\n'],
  ] as const)
    expect((await put(`/api/v1/customers/${person}`, body)).status).toBe(200);
  const device =
    '{"device":{"id":"t","platform":"ios","last_used":"1.790000001e+09","attributes":null}}';
  expect((await put('/api/v1/customers/nil-1/devices', device)).status).toBe(200);
  expect((await put('/api/v1/customers/nil-1/events', '{"name":"e","data":null}')).status).toBe(
    200,
  );
  await vi.waitFor(() => expect(countOf('nil-1')).toBe(1), WAIT);
  const made = () =>
    intake.operations.filter(
      (operation) =>
        operation.type === 'person.identify' && operation.person.value.startsWith('nil'),
    );
  // The second person may be on another shard.
  await vi.waitFor(
    () => expect(made()).toMatchObject([{ attributes: {} }, { attributes: {} }]),
    WAIT,
  );
  expect(intake.operations.find(({ type }) => type === 'device.add')).toMatchObject({
    lastUsedAtMs: 1_790_000_001_000,
  });
});

test('an event of a batch is the same by the fast path and by the slow one', async () => {
  const event = { type: 'track', userId: 'both', event: 'e', messageId: 'm', properties: { a: 1 } };
  await send('/v1/import/', JSON.stringify({ batch: [event] }));
  await send(
    '/v1/import/',
    JSON.stringify({ batch: [{ ...event, context: 'NaN' }] }).replace('"NaN"', 'NaN'),
  );
  await vi.waitFor(() => expect(countOf('both')).toBe(2), WAIT);
  const [fast, slow] = intake.operations.filter(
    (operation): operation is TrackEvent =>
      operation.type === 'event.track' && operation.person?.value === 'both',
  );
  const { receivedAtMs: _a, occurredAtMs: _b, ...one } = fast as TrackEvent;
  const { receivedAtMs: _c, occurredAtMs: _d, ...other } = slow as TrackEvent;
  expect(other).toEqual(one);
});
