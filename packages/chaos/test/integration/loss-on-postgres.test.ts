/**
 * The invariant checker with the queues on postgres, ten seeds; `npm run chaos -- --seeds 100` runs more and longer
 * ones.
 */
import { test } from 'vitest';
import { expectNoLoss } from './expect-no-loss.ts';

test(
  'what was answered 200 is stored once and in order, and everything moves again, whatever was killed, stopped or cut off',
  { timeout: 600_000 },
  () => expectNoLoss('postgres', { seedCount: 5 }),
);

// Events keep their place among all calls then (`domain/src/operations/operation-keys.ts`), and the lanes are at work too.
test(
  'where a webhook takes them, what was answered 200 is delivered as well, and what is about one person in order',
  { timeout: 600_000 },
  () => expectNoLoss('postgres', { firstSeed: 6, seedCount: 5, delivers: true }),
);
