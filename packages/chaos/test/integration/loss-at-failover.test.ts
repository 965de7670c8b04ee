/**
 * The invariant checker during a failover of a Redis Cluster.
 *
 * A master is killed or hangs until a replica has taken its place. With Sentinels only by hand, for the suite's time
 * (`queue-on-sentinels.test.ts` has their failover): `npm run chaos -- --broker sentinels --seeds 20`, and more of the
 * cluster alike.
 */
import { test } from 'vitest';
import { expectNoLoss } from './expect-no-loss.ts';

test(
  'on a Redis Cluster with failover an acknowledged call is stored once and in order, and processing recovers by itself',
  { timeout: 400_000 },
  () => expectNoLoss('cluster', { seeds: [1], delivers: true }),
);
