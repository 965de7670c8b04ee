/** Progress of a measurement on stderr: a line rewritten in place on a terminal, else a line of JSON from time to time. */
const SILENT_MS = 2_000;
const SHOWN_INTERVAL_MS = 500;
const LOGGED_INTERVAL_MS = 5_000;

/** @returns a function that ends it. */
export function showMeasuring(name: string): () => void {
  const startedAtMs = performance.now();
  const { isTTY } = process.stderr;
  let dueAtMs = startedAtMs + SILENT_MS;
  const timer = setInterval(() => {
    const elapsedMs = performance.now() - startedAtMs;
    if (performance.now() < dueAtMs) return;
    dueAtMs = performance.now() + (isTTY ? SHOWN_INTERVAL_MS : LOGGED_INTERVAL_MS);
    process.stderr.write(
      isTTY
        ? `\r\u001B[Kmeasuring ${name}: ${Math.floor(elapsedMs / 1_000)} s`
        : `${JSON.stringify({ progress: `measuring ${name}`, state: 'runs', elapsed_ms: Math.round(elapsedMs) })}\n`,
    );
  }, SHOWN_INTERVAL_MS);
  timer.unref();
  return () => {
    clearInterval(timer);
    if (isTTY) process.stderr.write('\r\u001B[K');
  };
}
