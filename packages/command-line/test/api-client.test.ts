import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { createApiClient } from '../src/api-client.ts';

test.each([
  ['no JSON', '<html></html>', /is not the API; is --api-url/],
  ['half an answer', '{"data":', /^the API at http:.* broke off .*try again$/],
])('an answer that is %s is told as what it is', async (_, body, message) => {
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
  const api = createApiClient({ url, key: 'key', keyAdvice: '' });
  await expect(api.request('GET', '/v1/anything')).rejects.toMatchObject({
    code: 'COMMAND_FAILED',
    message: expect.stringMatching(message),
  });
});
