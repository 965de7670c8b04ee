/**
 * A source of events: 50 a request, at a fixed rate that does not wait for answers, so that a slow system
 * shows as latency (no coordinated omission). Each event carries a number and the time when it was due.
 */
import { Agent, request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const BATCH_INTERVAL_MS = 20;
export const BATCH_SIZE = 50;

export class EventSource {
  readonly #url: string;
  /**
   * As Node's own agent: a socket idle for 5 s is not used again. Intake ends it after 10 s, and a request
   * sent at that moment is reset (a soak ended so: 64 sockets for 122 requests/s, the last used first).
   */
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64, timeout: 5_000 });
  #count = 0;

  /** @param url of an intake, or of a server in its place. */
  constructor(url: string) {
    this.#url = `${url}/v1/batch`;
  }

  /** Events sent so far by `sendAtRate`; their numbers are those below it. */
  get count(): number {
    return this.#count;
  }

  /**
   * Returns when all that was due in so many seconds is answered.
   *
   * @returns how many were sent, and in which time.
   * @throws Error if an answer is not 200.
   */
  async sendAtRate(
    rate: number,
    seconds: number,
  ): Promise<{ readonly sent: number; readonly elapsedSeconds: number }> {
    const startedAtMs = Date.now();
    const pending = new Set<Promise<void>>();
    let failure: Error | undefined;
    let sent = 0;
    for (let elapsed = 0; elapsed < seconds * 1_000; elapsed = Date.now() - startedAtMs) {
      // Events that are due, each with its due time.
      while (sent + BATCH_SIZE <= (rate * elapsed) / 1_000) {
        const dueAtMs = Math.round(startedAtMs + (sent / rate) * 1_000);
        const posted = this.post(reportsOf(dueAtMs, this.#count)).then(
          () => void pending.delete(posted),
          (error: Error) => {
            failure ??= error;
          },
        );
        pending.add(posted);
        sent += BATCH_SIZE;
        this.#count += BATCH_SIZE;
      }
      if (failure) throw failure;
      await sleep(BATCH_INTERVAL_MS);
    }
    await Promise.all(pending);
    if (failure) throw failure;
    return { sent, elapsedSeconds: (Date.now() - startedAtMs) / 1_000 };
  }

  /** @throws Error if the answer is not 200. */
  post(body: string): Promise<void> {
    return new Promise((resolve, reject) => {
      const call = request(
        this.#url,
        {
          agent: this.#agent,
          method: 'POST',
          headers: {
            'Content-Type': 'application/json',
            Authorization: `Basic ${Buffer.from('demo_write_key:').toString('base64')}`,
          },
        },
        (response) => {
          response.resume();
          response.on('end', () =>
            response.statusCode === 200
              ? resolve()
              : reject(new Error(`/v1/batch answered ${response.statusCode}`)),
          );
        },
      );
      call.on('error', reject);
      call.end(body);
    });
  }

  close(): void {
    this.#agent.destroy();
  }
}

const reportsOf = (dueAtMs: number, from: number): string =>
  JSON.stringify({
    batch: Array.from({ length: BATCH_SIZE }, (_, n) => ({
      type: 'track',
      userId: `user-${(from + n) % 1_000}`,
      event: 'Report Delivery Event',
      properties: {
        deliveryId: `${dueAtMs}-${from + n}`,
        metric: 'delivered',
        // Reports to one person keep their order, so they are in one shard.
        recipient: `user-${(from + n) % 1_000}@example.com`,
      },
    })),
  });
