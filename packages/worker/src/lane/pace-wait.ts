/**
 * One drain's rate limit.
 *
 * It decides whether a request must wait for the limit, and comes back in time while others are in flight. Without one
 * in flight the lane is released instead, and woken when it may send again.
 *
 * Between `lane-drain.ts` and `domain/src/delivery/send-pace.ts`.
 */
import type { ClaimedLane } from '@sluice/database/delivery/lanes';
import { SendPace } from '@sluice/domain/delivery/send-pace';

export interface PaceClock {
  readonly now: () => number;
  readonly pause: (durationMs: number) => Promise<void>;
}

export class PaceWait {
  readonly #clock: PaceClock;
  readonly #onTime: (error?: unknown) => void;
  /** As of the claim: a rate that is changed counts from the next time slice on. Undefined without a limit. */
  readonly #pace: SendPace | undefined;
  #isWaiting = false;

  /** @param onTime - a request may start again, or the waiting failed; may come when the drain has ended. */
  constructor(
    clock: PaceClock,
    claimed: Pick<ClaimedLane, 'rateLimitPerSecond' | 'nextStartAtMs'>,
    onTime: (error?: unknown) => void,
  ) {
    this.#clock = clock;
    this.#onTime = onTime;
    const { rateLimitPerSecond, nextStartAtMs } = claimed;
    if (rateLimitPerSecond !== null)
      this.#pace = new SendPace(rateLimitPerSecond, nextStartAtMs, clock.now());
  }

  mustWait(isOneInFlight: boolean): boolean {
    const waitMs = this.#pace?.waitMs(this.#clock.now()) ?? 0;
    if (waitMs === 0) return false;
    if (isOneInFlight && !this.#isWaiting) {
      this.#isWaiting = true;
      const end = (error?: unknown): void => {
        this.#isWaiting = false;
        this.#onTime(error);
      };
      this.#clock.pause(waitMs).then(() => end(), end);
    }
    return true;
  }

  /** A request is started. */
  start(nowMs: number): void {
    this.#pace?.start(nowMs);
  }

  /** To be kept with the lane. */
  get nextStartAtMs(): number | null {
    return this.#pace ? Math.ceil(this.#pace.nextStartAtMs) : null;
  }
}
