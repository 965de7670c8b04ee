/** A process that starts while Redis is away soon logs one line. */
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer as createHttpServer } from 'node:http';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { reportRedisAway } from '@sluice/platform/redis/redis-away';
import { findFreePort } from '@sluice/platform/testing/free-port';
import { startRedisServer, type RedisServer } from '@sluice/platform/testing/redis-server';
import { connectProducer, connectWorker } from '@sluice/platform/redis/redis';
import { TickClock } from '@sluice/platform/testing/tick-clock';
import { testRedisUrl } from '@sluice/platform/testing/testing';
import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';

const LATE = /no answer in 3 s|timed out|ETIMEDOUT/;
const TRIES_MAX = 3;

async function report(url: string): Promise<string[]> {
  const said: string[] = [];
  await reportRedisAway(url, (message) => said.push(message));
  return said;
}

/** A Redis that stands still for three seconds on a busy machine is reported too: then it is asked again. */
async function reportOnceAwake(url: string): Promise<string[]> {
  for (let tries = 1; ; tries++) {
    const said = await report(url);
    if (tries === TRIES_MAX || !said.some((line) => LATE.test(line))) return said;
  }
}

test('without a listener there is one line with the setting, the address and the reason, and no password', async () => {
  const port = await findFreePort();
  const [line, ...others] = await report(`redis://user:hunter2@127.0.0.1:${port}/1`);
  expect(line).toMatch(
    new RegExp(
      `^Redis cannot be used with REDIS_URL \\(127\\.0\\.0\\.1:${port}\\): .*ECONNREFUSED`,
    ),
  );
  expect(line).not.toContain('hunter2');
  expect(others).toEqual([]);
});

test('a listener that stays silent is reported in one line, within five seconds of a start', async () => {
  const sockets: Socket[] = [];
  const silent = createServer((socket) => void sockets.push(socket)).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    silent.close();
  });
  const { port } = silent.address() as AddressInfo;
  const clock = new TickClock(50);
  onTestFinished(() => clock.stop());
  expect(await report(`redis://127.0.0.1:${port}`)).toEqual([
    expect.stringMatching(/: no answer in 3 s\. This process waits for Redis/),
  ]);
  // 3 s are 60 ticks at most; five seconds of late ticks, 60 ms each, would be 83.
  expect(clock.tickCount).toBeLessThan(75);
});

test('one that is there is passed over in silence', async () => {
  expect(await reportOnceAwake(testRedisUrl())).toEqual([]);
});

describe('a Redis that refuses the values of REDIS_URL is reported with the correction', () => {
  let server: RedisServer;
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), 'sluice-test-redis-away-'));
    server = await startRedisServer({ directory });
    const open = (await connectProducer(server.url, 5_000)) as Redis;
    await open.config('SET', 'requirepass', 'hunter2');
    open.disconnect();
  });
  afterAll(async () => {
    await server.kill();
    await rm(directory, { recursive: true, force: true });
  });

  test.each([
    ['a wrong password', 'redis://:hunter3@HOST', 'the user or the password is wrong (WRONGPASS)'],
    [
      'no password',
      'redis://HOST',
      'Redis wants a password, and REDIS_URL has no password (NOAUTH)',
    ],
    ['a database that it has not', 'redis://:hunter2@HOST/99', 'no database of this number'],
    ['no Cluster', 'redis-cluster://:hunter2@HOST', 'this Redis is no Cluster'],
    ['no Sentinel of ours', 'redis-sentinel://HOST?master=a', 'has no sentinel_password'],
  ])('%s', async (_, url, correction) => {
    const lines = await reportOnceAwake(url.replace('HOST', `127.0.0.1:${server.port}`));
    expect(lines).toEqual([
      expect.stringMatching(
        /^Redis cannot be used with REDIS_URL \(127.0.0.1:\d+\): .*\. Correct it, then start again$/,
      ),
    ]);
    expect(lines[0]).toContain(correction);
    expect(lines[0]).not.toContain('hunter');
  });

  test('a server without TLS: the line names TLS', async () => {
    expect(await report(`rediss://:hunter2@127.0.0.1:${server.port}`)).toEqual([
      expect.stringMatching(/no answer in 3 s\. .*by TLS: redis:\/\/ is without$/),
    ]);
  });

  // ioredis goes on in database 0, which may be another installation's.
  test.each([
    ['a producer', (url: string) => connectProducer(url, 1_000)],
    ['a worker', async (url: string) => connectWorker(url)],
    ['a copy, as BullMQ makes', async (url: string) => (connectWorker(url) as Redis).duplicate()],
  ])('%s writes only to the database of REDIS_URL', async (_, connect) => {
    const errors: string[] = [];
    const url = `redis://:hunter2@127.0.0.1:${server.port}`;
    const lost = (await connect(`${url}/99`)) as Redis;
    lost.on('error', (error: Error) => errors.push(error.message));
    onTestFinished(() => lost.disconnect());
    void lost.set('astray', '1').catch(() => undefined);
    // It is refused, closed, and tried again.
    await vi.waitFor(() => expect(errors.length).toBeGreaterThanOrEqual(2), 20_000);
    const right = connectWorker(url);
    onTestFinished(() => right.disconnect());
    expect(await right.get('astray')).toBeNull();
  });
});

test('the line names a server that is not Redis', async () => {
  const other = createHttpServer((_, answer) => void answer.end()).listen(0, '127.0.0.1');
  await once(other, 'listening');
  onTestFinished(() => void other.close());
  const { port } = other.address() as AddressInfo;
  expect(await report(`redis://127.0.0.1:${port}`)).toEqual([
    expect.stringMatching(/the server there is not Redis .*Correct it/),
  ]);
});
