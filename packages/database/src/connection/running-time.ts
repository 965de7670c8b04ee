/**
 * Deadlines in the time in which this process runs.
 *
 * A timer runs before the sockets are read. So after a stall of the process, or of its machine, a plain timer ends a
 * wait although the answer is here. A process that loads its modules on a busy machine stalls for ten seconds. Here a
 * stall of any length counts as one tick or two, and the process has the rest of the time to read and to answer.
 */
const TICK_COUNT = 10;

/**
 * Calls `onEnd` when the process has run for `durationMs`.
 *
 * @returns cancels it. It may be called twice, and after the end.
 */
export function afterRunning(durationMs: number, onEnd: () => void): () => void {
  let tickCount = 0;
  let isCancelled = false;
  const ticking = setInterval(() => {
    tickCount += 1;
    if (tickCount < TICK_COUNT) return;
    clearInterval(ticking);
    afterReading(() => {
      if (!isCancelled) onEnd();
    });
  }, durationMs / TICK_COUNT);
  return () => {
    isCancelled = true;
    clearInterval(ticking);
  };
}

/** The first turn reads the sockets. A socket with TLS passes the bytes on in the second. */
const afterReading = (run: () => void): void => void setImmediate(() => setImmediate(run));
