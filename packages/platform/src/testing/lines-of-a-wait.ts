/** Lines of a log that come from a busy machine alone. */

const NOT_IN_TIME = String.raw`.*(?:timeout|timed out|no answer)`;
const OF_A_WAIT = [
  new RegExp(`^Postgres is away: this process waits for it\\b${NOT_IN_TIME}`),
  /^Postgres is there; the start goes on/,
  /^Redis cannot be used with REDIS_URL \([^)]*\): no answer in 3 s\. /,
];

/**
 * True for a line of a start to which Postgres or Redis did not answer in time. False if it was refused: that does not
 * come from a busy machine.
 *
 * @param line - of a log; or `msg` alone, of a program that prints text.
 */
export const isOfAWait = ({
  msg,
  reason = '',
}: {
  readonly msg?: unknown;
  readonly reason?: unknown;
}): boolean => OF_A_WAIT.some((pattern) => pattern.test(`${String(msg)}: ${String(reason)}`));
