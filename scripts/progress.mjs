/**
 * Progress of a command that takes more than two seconds. On a terminal it is one line, rewritten in place; elsewhere it
 * is lines of JSON, for logs. Written to stderr: results are on stdout.
 *
 * Plain JavaScript without packages: `install.mjs` uses it before there are any.
 */

const SHOWN_INTERVAL_MS = 200;
const TICK_MS = 500;
const LOGGED_INTERVAL_MS = 5_000;
const BAR_WIDTH = 24;

/**
 * @typedef {object} ProgressOutput
 * @property {boolean} [isTTY]
 * @property {number} [columns]
 * @property {(text: string) => unknown} write
 */

/**
 * @typedef {object} Progress
 * @property {(done: number, all?: number) => void} report counts, with the total if it is known; may be called often
 * @property {() => void} hide takes its line off a terminal, before a line of the result
 * @property {(result?: string) => void} end the last line of it; to be called in any case
 */

/**
 * Shows that it begins, and from then on its progress, also while the count stays the same. A command that may be over at
 * once shows no line for `silentMs`.
 *
 * @param {string} what a noun phrase: `installing packages`
 * @param {string} unit of the count, in the plural: `packages`
 * @param {object} [options]
 * @param {number} [options.silentMs] one that ends earlier shows no line
 * @param {ProgressOutput} [options.output]
 * @param {() => number} [options.now] milliseconds of any clock that only goes forward
 * @returns {Progress}
 */
export function startProgress(
  what,
  unit,
  { silentMs = 0, output = process.stderr, now = () => performance.now() } = {},
) {
  const startedAtMs = now();
  let hasSpoken = false;
  let writtenAtMs = startedAtMs;
  /** @type {{ done?: number, all?: number }} */
  let last = {};
  const elapsedMs = () => Math.round(now() - startedAtMs);

  const write = (
    /** @type {'began' | 'runs' | 'ended'} */ state,
    /** @type {string} */ result = '',
  ) => {
    writtenAtMs = now();
    hasSpoken = true;
    if (!output.isTTY) {
      const line = { progress: what, state, unit, ...last, elapsed_ms: elapsedMs() };
      output.write(`${JSON.stringify(result === '' ? line : { ...line, result })}\n`);
      return;
    }
    const seconds = `${Math.floor(elapsedMs() / 1_000)} s`;
    const detail =
      state === 'ended' ? result || `done in ${seconds}` : `${renderCount(last, unit)}${seconds}`;
    const text = `${what}: ${detail}`;
    const columns = output.columns ?? 0;
    output.write(`\r\u001B[K${columns === 0 ? text : text.slice(0, columns - 1)}`);
    if (state === 'ended') output.write('\n');
  };

  const writeWhenDue = () => {
    const interval = output.isTTY ? SHOWN_INTERVAL_MS : LOGGED_INTERVAL_MS;
    const wait = hasSpoken ? interval : silentMs;
    if (now() - writtenAtMs >= wait) write('runs');
  };

  if (silentMs === 0) write('began');
  const ticker = setInterval(writeWhenDue, TICK_MS);
  ticker.unref();
  return {
    report(done, all) {
      last = all === undefined ? { done } : { done, all };
      writeWhenDue();
    },
    hide() {
      if (output.isTTY && hasSpoken) output.write('\r\u001B[K');
    },
    end(result) {
      clearInterval(ticker);
      if (hasSpoken) write('ended', result);
    },
  };
}

/** @param {{ done?: number, all?: number }} counted @param {string} unit */
function renderCount({ done, all }, unit) {
  if (done === undefined) return '';
  if (all === undefined || all === 0) return `${done} ${unit}, `;
  const share = Math.min(1, done / all);
  const bar = '#'.repeat(Math.round(share * BAR_WIDTH)).padEnd(BAR_WIDTH, '.');
  return `[${bar}] ${done} of ${all} ${unit}, `;
}
