/** A deadline for work that cannot be ended from outside. */

/**
 * Rejects after `durationMs`; the work goes on, and its result is ignored. After a stall of this process its timers run
 * before its sockets are read, so it looks once more at an answer that may be here already.
 */
export async function within<Result>(durationMs: number, work: Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const giveUp = () => reject(new Error(`no answer in ${durationMs} ms`));
    // The first turn reads the sockets. The second hands on what a socket with TLS gives one turn later.
    timer = setTimeout(() => setImmediate(() => setImmediate(giveUp)), durationMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
