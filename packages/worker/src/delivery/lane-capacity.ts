/**
 * Keeps the queue's jobs short.
 *
 * A job ends when its lane has ended, or when the lane only waits for its endpoint. So hundreds of endpoints that hang
 * do not fill the places of the queue, for which the lanes of all others would wait.
 *
 * It is safe, because the lane's lease keeps others off, not the job. A wake-up meanwhile finds the lane held, and the
 * lane's end sees the deliveries that were logged in between.
 *
 * Between `platform/src/consumers/queue-consumers.ts`, which runs the jobs, and `deliver-webhook.ts`.
 */
import type { LaneDelivery } from './deliver-webhook.ts';

export interface LaneCapacityOptions {
  /** Of idle time. */
  readonly stillAfterMs: number;
  /** Idle time of this process in all. */
  readonly idleTimeMs: () => number;
  /** With more than so many lanes without a job, jobs wait for their lanes again. */
  readonly stillMax: number;
  /** Called for a lane that threw after its job had ended. */
  readonly onFailure: (error: unknown) => void;
}

interface WaitingJob {
  readonly delivery: LaneDelivery;
  readonly ended: Promise<unknown>;
  readonly letGo: () => void;
}

export class LaneCapacity {
  readonly #options: LaneCapacityOptions;
  readonly #waiting = new Set<WaitingJob>();
  readonly #still = new Set<Promise<unknown>>();
  /** One for all of them: a thousand lanes are no thousand timers. */
  #timer: NodeJS.Timeout | undefined;
  #lookedAtIdleTimeMs = -Infinity;

  constructor(options: LaneCapacityOptions) {
    this.#options = options;
  }

  /** Lanes whose job has ended and which have not. */
  get stillCount(): number {
    return this.#still.size;
  }

  /** @throws the error of the lane, while its job waits for it. */
  waitFor(delivery: LaneDelivery): Promise<void> {
    return new Promise((resolve, reject) => {
      const job = { delivery, ended: delivery.ended, letGo: resolve };
      delivery.ended.then(() => resolve(), reject).finally(() => this.#waiting.delete(job));
      this.#waiting.add(job);
      if (!this.#timer) this.#lookLater();
    });
  }

  /** Waits for all of them. */
  async close(): Promise<void> {
    await Promise.all(this.#still);
  }

  #look(): void {
    const { stillAfterMs, stillMax, onFailure } = this.#options;
    this.#timer = undefined;
    const idleTimeMs = this.#options.idleTimeMs();
    // Without idle time no lane has come nearer to the end of its job, so this look is skipped.
    if (idleTimeMs - this.#lookedAtIdleTimeMs < stillAfterMs / 4) {
      this.#lookLater();
      return;
    }
    this.#lookedAtIdleTimeMs = idleTimeMs;
    for (const job of this.#waiting) {
      if (this.#still.size >= stillMax) break;
      if (!job.delivery.isStill(stillAfterMs)) continue;
      this.#waiting.delete(job);
      job.letGo();
      const rest: Promise<unknown> = job.ended
        .catch(onFailure)
        .finally(() => this.#still.delete(rest));
      this.#still.add(rest);
    }
    if (this.#waiting.size > 0) this.#lookLater();
  }

  #lookLater(): void {
    this.#timer = setTimeout(() => this.#look(), this.#options.stillAfterMs);
  }
}
