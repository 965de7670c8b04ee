/** Answers of an admin port: their headers on each path, and to requests that Node would answer itself. */
import { text } from 'node:stream/consumers';
import { connect } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startAdminServer } from '../../src/telemetry/admin-server.ts';

/** Sends bytes, and returns the whole answer. */
async function answerTo(bytes: string, showsDetails = true): Promise<string> {
  const server = await startAdminServer({
    owner: 'WORKER',
    host: '127.0.0.1',
    port: 0,
    showsDetails,
    metrics: {
      contentType: 'text/plain; version=0.0.4; charset=utf-8',
      render: () => Promise.resolve('sluice_up 1\n'),
    },
    readiness: () => Promise.resolve({ isReady: true, details: {} }),
  });
  onTestFinished(() => server.close());
  const socket = connect(server.port, '127.0.0.1', () => socket.write(bytes));
  return text(socket);
}

const get = (path: string, ...headers: string[]): string =>
  [`GET ${path} HTTP/1.1`, ...headers, 'Connection: close', '\r\n'].join('\r\n');

test.each([
  ['/livez', get('/livez', 'Host: a'), '200'],
  ['/readyz', get('/readyz', 'Host: a'), '200'],
  ['/metrics', get('/metrics', 'Host: a'), '200'],
  ['another path', get('/', 'Host: a'), '404'],
  ['no Host', get('/livez'), '200'],
  ['an unknown expectation', get('/livez', 'Host: a', 'Expect: x'), '200'],
  ['a broken head', 'garbage\r\n\r\n', '400'],
])('the answer to %s has a type with its character set, and nosniff', async (_, bytes, status) => {
  const answer = await answerTo(bytes);
  expect(answer).toMatch(new RegExp(`^HTTP/1.1 ${status} `));
  expect(answer).toMatch(/^Content-Type: [\w/]+;.* ?charset=utf-8\r$/m);
  expect(answer).toMatch(/^X-Content-Type-Options: nosniff\r$/m);
});

test('without details the numbers are absent', async () => {
  expect(await answerTo(get('/metrics', 'Host: a'), false)).toMatch(/^HTTP\/1.1 404 /);
});
