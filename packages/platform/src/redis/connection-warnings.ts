/**
 * Logs one line for a failure of many connections at once. A worker has some thirty connections to its broker,
 * BullMQ reports one error for every queue that shares a connection, and all retry up to twenty times a second:
 * 645 lines for a failover of three seconds.
 *
 * A message is logged at once and then at most once in five seconds, with its count in between.
 */
import type { Logger } from '../process/logger.ts';

const INTERVAL_MS = 5_000;
/** Maximum number of remembered messages; if each is different, remembering has no use. */
const MESSAGES_MAX = 100;

/** `queue` if the connection is a queue's own. */
export type WarnOfConnection = (error: Error, queue?: string) => void;

/** The stack of a connection that cannot be made is not useful; the message has the address. */
const describe = (error: Error): { readonly reason: string } | { readonly error: Error } =>
  'code' in error && NETWORK_CODE.test(String(error.code)) ? { reason: error.message } : { error };
const NETWORK_CODE = /^(E(CONN|HOST|NET|TIMEDOUT|PIPE)|ENOTFOUND$|EAI_AGAIN$)/;

/** `monotonicNow` has milliseconds that never go back: a clock that is set back would keep warnings back. */
export function connectionWarnings(
  logger: Pick<Logger, 'warn'>,
  monotonicNow: () => number = () => performance.now(),
): WarnOfConnection {
  const said = new Map<string, { readonly atMs: number; unsaidCount: number }>();
  return (error, queue) => {
    const atMs = monotonicNow();
    const last = said.get(error.message);
    if (last && atMs - last.atMs < INTERVAL_MS) {
      last.unsaidCount++;
      return;
    }
    if (said.size >= MESSAGES_MAX) said.clear();
    said.set(error.message, { atMs, unsaidCount: 0 });
    const unsaidCount = last?.unsaidCount ?? 0;
    logger.warn(
      { ...describe(error), ...(queue && { queue }), ...(unsaidCount > 0 && { unsaidCount }) },
      'the broker or a connection to it failed; the process retries',
    );
  };
}
