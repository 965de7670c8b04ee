/** Passes a delivery on to a developer's program, byte for byte: the signature is of its bytes. */
import type { IncomingHttpHeaders } from 'node:http';

/** As long as the workers wait for an answer. */
const TIMEOUT_MS = 4_000;
/** Of the connection, not of the delivery. */
const NOT_FORWARDED = new Set(['connection', 'content-length', 'host', 'transfer-encoding']);

/**
 * @param url - http or https.
 * @returns the status of the answer; 502 if no answer came, so that the delivery is tried again.
 */
export async function forward(
  url: string,
  headers: IncomingHttpHeaders,
  body: string,
): Promise<{ status: number; durationMs: number }> {
  const startedAtMs = performance.now();
  const passedOn = Object.entries(headers).flatMap(([name, value]) =>
    value === undefined || NOT_FORWARDED.has(name)
      ? []
      : [[name, String(value)] as [string, string]],
  );
  const status = await fetch(url, {
    method: 'POST',
    headers: passedOn,
    body,
    redirect: 'manual',
    signal: AbortSignal.timeout(TIMEOUT_MS),
  }).then(
    async (answer) => {
      await answer.body?.cancel();
      return answer.status;
    },
    () => 502,
  );
  return { status, durationMs: Math.round(performance.now() - startedAtMs) };
}
