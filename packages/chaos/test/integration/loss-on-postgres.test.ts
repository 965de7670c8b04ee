/**
 * The invariant checker with the queues on postgres, ten seeds; `npm run chaos -- --seeds 100` runs more and longer
 * ones.
 */
import { test } from 'vitest';
import { expectNoLoss } from './expect-no-loss.ts';

test(
  'what was answered 200 is stored once and in order, and everything moves again, whatever was killed, stopped or cut off',
  { timeout: 600_000 },
  () => expectNoLoss('postgres', 10),
);
