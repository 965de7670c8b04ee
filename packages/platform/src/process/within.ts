/** A deadline for work that cannot be ended from outside. */

/** Rejects after `durationMs`; the work goes on, and its result is ignored. */
export async function within<Result>(durationMs: number, work: Promise<Result>): Promise<Result> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer in ${durationMs} ms`)), durationMs);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
