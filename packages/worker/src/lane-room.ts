/**
 * Keeps the queue's jobs short: a job ends when its lane has ended, or when the lane has come to
 * wait for its endpoint and nothing else. So hundreds of endpoints that hang do not fill the places
 * of the queue, behind which the lanes of all others would wait.
 *
 * Safe, because the lane's lease is what keeps others off, not the job; and who wakes it meanwhile
 * finds it held, and its end sees what was logged in between.
 *
 * Between `platform/src/queue-consumers.ts`, which runs the jobs, and `deliver-webhook.ts`.
 */
import type { LaneDelivery } from './deliver-webhook.ts';

export interface LaneRoomOptions {
  readonly stillAfterMs: number;
  /** Beyond so many, jobs wait for their lanes again. */
  readonly stillMax: number;
  /** Told of a lane that threw after its job had ended. */
  readonly onFailure: (error: unknown) => void;
}

export class LaneRoom {
  readonly #options: LaneRoomOptions;
  readonly #still = new Set<Promise<unknown>>();

  constructor(options: LaneRoomOptions) {
    this.#options = options;
  }

  /** Lanes whose job has ended and which have not. */
  get stillCount(): number {
    return this.#still.size;
  }

  /** @throws what the lane threw, while its job waits for it. */
  async waitFor(delivery: LaneDelivery): Promise<void> {
    const { stillAfterMs, stillMax, onFailure } = this.#options;
    const ended = delivery.ended.then(() => true);
    for (;;) {
      let timer: NodeJS.Timeout | undefined;
      const later = new Promise<false>((resolve) => {
        timer = setTimeout(resolve, stillAfterMs, false);
      });
      const hasEnded = await Promise.race([ended, later]).finally(() => clearTimeout(timer));
      if (hasEnded) return;
      if (delivery.isStill(stillAfterMs) && this.#still.size < stillMax) break;
    }
    const rest = ended.catch(onFailure).finally(() => this.#still.delete(rest));
    this.#still.add(rest);
  }

  /** Waits for all of them. */
  async close(): Promise<void> {
    await Promise.all(this.#still);
  }
}
