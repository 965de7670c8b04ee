import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { expect, test } from 'vitest';
import { buildServer, listen } from '../../src/server.ts';
import { fakeDependencies, KEY } from '../support/fake-dependencies.ts';

const TIMEOUT_MS = 300;

async function begin(head: string): Promise<{ socket: Socket; text: () => string }> {
  const { dependencies } = fakeDependencies({
    insertImport: async (made) => ({
      ...made,
      traceparent: null,
      importId: 1,
      state: 'preprocessing',
      error: null,
      columns: null,
      sizeBytes: 0,
      nextByte: 0,
      rowsRead: 0,
      rowsImported: 0,
      rowsFailed: 0,
      rowsWarned: 0,
      fencing: 0,
      createdAt: new Date(0),
      updatedAt: new Date(0),
    }),
    appendImportChunk: async () => 'kept',
  });
  const app = await buildServer(dependencies, TIMEOUT_MS);
  const port = await listen(app, '127.0.0.1', 0);
  const socket = connect(port, '127.0.0.1');
  let text = '';
  socket.setEncoding('utf8').on('data', (part: string) => void (text += part));
  socket.on('close', () => void app.close());
  await once(socket, 'connect');
  socket.write(`${head}\r\nHost: x\r\nAuthorization: Bearer ${KEY}\r\n`);
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
  // Only time can show that nothing ends it.
  await new Promise((resolve) => setTimeout(resolve, 3 * TIMEOUT_MS));
  socket.write(file);
  await once(socket, 'data');
  // The fake keeps nothing, so the import has ended when the file has come.
  expect(text()).toMatch(/^HTTP\/1\.1 409 /);
  socket.destroy();
});
