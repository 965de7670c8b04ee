/** `Idempotency-Key` on routes of a small server: kept answers, freed keys, and their owners. */
import { createTestDatabase } from '@sluice/database/testing/testing';
import { keepIdempotentAnswer } from '@sluice/database/changes/idempotency-keys';
import { createDecipheriv, createHash, createHmac } from 'node:crypto';
import { fastify, type FastifyReply, type FastifyRequest } from 'fastify';
import { sql } from 'kysely';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { heldCallOf, keepAnswers, keepNoAnswers } from '../../../src/http/idempotency.ts';
import type { ApiServer } from '../../../src/http/api-server.ts';
import { SECRET } from '../support/api-under-test.ts';

const TOKEN = JSON.stringify({ caller: { credentialId: 5, environmentId: 1, session: null } });

type Answer = (reply: FastifyReply, count: number) => unknown;

/** How the only route answers its calls, counted from 1. */
let answer: Answer;
let count: number;
let app: ApiServer;
let database: Awaited<ReturnType<typeof createTestDatabase>>['database'];
/** Errors that were logged. */
let logged: string[];
/** By route, as the description of the interface gets them. */
let responses: Map<string, object | undefined>;
/** Before an answer is sent, after this file's own step. */
let beforeSending: (request: FastifyRequest) => Promise<void>;

beforeEach(async () => {
  ({ database } = await createTestDatabase());
  count = 0;
  beforeSending = () => Promise.resolve();
  logged = [];
  app = fastify({ logger: { level: 'error', stream: { write: (line) => logged.push(line) } } });
  onTestFinished(() => app.close());
  app.decorateRequest('caller', null);
  app.decorateRequest('accountCaller', null);
  // In place of the guards: the test names the caller.
  app.addHook('onRequest', async (request) => {
    const caller = request.headers['x-caller'];
    if (typeof caller === 'string') Object.assign(request, JSON.parse(caller));
  });
  keepAnswers(app, { database, secret: SECRET, now: () => 1_764_000_000_000 });
  app.addHook('onSend', async (request, _reply, payload) => {
    await beforeSending(request);
    return payload;
  });
  responses = new Map();
  app.addHook('onRoute', ({ method, url, schema }) => {
    responses.set(`${String(method)} ${url}`, schema?.response as object | undefined);
  });
  app.addContentTypeParser('application/octet-stream', { parseAs: 'buffer' }, (_, bytes, done) =>
    done(null, bytes),
  );
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => JSON.stringify);
  const own = { 200: { description: 'done' }, 409: { description: 'of its own' } };
  app.post('/things', { schema: { hide: true } }, (_request, reply) => answer(reply, ++count));
  app.post('/shown', { schema: { response: own } }, () => 'shown');
  app.post('/reads', { schema: { hide: true, body: {}, querystring: {} } }, () => 'read');
  app.put('/shown', () => 'shown');
  void app.register(async (scope) => {
    keepNoAnswers(scope);
    const config = { own: 'setting' } as const;
    scope.post('/unkept', { schema: { hide: true }, config }, ({ routeOptions }) => ({
      ...routeOptions.config,
      count: ++count,
    }));
  });
  app.get('/shown', () => 'shown');
});

const call = (key: string, headers: Record<string, string> = {}) =>
  app.inject({ method: 'POST', url: '/things', headers: { 'idempotency-key': key, ...headers } });

describe('I38: an answer', () => {
  test.each([200, 299, 402])('%i is kept', async (status) => {
    answer = (reply, n) => reply.code(status).send({ n });
    const first = await call('a');
    const again = await call('a');
    expect([first.statusCode, first.json()]).toEqual([status, { n: 1 }]);
    expect([again.statusCode, again.json()]).toEqual([status, { n: 1 }]);
    expect(again.headers['idempotent-replayed']).toBe('true');
    expect(count).toBe(1);
  });

  test.each([300, 400, 401, 403, 500])('%i leaves the key free', async (status) => {
    answer = (reply, n) => (n === 1 ? reply.code(status).send({ n }) : reply.send({ n }));
    expect((await call('a')).statusCode).toBe(status);
    const again = await call('a');
    expect([again.statusCode, again.json()]).toEqual([200, { n: 2 }]);
    expect(again.headers['idempotent-replayed']).toBeUndefined();
  });

  test('is sent again with its type, its place and its time for the next try, and with its bytes', async () => {
    answer = (reply) =>
      reply
        .headers({ location: '/there', 'retry-after': '7', 'x-own': 'not kept' })
        .type('image/png')
        .send(Buffer.from('bytes'));
    await call('a');
    const { headers, body } = await call('a');
    expect(body).toBe('bytes');
    expect(headers).toMatchObject({
      'content-type': 'image/png',
      location: '/there',
      'retry-after': '7',
    });
    expect(headers).not.toHaveProperty('x-own');
  });

  test('without a body or place is sent again without these', async () => {
    answer = (reply) => reply.code(201).send();
    await call('a');
    const again = await call('a');
    expect([again.statusCode, again.body]).toEqual([201, '']);
    expect(again.headers['idempotent-replayed']).toBe('true');
    for (const name of ['location', 'retry-after']) expect(again.headers).not.toHaveProperty(name);
  });

  test('of another call that was kept meanwhile is sent in place of the own one', async () => {
    const first = { status: 201, headers: { location: '/first' }, body: 'the first é' };
    answer = async (reply, n) => {
      const held = heldCallOf(reply.request)!;
      const kept = held.encrypt(Buffer.from(JSON.stringify(first)));
      await keepIdempotentAnswer(database, held, kept);
      return reply.send({ n });
    };
    const { statusCode, headers, body } = await call('a');
    expect({ status: statusCode, body }).toEqual({ status: 201, body: first.body });
    expect(headers).toMatchObject({
      location: '/first',
      'content-length': '12',
      'idempotent-replayed': 'true',
    });
  });

  test('that cannot be kept is sent, and its error is logged', async () => {
    answer = (reply, n) => reply.send({ n });
    expect((await app.inject({ method: 'POST', url: '/things' })).json()).toEqual({ n: 1 });
    expect(logged).toEqual([]);
    await sql`
      create function refuse() returns trigger language plpgsql as
        $$begin raise exception 'the disk is full'; end$$`.execute(database);
    await sql`
      create trigger refuse before update on idempotency_keys
        for each row execute function refuse()`.execute(database);
    expect((await call('a')).json()).toEqual({ n: 2 });
    expect(logged).toHaveLength(1);
    expect(JSON.parse(logged[0]!)).toMatchObject({
      msg: expect.stringContaining('the change itself is stored'),
      // As Postgres reports it.
      error: { code: 'P0001' },
    });
  });

  test('is not kept on routes that find out their callers themselves, which keep their settings', async () => {
    const send = () =>
      app.inject({ method: 'POST', url: '/unkept', headers: { 'idempotency-key': 'a' } });
    expect((await send()).json()).toMatchObject({ own: 'setting', count: 1 });
    expect((await send()).json()).toMatchObject({ count: 2 });
  });

  test('that fails while it is sent frees no key that the next call holds by then', async () => {
    const [isRunning, mayEnd] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    answer = async (reply, n) => {
      if (n !== 2) return reply.code(400).send({ n });
      isRunning.resolve();
      await mayEnd.promise;
      return reply.send({ n });
    };
    let second: ReturnType<typeof call> | undefined;
    beforeSending = async () => {
      if (second) return;
      second = call('a');
      await isRunning.promise;
      throw new Error('the answer cannot be sent');
    };
    expect((await call('a')).body).toContain('the answer cannot be sent');
    expect((await call('a')).statusCode).toBe(409);
    mayEnd.resolve();
    expect((await second)?.json()).toEqual({ n: 2 });
    expect((await call('a')).json()).toEqual({ n: 2 });
  });
});

test('I38: each portal link, token and user has keys of its own, under its own name', async () => {
  answer = (reply, n) => reply.send({ n });
  const session = { userId: 7, credentialId: null };
  const callers = [
    { caller: { portal: { portalLinkId: 'one' }, environmentId: 1 } },
    { caller: { portal: { portalLinkId: 'two' }, environmentId: 1 } },
    { caller: { credentialId: 5, environmentId: 1, session: null } },
    { accountCaller: { credentialId: 6, session: null } },
    { caller: { credentialId: null, environmentId: 1, session } },
    { caller: { credentialId: null, environmentId: 2, session } },
    { accountCaller: { credentialId: null, session } },
    { caller: { credentialId: 5, environmentId: 1, session: { userId: null, credentialId: 5 } } },
  ];
  for (const [index, caller] of callers.entries())
    for (const isRepeated of [undefined, 'true']) {
      const { headers, body } = await call('a', { 'x-caller': JSON.stringify(caller) });
      expect(headers['idempotent-replayed'], body).toBe(isRepeated);
      expect(JSON.parse(body)).toEqual({ n: index + 1 });
    }
  const { rows } = await sql<{ principal: string }>`
    select principal from idempotency_keys order by principal`.execute(database);
  expect(rows.map(({ principal }) => principal)).toEqual([
    'credential 5',
    'credential 5 in workspace 1',
    'credential 6',
    'portal one of 1',
    'portal two of 1',
    'user 7',
    'user 7 in workspace 1',
    'user 7 in workspace 2',
  ]);
});

test('the answers to a key in use and to another body are described for each POST and PUT that is shown', () => {
  const described = Object.fromEntries(
    [...responses].map(([name, response]) => [name, Object.keys(response ?? {})]),
  );
  expect(described).toEqual({
    'POST /things': [],
    'POST /reads': [],
    'POST /shown': ['200', '400', '409', '422'],
    'PUT /shown': ['400', '409', '422'],
    'GET /shown': [],
    'HEAD /shown': [],
  });
  expect(responses.get('POST /shown')).toMatchObject({ 409: { description: 'of its own' } });
});

test('a body or query that a route does not take is no part of the call', async () => {
  answer = (reply, n) => reply.send({ n });
  const send = (payload: object, url = '/things') =>
    app.inject({ method: 'POST', url, headers: { 'idempotency-key': 'a' }, payload });
  expect((await send({ a: 1 })).json()).toEqual({ n: 1 });
  expect((await send({ a: 2 })).json()).toEqual({ n: 1 });
  expect((await send({ a: 2 }, '/things?limit=1')).json()).toEqual({ n: 1 });
});

// Records of an older version are found for seven days.
test('a call is recorded with its body, and with its query only if one was sent', async () => {
  const sha256 = (...parts: string[]) => {
    const hash = createHash('sha256');
    for (const part of parts) hash.update(part);
    return hash.digest('hex');
  };
  const send = (key: string, query: string, payload?: object) =>
    app.inject({
      method: 'POST',
      url: `/reads${query}`,
      headers: {
        'idempotency-key': key,
        'x-caller': TOKEN,
        ...(Buffer.isBuffer(payload) && { 'content-type': 'application/octet-stream' }),
      },
      ...(payload && { payload }),
    });
  for (const answered of [
    await send('a', ''),
    await send('b', '', { a: 1 }),
    await send('c', '?limit=1', { a: 1 }),
    await send('d', '', Buffer.from('bytes')),
  ])
    expect(answered.body).toBe('read');
  const { rows } = await sql<{ fingerprint: string }>`
    select encode(fingerprint, 'hex') as fingerprint from idempotency_keys`.execute(database);
  expect(new Set(rows.map(({ fingerprint }) => fingerprint))).toEqual(
    new Set([
      sha256('null'),
      sha256('{"a":1}'),
      sha256('{"a":1}', '{"limit":"1"}'),
      sha256('bytes'),
    ]),
  );
});

test.each([
  ['a caller', { 'x-caller': TOKEN }, ['credential 5'], []],
  ['a stranger', {}, ['nobody known'], [createHash('sha256').update('null').digest('base64')]],
] as const)(
  'a call of %s is found by its scope, which also opens its answer',
  async (_, headers, [principal], body) => {
    answer = (reply, n) => reply.send({ n });
    await call('a', headers);
    const derived = (purpose: string) =>
      createHmac('sha256', SECRET)
        .update(JSON.stringify([purpose, principal, 'POST', '/things', 'a', ...body]))
        .digest();
    const { rows } = await sql<{ principal: string; keyHash: Buffer; answer: Buffer }>`
      select principal, key_hash as "keyHash", answer from idempotency_keys`.execute(database);
    const [row] = rows;
    expect(row).toMatchObject({ principal, keyHash: derived('idempotency key') });
    // Its form: 12 bytes of nonce, 16 of tag, and the text.
    const opened = createDecipheriv(
      'aes-256-gcm',
      derived('idempotency answer'),
      row!.answer.subarray(0, 12),
    );
    opened.setAuthTag(row!.answer.subarray(12, 28));
    const text = Buffer.concat([opened.update(row!.answer.subarray(28)), opened.final()]);
    expect(JSON.parse(text.toString())).toMatchObject({ status: 200, body: '{"n":1}' });
  },
);
