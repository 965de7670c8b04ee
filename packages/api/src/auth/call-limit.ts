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
import { takeCalls } from '@sluice/database/changes/call-counts';
import type { Database } from '@sluice/database/connection/connection';

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

const BLOCKS_A_WINDOW = 1_000;

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
