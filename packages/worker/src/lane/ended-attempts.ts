/**
 * Ended attempts of one delivery queue that are not stored yet.
 *
 * They decide the time of the statement. A failure is stored at once, because a crash must not shorten a wait.
 * Successes are stored once there are enough of them, or soon. A statement has a cost for each lane in it, so
 * statements are few and large, and larger in a busy process. The price: after a crash, the deliveries of that time are
 * sent again.
 *
 * Used by `lane-lease.ts`.
 */
import type { AttemptRecord } from '@sluice/database/delivery/lane-progress';
import type { IdleTime } from '../scheduling/idle-time.ts';

/** As many as are under way of a busy lane anyway (`WEBHOOK_WINDOW_MAX`), which are sent again too. */
const ENOUGH_COUNT = 64;
const SOON_MS = 20;
const SOON_WHEN_BUSY_MS = 250;

export class EndedAttempts {
  readonly #onDue: () => void;
  readonly #idleTime: IdleTime;
  #attempts: AttemptRecord[] = [];
  #isUrgent = false;
  #timer: NodeJS.Timeout | undefined;

  /** @param onDue - called when they are due because time has passed. */
  constructor(onDue: () => void, idleTime: IdleTime) {
    this.#onDue = onDue;
    this.#idleTime = idleTime;
  }

  get isDue(): boolean {
    const { length } = this.#attempts;
    return length > 0 && (this.#isUrgent || length >= ENOUGH_COUNT);
  }

  add(attempt: AttemptRecord): void {
    this.#attempts.push(attempt);
    if (attempt.failure !== null) this.#isUrgent = true;
    this.#timer ??= setTimeout(
      () => {
        this.#timer = undefined;
        this.#isUrgent = true;
        this.#onDue();
      },
      this.#idleTime.isShort() ? SOON_WHEN_BUSY_MS : SOON_MS,
    );
  }

  /** All of them; the caller must store them. */
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
