/** Whoever starts a process with a Redis that is away reads one line about it, soon. */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { reportRedisAway } from '@sluice/platform/redis/redis-away';
import { findFreePort } from '@sluice/platform/testing/free-port';
import { testRedisUrl } from '@sluice/platform/testing/testing';
import { expect, onTestFinished, test } from 'vitest';

async function report(url: string): Promise<string[]> {
  const said: string[] = [];
  await reportRedisAway(url, (message) => said.push(message));
  return said;
}

test('nothing listens: one line with the setting, the address and the reason, and no password', async () => {
  const port = await findFreePort();
  const [line, ...others] = await report(`redis://user:hunter2@127.0.0.1:${port}/1`);
  expect(line).toMatch(
    new RegExp(
      `^Redis cannot be used as REDIS_URL says \\(127\\.0\\.0\\.1:${port}\\): .*ECONNREFUSED`,
    ),
  );
  expect(line).not.toContain('hunter2');
  expect(others).toEqual([]);
});

test('somebody listens and says nothing: one line, within five seconds of a start', async () => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
  const { port } = silent.address() as AddressInfo;
  const startedAtMs = performance.now();
  expect(await report(`redis://127.0.0.1:${port}`)).toEqual([
    expect.stringMatching(/: no answer in 3 s; it is waited for/),
  ]);
  expect(performance.now() - startedAtMs).toBeLessThan(4_500);
});

test('one that is there is passed over in silence', async () => {
  expect(await report(testRedisUrl())).toEqual([]);
});
