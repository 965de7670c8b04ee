/** ULIDs, in order within the process: 26 characters, sortable by time. */
import { randomFillSync } from 'node:crypto';
import { monotonicFactory } from 'ulid';

/** One system call for 4,096 random numbers; the library's own source makes one for each character. */
function pooledRandom(): () => number {
  const pool = new Uint32Array(4_096);
  let next = pool.length;
  return () => {
    if (next === pool.length) {
      randomFillSync(pool);
      next = 0;
    }
    return (pool[next++] as number) / 2 ** 32;
  };
}

/** Makes a generator of ULIDs that never repeat nor go back within this process. */
export function createIdGenerator(now: () => number): () => string {
  const next = monotonicFactory(pooledRandom());
  return () => next(now());
}
