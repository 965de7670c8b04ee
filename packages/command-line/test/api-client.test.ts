import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { createServer, type AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { resultOf } from '@sluice/client';
import { callAny } from '../src/commands/api-commands.ts';
import { connectApi } from '../src/connection/api-client.ts';

const IMPORT = { params: { path: { import_id: 1 } } };

test.each([
  ['no JSON', '<html></html>', /is not the API; is --api-url/],
  ['half an answer', '{"data":', /^the API at http:.* broke off .*try again$/],
])('an answer that is %s gets a message that names the cause', async (_, body, message) => {
  const contentLength = body.startsWith('{') ? body.length + 1 : body.length;
  const server = createServer((socket) => {
    socket.on('error', () => {});
    socket.once('data', () =>
      socket.end(`HTTP/1.1 200 OK\r\ncontent-length: ${contentLength}\r\n\r\n${body}`),
    );
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void server.close());
  await once(server, 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const api = connectApi({
    url,
    key: 'key',
    keyAdvice: '',
    signal: new AbortController().signal,
  });
  await expect(resultOf(api.GET('/v1/workspaces'))).rejects.toMatchObject({
    code: 'COMMAND_NOT_REACHED',
    message: expect.stringMatching(message),
  });
});

/** @returns its address. */
async function serve(answer: RequestListener): Promise<string> {
  const server = createHttpServer(answer).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test.each(['head', 'body'])(
  'Ctrl-C ends the wait for the %s of an answer, and the message warns that a change may be done',
  async (missing) => {
    const stopping = new AbortController();
    const url = await serve((_, response) => {
      if (missing === 'body') response.write('{');
      setImmediate(() => stopping.abort());
    });
    const { signal } = stopping;
    const api = connectApi({ url, key: 'key', keyAdvice: '', signal });
    await expect(
      resultOf(api.POST('/v1/imports/{import_id}/cancel', IMPORT)),
    ).rejects.toMatchObject({
      code: 'COMMAND_FAILED',
      message: expect.stringMatching(/^stopped before .*; check whether it was done/),
    });
  },
);

test('a key that does not fit in a header is reported as a malformed key', async () => {
  const { signal } = new AbortController();
  const api = connectApi({
    url: 'http://127.0.0.1:1',
    key: 'a\nb',
    keyAdvice: 'set it',
    signal,
  });
  await expect(resultOf(api.GET('/v1/workspaces'))).rejects.toMatchObject({
    message: 'the key does not have the form of a key; set it',
  });
});

test('the path of a proxy is kept, and each error is shown once', async () => {
  const paths: (string | undefined)[] = [];
  const origin = await serve(({ url: path }, response) => {
    paths.push(path);
    const message = 'limit must be at most 1000';
    const more = { field: 'code', message: 'code must be text' };
    response
      .writeHead(400)
      .end(JSON.stringify({ message, errors: [{ field: 'limit', message }, more] }));
  });
  const { signal } = new AbortController();
  const api = connectApi({ url: `${origin}/sluice`, key: 'key', keyAdvice: '', signal });
  await expect(resultOf(api.GET('/v1/workspaces'))).rejects.toMatchObject({
    message: 'limit must be at most 1000\n  code must be text',
  });
  expect(paths).toEqual(['/sluice/v1/workspaces']);
});

test('a proxy whose API is away is reported with its status', async () => {
  const url = await serve((_, response) => response.writeHead(502).end('<html>Bad Gateway</html>'));
  const { signal } = new AbortController();
  const api = connectApi({ url, key: 'key', keyAdvice: '', signal });
  await expect(resultOf(api.GET('/v1/workspaces'))).rejects.toMatchObject({
    message: expect.stringMatching(
      /^the server at http:.* answers 502, but not as the API does; is/,
    ),
    cause: expect.objectContaining({ message: 'status 502' }),
  });
});

test('intake in place of the API is reported with --api-url, and a missing object with the message of the API', async () => {
  const messages = ['there is no such path', 'no such path', 'the reporting webhook was not found'];
  const url = await serve((_, response) =>
    response.writeHead(404).end(JSON.stringify({ message: messages.shift() })),
  );
  const { signal } = new AbortController();
  const api = connectApi({ url, key: 'key', keyAdvice: '', signal });
  for (let count = 0; count < 2; count++)
    await expect(resultOf(api.GET('/v1/workspaces'))).rejects.toThrow(
      /has no such path; check that --api-url/,
    );
  await expect(resultOf(api.GET('/v1/workspaces'))).rejects.toThrow(
    /^the reporting webhook was not found$/,
  );
});

/** A second try of a finished call makes a second key, or sends a day of deliveries twice. */
test.each([
  [
    'before it answers',
    /broke off before it had answered \(.+\); check whether it was done before/,
  ],
  ['in its answer', /in the middle of its answer \(.+\); check whether it was done before/],
  ['behind a proxy', /answers 504, .*; check whether it was done before/],
])(
  'if the API breaks off %s, only the error of a POST warns that the change may be done',
  async (when, message) => {
    const url = await serve((request, response) => {
      if (when === 'behind a proxy') return void response.writeHead(504).end('<html></html>');
      if (when === 'before it answers') return void request.socket.destroy();
      response.writeHead(200, { 'content-length': 10 }).write('{');
      setImmediate(() => request.socket.destroy());
    });
    const { signal } = new AbortController();
    const api = connectApi({ url, key: 'key', keyAdvice: '', signal });
    await expect(resultOf(api.POST('/v1/imports/{import_id}/cancel', IMPORT))).rejects.toThrow(
      message,
    );
    await expect(resultOf(api.GET('/v1/workspaces'))).rejects.not.toThrow(/was done/);
  },
);

test('the error for an unreachable API has the cause of the connection, such as SSL or a refusal', async () => {
  const { signal } = new AbortController();
  const url = await serve((_, response) => response.end());
  const options = { key: 'key', keyAdvice: '', signal };
  const encrypted = connectApi({ ...options, url: url.replace('http:', 'https:') });
  await expect(resultOf(encrypted.GET('/v1/workspaces'))).rejects.toThrow(
    /be reached \(.*SSL.*\); is it/,
  );
  const nobody = connectApi({ ...options, url: 'http://127.0.0.1:1' });
  await expect(resultOf(nobody.GET('/v1/workspaces'))).rejects.toThrow(
    /\(.*(REFUSED|bad port).*\); is it/,
  );
});

test('the client reports the time of a wait for an answer after two seconds', async () => {
  const waits: (number | undefined)[] = [];
  let isSlowAsked = false;
  const told = Promise.withResolvers<void>();
  const url = await serve((request, response) => {
    if (request.url === '/v1/workspaces') return void response.end('{}');
    void told.promise.then(() => response.end('{}'));
  });
  const api = connectApi({
    url,
    key: 'key',
    keyAdvice: '',
    signal: new AbortController().signal,
    onWait: (waitedMs) => {
      waits.push(waitedMs);
      if (isSlowAsked && waits.length === 2) told.resolve();
    },
  });
  // The server answers at once. If this process stands still for two seconds meanwhile, that is rightly reported.
  for (let tries = 1; ; tries++) {
    waits.length = 0;
    const startedAtMs = performance.now();
    await resultOf(api.GET('/v1/workspaces'));
    if (performance.now() - startedAtMs < 2_000 || tries === 3) break;
  }
  expect(waits).toEqual([]);
  isSlowAsked = true;
  await resultOf(api.POST('/v1/imports/{import_id}/cancel', IMPORT));
  expect(waits.at(-1)).toBeUndefined();
  expect(waits[0]).toBeGreaterThanOrEqual(2_000);
  expect(waits[1]).toBeGreaterThan(waits[0] as number);
});

test('an answer that is no JSON is a text if any answer is asked for', async () => {
  const answers = {
    '/csv': ['text/csv; charset=utf-8', 'id,name\r\n1,"a\u001b"\r\n'],
    '/json': ['application/json; charset=utf-8', '{"a":1}'],
    '/none': [undefined, ''],
    '/v1/workspaces': ['text/csv', 'id,name\r\n'],
  } as const;
  const url = await serve((request, response) => {
    const [type, body] = answers[request.url as keyof typeof answers];
    response.writeHead(200, type === undefined ? {} : { 'content-type': type }).end(body);
  });
  const { signal } = new AbortController();
  const api = connectApi({ url, key: 'key', keyAdvice: '', signal });
  expect(await callAny(api, 'GET', '/csv')).toBe(answers['/csv'][1]);
  expect(await callAny(api, 'GET', '/json')).toEqual({ a: 1 });
  expect(await callAny(api, 'GET', '/none')).toEqual({});
  await expect(resultOf(api.GET('/v1/workspaces'))).rejects.toMatchObject({
    code: 'COMMAND_NOT_REACHED',
  });
});
