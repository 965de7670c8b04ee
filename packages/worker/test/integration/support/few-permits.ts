/** A few permits, on a clock of their own. */
import { FairPermits } from '../../../src/scheduling/fair-permits.ts';

export function createFewPermits(permitsMax: number) {
  let nowMs = 0;
  const permits = new FairPermits({
    permitsMax,
    slowMax: 0,
    slowAfterMs: 50,
    monotonicNow: () => nowMs,
    idleTimeMs: () => nowMs,
  });
  return {
    permits,
    /** A request of this account that took so long. */
    use(accountId: number, durationMs: number): void {
      const permit = permits.tryAcquire({ accountId, lane: 'has had' });
      nowMs += durationMs;
      permit?.release();
    },
    /** Takes so many for requests of others. @returns a function that ends these. */
    hold(count: number): () => void {
      const held = Array.from({ length: count }, (_, index) =>
        permits.tryAcquire({ accountId: 0, lane: `other ${index}` }),
      );
      return () => held.forEach((permit) => permit?.release());
    },
  };
}
