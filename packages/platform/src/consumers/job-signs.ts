/**
 * Signs of new jobs on Postgres, on one connection a process.
 *
 * BullMQ has each worker listen on a connection of its own, and Postgres notifies every listening connection of every
 * job: with 16 shards and four processes one commit batch woke 64 of its backends and 64 sockets.
 *
 * Before: `queue-taking.ts`, one a process. Used by `queue-shard-backend.ts`.
 */
import type pg from 'pg';

/** BullMQ's channel: every new or returned job is notified here, with the name of its queue. */
export const JOB_CHANNEL = 'bullmq_jobs';

interface Waiter {
  readonly onSign: () => void;
  readonly onLost: () => void;
}

export class JobSigns {
  readonly #pool: pg.Pool;
  readonly #waiters = new Map<string, Set<Waiter>>();
  /** Ends the connection. */
  #connection: Promise<() => void> | undefined;

  constructor(pool: pg.Pool) {
    this.#pool = pool;
  }

  /** Resolves once signs are heard. @throws Error of Postgres; the next call tries again. */
  async listen(): Promise<void> {
    this.#connection ??= this.#open();
    await this.#connection;
  }

  /**
   * Calls `onSign` for each sign of a queue, and `onLost` when the connection is lost: then signs may have been missed,
   * and no sign arrives until `listen` is called again.
   *
   * @returns ends it.
   */
  wait(queue: string, waiter: Waiter): () => void {
    const waiters = this.#waiters.get(queue) ?? new Set();
    this.#waiters.set(queue, waiters.add(waiter));
    return () => void waiters.delete(waiter);
  }

  async close(): Promise<void> {
    const drop = await this.#connection?.catch(() => undefined);
    this.#connection = undefined;
    drop?.();
  }

  #open(): Promise<() => void> {
    const opening = this.#connect(() => {
      if (this.#connection !== opening) return;
      this.#connection = undefined;
      for (const waiters of this.#waiters.values())
        for (const waiter of [...waiters]) waiter.onLost();
    });
    opening.catch(() => {
      if (this.#connection === opening) this.#connection = undefined;
    });
    return opening;
  }

  async #connect(onLost: () => void): Promise<() => void> {
    const client = await this.#pool.connect();
    let isReleased = false;
    const drop = (): void => {
      if (isReleased) return;
      isReleased = true;
      client.removeAllListeners('notification');
      client.release(true);
      onLost();
    };
    client.on('error', drop);
    client.on('end', drop);
    client.on('notification', ({ channel, payload }) => {
      if (channel !== JOB_CHANNEL || payload === undefined) return;
      for (const { onSign } of [...(this.#waiters.get(payload) ?? [])]) onSign();
    });
    try {
      await client.query(`listen ${JOB_CHANNEL}`);
    } catch (error) {
      drop();
      throw error;
    }
    return drop;
  }
}
