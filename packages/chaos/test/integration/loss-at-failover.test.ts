/** The loss oracle while a master of Redis is killed or hangs until a replica has taken its place; `npm run chaos -- --broker cluster --seeds 20` runs more. */
import { test } from 'vitest';
import { expectNoLoss } from './expect-no-loss.ts';

test.each(['cluster', 'sentinels'] as const)(
  'on redis with failover (%s) what was answered 200 is stored once and in order, and everything moves again by itself',
  { timeout: 150_000 },
  (broker) => expectNoLoss(broker, 1),
);
