import { describe, expect, test } from 'vitest';
import { parseRedisUrl } from '../../src/settings/redis-url.ts';

describe('REDIS_URL', () => {
  test.each(['redis://127.0.0.1:6379', 'rediss://user:p%40ss@redis.example/2'])(
    'names one server: %s',
    (url) => expect(parseRedisUrl(url)).toEqual({ kind: 'single', url }),
  );

  test('can name Sentinels and their name of the master', () => {
    expect(
      parseRedisUrl('redis-sentinel://:p%40ss@a,b:26380,[::1]:3/2?master=main&sentinel_password=s'),
    ).toEqual({
      kind: 'sentinel',
      hosts: [
        { host: 'a', port: 26_379 },
        { host: 'b', port: 26_380 },
        { host: '::1', port: 3 },
      ],
      isTls: false,
      password: 'p@ss',
      master: 'main',
      database: 2,
      sentinelLogin: { password: 's' },
    });
  });

  test('names some nodes of a Cluster, also over TLS', () => {
    expect(parseRedisUrl('rediss-cluster://me:pw@a:7000,b')).toEqual({
      kind: 'cluster',
      hosts: [
        { host: 'a', port: 7_000 },
        { host: 'b', port: 6_379 },
      ],
      isTls: true,
      username: 'me',
      password: 'pw',
    });
  });

  test.each([
    'localhost:6379',
    'http://redis:6379',
    'redis://',
    'redis-sentinel://a:1',
    'redis-sentinel://a:1?master=',
    'redis-cluster://',
    'redis-cluster://a:0',
    'redis-cluster://a:65536',
    'redis-cluster://a,,b',
    'redis-cluster://a/1',
    'redis-cluster://:%zz@a',
  ])('that names no servers is refused: %s', (url) => {
    expect(() => parseRedisUrl(url)).toThrow(expect.objectContaining({ code: 'CONFIG_INVALID' }));
  });

  test('that is refused is not repeated: it may hold a password', () => {
    const problem = expect.not.stringContaining('secret') as string;
    for (const url of [
      'http://:secret@redis',
      'redis-cluster://:secret@a:0',
      'redis-sentinel://:secret%zz@a?master=m',
    ])
      expect(() => parseRedisUrl(url)).toThrow(expect.objectContaining({ message: problem }));
  });
});
