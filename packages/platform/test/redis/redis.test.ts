import { blockingMsMax, connectWorker } from '@sluice/platform/redis/redis';
import { Cluster } from 'ioredis';
import { expect, test } from 'vitest';

test.each([
  ['one Redis', 'redis://127.0.0.1:1'],
  ['Sentinels', 'redis-sentinel://127.0.0.1:1?master=sluice'],
  ['a Cluster', 'redis-cluster://127.0.0.1:1'],
])('on %s an idle worker that waits for a job is not cut off as one that hangs', (_, url) => {
  const redis = connectWorker(url);
  redis.on('error', () => undefined);
  redis.disconnect();
  const options = redis instanceof Cluster ? redis.options.redisOptions : redis.options;
  const cutAfterMs = options?.socketTimeout ?? Infinity;
  expect(blockingMsMax(redis)).toSatisfy(
    (ms: number) => ms + 1_000 < cutAfterMs || ms === Infinity,
  );
  expect(blockingMsMax(redis) === Infinity).toBe(cutAfterMs === Infinity);
});
