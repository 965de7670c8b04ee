/** Messages between processes for the live tail, on either broker: heard, kept apart, and heard again after a break. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { startRedisServer } from '@sluice/platform/testing/redis-server';
import { openTailChannel, type TailChannel } from '@sluice/platform/tail/tail-channel';
import { startTcpProxyTo } from '@sluice/database/testing/tcp-proxy';
import { Redis } from 'ioredis';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest';

const WAIT = { timeout: 30_000, interval: 20 };

interface World {
  open(prefix?: string): TailChannel;
  /** Ends every connection of the channels. */
  cut(): Promise<unknown>;
  close(): Promise<void>;
}

async function startWorld(broker: 'redis' | 'postgres'): Promise<World> {
  const { database, url } = await createTestDatabase();
  const directory = await mkdtemp(join(tmpdir(), 'sluice-tail-'));
  const server =
    broker === 'redis' ? await startRedisServer({ directory, appendFsync: 'no' }) : undefined;
  const redis = server && new Redis(server.url);
  const opened: TailChannel[] = [];
  return {
    open(prefix = 'tail-test') {
      const logger = { warn: () => undefined };
      const channel = openTailChannel({ databaseUrl: url, redisUrl: server?.url, prefix, logger });
      opened.push(channel);
      return channel;
    },
    cut: () =>
      redis
        ? redis.call('CLIENT', 'KILL', 'TYPE', 'pubsub')
        : sql`
            select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and application_name = 'sluice-tail'`.execute(
            database,
          ),
    async close() {
      for (const channel of opened) await channel.close();
      redis?.disconnect();
      await server?.stop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

describe.each(['redis', 'postgres'] as const)('on %s', (broker) => {
  let world: World;
  beforeAll(async () => {
    world = await startWorld(broker);
  });
  afterAll(() => world.close());

  // `pg` warns once a process of a query that is sent while another runs, and version 9 will refuse it.
  test('the connection of a channel has one query at a time, with any number of calls at once', async () => {
    const warnings: string[] = [];
    const hear = (warning: Error): void => void warnings.push(warning.message);
    process.on('warning', hear);
    onTestFinished(() => void process.off('warning', hear));
    const channel = world.open();
    const heard: string[] = [];
    await channel.listen('busy', (text) => void heard.push(text));
    const texts = Array.from({ length: 20 }, (_, n) => `text ${n}`);
    await Promise.all([
      ...texts.map((text) => channel.publish('busy', text)),
      channel.listen('other', () => undefined),
      channel.unlisten('other'),
    ]);
    await vi.waitFor(() => expect(heard).toEqual(texts), WAIT);
    expect(warnings).toEqual([]);
  });

  test('a listener gets the messages of its topic whole and in order, until it no longer listens', async () => {
    const [publisher, hearer] = [world.open(), world.open()];
    const heard: string[] = [];
    await hearer.listen('tail-1', (text) => heard.push(text));
    const longest = 'ü'.repeat(Math.floor(publisher.messageSizeBytesMax / 2));
    await publisher.publish('tail-1', 'a');
    await publisher.publish('tail-2', 'of another topic');
    await publisher.publish('tail-1', longest);
    await vi.waitFor(() => expect(heard).toHaveLength(2), WAIT);
    expect(heard).toEqual(['a', longest]);

    await hearer.unlisten('tail-1');
    await publisher.publish('tail-1', 'unheard');
    await hearer.listen('tail-2', (text) => heard.push(text));
    await publisher.publish('tail-2', 'last');
    await vi.waitFor(() => expect(heard.at(-1)).toBe('last'), WAIT);
    expect(heard).not.toContain('unheard');
  });

  test('a connection that breaks is made again, and its topics are heard again', async () => {
    const [publisher, hearer] = [world.open(), world.open()];
    const heard: string[] = [];
    await hearer.listen('tail-3', (text) => heard.push(text));
    await world.cut();
    await vi.waitFor(async () => {
      await publisher.publish('tail-3', 'after');
      expect(heard).toContain('after');
    }, WAIT);
  });
});

// This end gets no sign of it: TCP sends the bytes again for a quarter of an hour.
test('on postgres, a connection without answers is made again, and the end of a channel does not wait for one', async () => {
  const { url } = await createTestDatabase();
  const proxy = await startTcpProxyTo(url);
  onTestFinished(() => proxy.close());
  const logger = { warn: () => undefined };
  const channel = openTailChannel({ databaseUrl: proxy.url, prefix: 'tail-test', logger });
  const heard: string[] = [];
  await channel.listen('tail-4', (text) => heard.push(text));
  proxy.forget();
  await expect(channel.publish('tail-4', 'lost')).rejects.toThrow('Query read timeout');
  await vi.waitFor(async () => {
    await channel.publish('tail-4', 'after');
    expect(heard).toContain('after');
  }, WAIT);
  proxy.forget();
  await channel.close();
});
