/**
 * Decides whether Redis has capacity for commit batches. `domain/src/operations/broker-fill.ts` has the rule.
 *
 * It looks while commit batches are added: a second after the last look, after a small part of the free memory has been
 * added, and at once after a refusal. So how far it is overshot does not depend on the clock: an intake that adds 50
 * MB/s to a Redis of 64 MB looks after each flush. A process that does not add does not look. While there is capacity
 * an add costs a boolean and a sum; a look is one `INFO memory` a master, 11 µs of its time, and no add waits for it.
 *
 * It compares the same memory as Redis compares with its `maxmemory`: without the buffers of replicas and of the
 * append-only file.
 *
 * A Redis without an answer (away, or `INFO` forbidden) counts as one with capacity: it refuses commands by itself.
 * Beside `queue.ts`, which asks before it adds and reports the added bytes.
 */
import {
  addedBytesMax,
  fillOf,
  isFull,
  type MemoryUse,
} from '@sluice/domain/operations/broker-fill';
import { AppError } from '@sluice/domain/values/errors';
import type { Logger } from '../process/logger.ts';
import type { RedisClient } from './redis-client.ts';
import { mastersOf } from './redis.ts';

/** For `/readyz` and `/metrics`. */
export interface BrokerFill {
  /** Of the fullest master's limit, 1 is all of it; 0 without a limit. */
  readonly ratio: number;
  /** No more batches are added. */
  readonly isFull: boolean;
}

export interface RedisCapacityOptions {
  readonly redis: RedisClient;
  /** The mark at which adding stops. */
  readonly fillPercentMax: number;
  readonly monotonicNow: () => number;
  readonly logger: Pick<Logger, 'info' | 'warn'>;
}

const LOOK_INTERVAL_MS = 1_000;
/** Redis' error for a command that a user may not give, or that was taken away. */
const NOT_ALLOWED = /NOPERM|unknown command/;

export class RedisCapacity {
  readonly #options: RedisCapacityOptions;
  #fill: BrokerFill = { ratio: 0, isFull: false };
  #lookedAtMs = -Infinity;
  /** Since the last look. */
  #addedBytes = 0;
  #addedBytesMax = Infinity;
  #fullSinceMs: number | undefined;
  #isRefusalTold = false;
  #look: Promise<BrokerFill> | undefined;

  constructor(options: RedisCapacityOptions) {
    this.#options = options;
  }

  /** As of the last look. */
  get isFull(): boolean {
    return this.#fill.isFull;
  }

  /**
   * To be called before an add while `isFull`; looks again if the last look is old.
   *
   * @throws AppError BROKER_FULL if there still is no capacity.
   */
  async expectCapacity(): Promise<void> {
    if (this.#isLookOld()) await this.look().catch(() => undefined);
    if (!this.#fill.isFull) return;
    throw new AppError(
      'BROKER_FULL',
      `Redis uses ${Math.floor(100 * this.#fill.ratio)} % of its maxmemory; calls stop at ${this.#options.fillPercentMax} % until workers have freed capacity. Start workers if they do not run`,
    );
  }

  /** So much was added, bytes of commit batches. */
  noticeAdded(sizeBytes: number): void {
    this.#addedBytes += sizeBytes;
    if (this.#addedBytes < this.#addedBytesMax && !this.#isLookOld()) return;
    void this.look().catch(() => undefined);
  }

  /** An add failed: it may have been refused for want of memory. */
  noticeFailure(): void {
    void this.look().catch(() => undefined);
  }

  /**
   * Reads the figures anew; one look at a time.
   *
   * @throws Error if no master returns them.
   */
  look(): Promise<BrokerFill> {
    return (this.#look ??= this.#lookAnew().finally(() => (this.#look = undefined)));
  }

  #isLookOld(): boolean {
    return this.#options.monotonicNow() - this.#lookedAtMs >= LOOK_INTERVAL_MS;
  }

  async #lookAnew(): Promise<BrokerFill> {
    const { redis, fillPercentMax, monotonicNow } = this.#options;
    this.#lookedAtMs = monotonicNow();
    this.#addedBytes = 0;
    const answers = await Promise.allSettled(
      mastersOf(redis).map((master) => master.info('memory')),
    );
    const uses = answers.flatMap((each) =>
      each.status === 'fulfilled' ? [memoryUseOf(each.value)] : [],
    );
    if (uses.length === 0) {
      this.#fill = { ratio: 0, isFull: false };
      this.#fullSinceMs = undefined;
      this.#addedBytesMax = Infinity;
      this.#tellRefusal(answers);
      throw new Error('no master of Redis reports its memory');
    }
    const ratio = fillOf(uses);
    const nowMs = monotonicNow();
    const fullForMs = this.#fullSinceMs === undefined ? undefined : nowMs - this.#fullSinceMs;
    this.#become({ ratio, isFull: isFull(fullForMs, ratio, fillPercentMax) });
    this.#fullSinceMs = this.#fill.isFull ? (this.#fullSinceMs ?? nowMs) : undefined;
    this.#addedBytesMax = addedBytesMax(uses, fillPercentMax);
    return this.#fill;
  }

  /** Once: intake cannot keep such a Redis from becoming full. */
  #tellRefusal(answers: readonly PromiseSettledResult<string>[]): void {
    const refused = answers.find(
      (each) => each.status === 'rejected' && NOT_ALLOWED.test(String(each.reason)),
    );
    if (!refused || this.#isRefusalTold) return;
    this.#isRefusalTold = true;
    this.#options.logger.warn(
      {},
      'Redis does not allow INFO memory for this user, so intake cannot stop before Redis is full; allow the command',
    );
  }

  #become(fill: BrokerFill): void {
    const { logger, fillPercentMax } = this.#options;
    const wasFull = this.#fill.isFull;
    this.#fill = fill;
    if (fill.isFull === wasFull) return;
    const figures = { ratio: fill.ratio, percentMax: fillPercentMax };
    if (fill.isFull)
      logger.warn(
        figures,
        'Redis is full; intake adds no commit batches until workers free capacity. Start workers if they do not run',
      );
    else logger.info(figures, 'Redis has capacity again');
  }
}

/**
 * The memory that Redis compares, from its answer to `INFO memory`. Before version 4 the answer does not have the
 * buffers that it leaves out.
 */
export function memoryUseOf(answer: string): MemoryUse {
  const figure = (name: string): number =>
    Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(answer)?.[1] ?? 0);
  return {
    usedBytes: figure('used_memory') - figure('mem_not_counted_for_evict'),
    limitBytes: figure('maxmemory'),
  };
}
