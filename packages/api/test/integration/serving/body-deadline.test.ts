import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listen } from '../../../src/server.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

const TIMEOUT_MS = 300;

let api: ApiUnderTest;
let port: number;
beforeAll(async () => {
  api = await startApi({}, { bodyTimeoutMs: TIMEOUT_MS });
  port = await listen(api.app, '127.0.0.1', 0);
});
afterAll(() => api.close());

async function begin(head: string): Promise<{ socket: Socket; text: () => string }> {
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.setEncoding('utf8').on('data', (part: string) => void (text += part));
  await once(socket, 'connect');
  socket.write(`${head}\r\nHost: x\r\nAuthorization: Bearer ${api.a.key}\r\n`);
  return { socket, text: () => text };
}

test('a body that does not come is 408, and the connection ends', async () => {
  const { socket, text } = await begin('POST /v1/reporting_webhooks HTTP/1.1');
  socket.write('Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{');
  await once(socket, 'close');
  expect(text()).toMatch(/^HTTP\/1\.1 408 /);
});

test('a file may take as long as it takes', async () => {
  const { socket, text } = await begin('POST /v1/imports HTTP/1.1');
  const field = (name: string, value: string) =>
    `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
  const fields = field('name', 'a') + field('type', 'event') + field('identifier', 'id');
  const file =
    '--b\r\nContent-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\n_svc_name\r\n--b--\r\n';
  socket.write(
    `Content-Type: multipart/form-data; boundary=b\r\nContent-Length: ${fields.length + file.length}\r\n\r\n${fields}`,
  );
  // Only time can show that it is not ended.
  await new Promise((resolve) => setTimeout(resolve, 3 * TIMEOUT_MS));
  socket.write(file);
  await once(socket, 'data');
  expect(text()).toMatch(/^HTTP\/1\.1 200 /);
  socket.destroy();
});
