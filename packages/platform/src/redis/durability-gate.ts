/**
 * Keeps calls out of a Redis that may lose confirmed writes.
 *
 * Called before each add, because Redis may be away while intake starts, come back with other settings, or be replaced
 * by a replica that has others. It checks each connection once, so an add costs a look-up in a set. Refused batches are
 * in the local disk buffer, and are added once the settings are right.
 *
 * Beside `queue.ts`, which asks it.
 */
import { AppError } from '@sluice/domain/values/errors';
import type { RedisClient } from './redis-client.ts';
import { readMasterDurability, type Durability } from './redis-durability.ts';
import { mastersOf } from './redis.ts';

const REMEDIES = {
  redis:
    'set appendonly yes, appendfsync always and maxmemory-policy noeviction (infra/redis/redis.conf)',
  postgres: 'set fsync and synchronous_commit to on (infra/postgres/postgresql.conf)',
};

/**
 * Why a broker of this durability gets no commit batches in production: the settings found, their cost and the settings
 * that correct it. Undefined if the broker does not report a possible loss.
 */
export function undurable(
  kind: 'redis' | 'postgres',
  { isSaidUnsafe, description }: Durability,
): AppError | undefined {
  if (!isSaidUnsafe) return undefined;
  return new AppError(
    'BROKER_UNDURABLE',
    `${description}; ${REMEDIES[kind]}, or accept the loss with INTAKE_ALLOW_UNDURABLE_BROKER=true`,
  );
}

export class DurabilityGate {
  readonly #redis: RedisClient;
  /** Connections whose server reports no possible loss. */
  readonly #passed = new WeakSet<object>();

  constructor(redis: RedisClient) {
    this.#redis = redis;
  }

  /** Every master was looked at over the connection that it has now. */
  get isOpen(): boolean {
    const masters = mastersOf(this.#redis);
    return masters.length > 0 && masters.every(({ stream }) => this.#hasPassed(stream));
  }

  /**
   * To be called before an add while the gate is not open.
   *
   * @throws AppError BROKER_UNDURABLE if a master's settings can lose confirmed writes.
   * @throws Error if one does not answer.
   */
  async open(): Promise<void> {
    for (const master of mastersOf(this.#redis)) {
      while (!this.#hasPassed(master.stream)) {
        const asked = master.stream as object | undefined;
        const refusal = undurable('redis', await readMasterDurability(this.#redis, master));
        if (refusal) throw refusal;
        // Another connection may lead to another server: that one is asked too.
        if (asked === master.stream && asked) this.#passed.add(asked);
      }
    }
  }

  /** Before the first connection there is no stream. */
  #hasPassed(stream: object | undefined): boolean {
    return stream !== undefined && this.#passed.has(stream);
  }
}
