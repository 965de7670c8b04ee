import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { findFreePort } from '../../src/testing/free-port.ts';

test('each free port is given once and lies outside the range of outgoing connections', async () => {
  const ports = await Promise.all(Array.from({ length: 200 }, findFreePort));
  expect(new Set(ports).size).toBe(200);
  expect(Math.max(...ports)).toBeLessThan(32_768);
  const [port = 0] = ports;
  const server = createServer().listen(port, '127.0.0.1');
  await once(server, 'listening');
  expect((server.address() as AddressInfo).port).toBe(port);
  server.close();
});
