/**
 * Limits the calls of a key, a token or an IP address.
 *
 * One count in a window of time holds for all processes. It is a row of Postgres
 * (`database/src/changes/call-counts.ts`), and each process takes calls from it in blocks of a thousandth of the limit.
 * So limits up to a thousand are counted one by one and are exact; of a larger limit an idle process may hold back a
 * thousandth. The limit bounds the cost of counting, and once a window is used up Postgres is not asked any more. Calls
 * that come while the count is asked for share the next question. Windows begin at full multiples of their length, so
 * that all processes mean the same one.
 */
import { takeCalls, takeCallsOfEach, type TakenCalls } from '@sluice/database/changes/call-counts';
import type { Database } from '@sluice/database/connection/connection';
import { GroupedCalls } from '@sluice/platform/process/grouped-calls';

export interface CallLimitOptions {
  /** The limited thing, in the count's name. */
  readonly name: string;
  readonly countMax: number;
  readonly windowMs: number;
  readonly now: () => number;
  /** How many are taken in the window, these included. */
  readonly takeCalls: (
    subject: string,
    count: number,
    windowStartedAtMs: number,
    windowMs: number,
  ) => Promise<number>;
}

export interface CallStanding {
  readonly isExceeded: boolean;
  /** In this window, as far as this process knows. */
  readonly remaining: number;
  /** Until the next window; at least 1. */
  readonly resetSeconds: number;
}

/** One subject's calls in the present window. */
interface Count {
  /** Taken from the row and not used yet. */
  held: number;
  /** Left in the row when it was last asked. */
  left: number;
  isUsedUp: boolean;
  isAsking: boolean;
  waiting: {
    readonly answer: (isTaken: boolean) => void;
    readonly fail: (error: unknown) => void;
  }[];
}

/** The count in Postgres, which all processes share. */
export const takeCallsIn =
  (database: Database): CallLimitOptions['takeCalls'] =>
  (...asked) =>
    takeCalls(database, ...asked);

/** One statement takes the calls of so many subjects. */
const SUBJECTS_A_STATEMENT_MAX = 200;

/**
 * {@link takeCallsIn} in one statement at a time, for up to 200 subjects. Calls that come meanwhile wait for the
 * next.
 *
 * @param windowMs - of each call.
 */
export function takeCallsTogetherIn(
  database: Database,
  windowMs: number,
): CallLimitOptions['takeCalls'] {
  const groups = new GroupedCalls({
    groupMax: SUBJECTS_A_STATEMENT_MAX,
    flightsMax: 1,
    isOnesFault: () => false,
    run: async (group: readonly (TakenCalls & { readonly windowStartedAtMs: number })[]) => {
      // One subject may come twice if a window began meanwhile.
      const counts = new Map<string, number>();
      for (const { subject, count } of group)
        counts.set(subject, (counts.get(subject) ?? 0) + count);
      const calls = [...counts].map(([subject, count]) => ({ subject, count }));
      const newestMs = Math.max(...group.map(({ windowStartedAtMs }) => windowStartedAtMs));
      const taken = await takeCallsOfEach(database, calls, newestMs, windowMs);
      return group.map(({ subject, count }) => {
        const left = (counts.get(subject) ?? count) - count;
        counts.set(subject, left);
        return (taken.get(subject) ?? 0) - left;
      });
    },
  });
  return (subject, count, windowStartedAtMs) => groups.call({ subject, count, windowStartedAtMs });
}

const BLOCKS_A_WINDOW = 1_000;
/** Past it every subject is forgotten at once. Then Postgres is asked for their counts again. */
const SUBJECT_COUNT_MAX = 10_000;

export class CallLimit {
  readonly #options: CallLimitOptions;
  readonly #blockSize: number;
  #windowStartedAtMs = -Infinity;
  #counts = new Map<string, Count>();

  constructor(options: CallLimitOptions) {
    this.#options = options;
    this.#blockSize = Math.max(1, Math.floor(options.countMax / BLOCKS_A_WINDOW));
  }

  /** Counts one call. Rejects if Postgres does not answer. */
  async take(subject: string | number): Promise<CallStanding> {
    const { now, windowMs } = this.#options;
    const nowMs = now();
    const windowStartedAtMs = Math.floor(nowMs / windowMs) * windowMs;
    if (windowStartedAtMs !== this.#windowStartedAtMs) {
      this.#windowStartedAtMs = windowStartedAtMs;
      this.#counts = new Map();
    }
    const name = `${this.#options.name} ${subject}`;
    const count = this.#counts.get(name) ?? this.#add(name);
    const isTaken = count.held > 0 ? use(count) : await this.#ask(name, count, windowStartedAtMs);
    return {
      isExceeded: !isTaken,
      remaining: count.held + count.left,
      resetSeconds: Math.max(1, Math.ceil((windowStartedAtMs + windowMs - nowMs) / 1000)),
    };
  }

  #add(name: string): Count {
    if (this.#counts.size >= SUBJECT_COUNT_MAX) this.#counts = new Map();
    const count: Count = { held: 0, left: 0, isUsedUp: false, isAsking: false, waiting: [] };
    this.#counts.set(name, count);
    return count;
  }

  #ask(name: string, count: Count, windowStartedAtMs: number): Promise<boolean> {
    if (count.isUsedUp) return Promise.resolve(false);
    const asked = new Promise<boolean>((answer, fail) => count.waiting.push({ answer, fail }));
    if (!count.isAsking) void this.#takeBlocks(name, count, windowStartedAtMs);
    return asked;
  }

  /** One question at a time, until no call waits. */
  async #takeBlocks(name: string, count: Count, windowStartedAtMs: number): Promise<void> {
    const { countMax, windowMs } = this.#options;
    count.isAsking = true;
    while (count.waiting.length > 0) {
      const asking = count.waiting.splice(0);
      const size = Math.max(this.#blockSize, asking.length);
      try {
        const taken = await this.#options.takeCalls(name, size, windowStartedAtMs, windowMs);
        count.held += Math.min(size, Math.max(0, countMax - (taken - size)));
        count.left = Math.max(0, countMax - taken);
        count.isUsedUp = count.left === 0;
        for (const { answer } of asking) answer(use(count));
      } catch (error) {
        for (const { fail } of asking) fail(error);
      }
    }
    count.isAsking = false;
  }
}

function use(count: Count): boolean {
  if (count.held === 0) return false;
  count.held -= 1;
  return true;
}
