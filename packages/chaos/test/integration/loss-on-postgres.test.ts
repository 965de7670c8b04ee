/**
 * The invariant checker with the queues on postgres, seven seeds; `npm run chaos -- --seeds 100` runs more and
 * longer ones.
 */
import { test } from 'vitest';
import { expectNoLoss } from './expect-no-loss.ts';

test(
  'an acknowledged call is stored once and in order, and processing recovers after any kill, stop or cut',
  { timeout: 1_200_000 },
  () => expectNoLoss('postgres', { seeds: [1, 2, 3, 4] }),
);

// Events keep their place among all calls then (`domain/src/operations/operation-keys.ts`), and the lanes are at work too.
test(
  'with a webhook an acknowledged call is delivered as well, and the events of one person arrive in order',
  { timeout: 1_200_000 },
  () => expectNoLoss('postgres', { seeds: [6, 9, 10], delivers: true }),
);
