/**
 * Attempts of one lane that have ended and are not kept yet, and when they should be: a failure at
 * once, for a crash must not shorten a wait; successes when there are enough of them, or soon. A
 * statement has its price for each lane in it, so few and large ones.
 *
 * Used by `lane-drain.ts`.
 */
import type { AttemptRecord } from '@sluice/database/lanes';

const ENOUGH_COUNT = 32;
const SOON_MS = 20;

export class EndedAttempts {
  readonly #onDue: () => void;
  #attempts: AttemptRecord[] = [];
  #isUrgent = false;
  #timer: NodeJS.Timeout | undefined;

  /** @param onDue - called when time has made them due. */
  constructor(onDue: () => void) {
    this.#onDue = onDue;
  }

  get isDue(): boolean {
    const { length } = this.#attempts;
    return length > 0 && (this.#isUrgent || length >= ENOUGH_COUNT);
  }

  /** The one added last, where it was not taken yet. */
  get latest(): AttemptRecord | undefined {
    return this.#attempts.at(-1);
  }

  add(attempt: AttemptRecord): void {
    this.#attempts.push(attempt);
    if (attempt.failure !== null) this.#isUrgent = true;
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined;
      this.#isUrgent = true;
      this.#onDue();
    }, SOON_MS);
  }

  /** All of them; whoever takes them keeps them. */
  take(): AttemptRecord[] {
    const attempts = this.#attempts;
    this.#attempts = [];
    this.#isUrgent = false;
    return attempts;
  }

  close(): void {
    clearTimeout(this.#timer);
  }
}
