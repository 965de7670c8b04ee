/**
 * Deadlines that judge after the sockets are read.
 *
 * After a stall of this process its timers run before that, so an answer may be here already.
 */

/** The first turn reads the sockets. A socket with TLS passes the bytes on in the second. */
export const afterReading = (run: () => void): void => void setImmediate(() => setImmediate(run));

/** Rejects after `durationMs`. The work cannot be ended from outside: it goes on, and its result is ignored. */
export async function within<Result>(durationMs: number, work: Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    const giveUp = () => reject(new Error(`no answer in ${durationMs} ms`));
    timer = setTimeout(() => afterReading(giveUp), durationMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
