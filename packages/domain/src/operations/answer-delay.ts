/**
 * By how much answers are put off for a workspace that sends more than its share while the calls of others wait to be
 * applied. Its calls are durable when they come, and nothing is refused: a sender that waits for its answers becomes as fast
 * as the workers are. Pure.
 */

export const ANSWER_DELAY_MS_MAX = 1_000;
const ANSWER_DELAY_MS_MIN = 10;
/** Of a shard: the one in progress. */
const UNAPPLIED_COUNT_MAX = 1;
const GROWTH = 1.25;
const DECAY = 0.98;
/** For each commit batch of a shard at least so much: a burst is answered at once by a delay of its size. */
const BATCH_MS = 25;

export interface WorkersStanding {
  /** Commit batches that are not applied, of the shard with most. */
  readonly unappliedCount: number;
  /** Workers have applied some since the look before. Where they do not, slower senders are no help. */
  readonly isProgressing: boolean;
}

/** The next delay, after a look; 0: none. As the window of a congested connection it grows fast and shrinks slowly. */
export function nextAnswerDelayMs(
  delayMs: number,
  { unappliedCount, isProgressing }: WorkersStanding,
): number {
  if (!isProgressing && unappliedCount > 0) return 0;
  if (unappliedCount > UNAPPLIED_COUNT_MAX)
    return Math.min(ANSWER_DELAY_MS_MAX, Math.max(delayMs * GROWTH, unappliedCount * BATCH_MS));
  return delayMs * DECAY < ANSWER_DELAY_MS_MIN ? 0 : delayMs * DECAY;
}
