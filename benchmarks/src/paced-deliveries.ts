/**
 * Events at an ordinary rate, and the arrival of their deliveries. Sender and receiver are one process, so both times are of
 * one clock. Each event is sent at a random moment of its own slot, as people do, without waiting for an answer. The latency
 * is from its due time until the receiver has the whole body.
 */
import { once } from 'node:events';
import { Agent, createServer, request, type Server } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';

const NUMBER = /"delivery_id":"(\d+)"/;
const ARRIVED_WITHIN_MS = 60_000;

export interface Paced {
  readonly latenciesMs: readonly number[];
  /** In the order of arrival, by the clock of the machine, Unix milliseconds with a fraction: sent, and arrived. */
  readonly times: readonly { readonly sentAtMs: number; readonly arrivedAtMs: number }[];
  readonly eventCount: number;
  readonly seconds: number;
}

export interface Flooded {
  readonly takenPerSecond: number;
  /** From the first call to the last arrival. */
  readonly deliveredPerSecond: number;
  readonly refusedCount: number;
  /** Taken, and not with every receiver in time. */
  readonly lostCount: number;
}

/** A server that takes events. */
export interface Target {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Of the event of a number, JSON; the delivery has `"delivery_id":"<number>"` somewhere. By default a report of a message.
   *
   * @param person - its person, from 0.
   */
  readonly bodyOf?: (number: number, person: number) => object;
}

/** The receiver never answers here, and counts no request. */
export const HANGING_PATH = '/hangs';

export class PacedDeliveries {
  readonly #server: Server;
  readonly #peopleCount: number;
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 64, timeout: 5_000 });
  /** By number: when it was due, and how many arrivals are awaited. */
  readonly #awaited = new Map<number, { readonly dueAtMs: number; leftCount: number }>();
  #latenciesMs: number[] = [];
  #times: { readonly sentAtMs: number; readonly arrivedAtMs: number }[] = [];
  #lastNumber = 0;

  private constructor(server: Server, peopleCount: number) {
    this.#server = server;
    this.#peopleCount = peopleCount;
    server.on('request', (call, answer) => {
      let body = '';
      call.setEncoding('utf8');
      call.on('data', (chunk: string) => (body += chunk));
      call.on('end', () => {
        if (call.url === HANGING_PATH) return;
        this.#arrived(Number(NUMBER.exec(body)?.[1]));
        answer.end('ok');
      });
    });
  }

  /**
   * At every address of this machine.
   *
   * @param peopleCount - whom the events are about: those about one of them are kept in order.
   */
  static async listen(port: number, peopleCount: number): Promise<PacedDeliveries> {
    const server = createServer({ keepAliveTimeout: 60_000 });
    const receiving = new PacedDeliveries(server, peopleCount);
    server.listen(port, '0.0.0.0');
    await once(server, 'listening');
    return receiving;
  }

  /**
   * @param arrivalCount - of each event: receivers.
   * @throws Error if a call is refused, or something does not arrive within a minute.
   */
  async send(target: Target, rate: number, seconds: number, arrivalCount: number): Promise<Paced> {
    const eventCount = Math.max(1, Math.round(rate * seconds));
    const slotMs = 1_000 / rate;
    this.#latenciesMs = [];
    this.#times = [];
    const startedAtMs = performance.now();
    const calls: Promise<void>[] = [];
    for (let event = 0; event < eventCount; event++) {
      const dueAtMs = startedAtMs + (event + Math.random()) * slotMs;
      const earlyMs = dueAtMs - performance.now();
      if (earlyMs > 0) await sleep(earlyMs);
      const number = ++this.#lastNumber;
      // A timer is late by a millisecond; that is the sender's, not the target's.
      const sentAtMs = Math.max(dueAtMs, earlyMs > 0 ? performance.now() : dueAtMs);
      this.#awaited.set(number, { dueAtMs: sentAtMs, leftCount: arrivalCount });
      calls.push(this.#post(target, number));
    }
    await Promise.all(calls);
    const deadlineMs = performance.now() + ARRIVED_WITHIN_MS;
    while (this.#awaited.size > 0) {
      if (performance.now() > deadlineMs)
        throw new Error(`${this.#awaited.size} of ${eventCount} events have not arrived`);
      await sleep(5);
    }
    return {
      latenciesMs: this.#latenciesMs,
      times: this.#times,
      eventCount,
      seconds: (performance.now() - startedAtMs) / 1_000,
    };
  }

  /**
   * As many as `connectionCount` senders get taken, one after another each. A refused event is not sent again.
   */
  async flood(
    target: Target,
    connectionCount: number,
    seconds: number,
    arrivalCount: number,
  ): Promise<Flooded> {
    this.#latenciesMs = [];
    this.#times = [];
    const startedAtMs = performance.now();
    const endsAtMs = startedAtMs + seconds * 1_000;
    let [takenCount, refusedCount] = [0, 0];
    const send = async (): Promise<void> => {
      while (performance.now() < endsAtMs) {
        const number = ++this.#lastNumber;
        this.#awaited.set(number, { dueAtMs: performance.now(), leftCount: arrivalCount });
        try {
          await this.#post(target, number);
          takenCount++;
        } catch {
          this.#awaited.delete(number);
          refusedCount++;
          // One that is away is not asked without a pause.
          await sleep(20);
        }
      }
    };
    await Promise.all(Array.from({ length: connectionCount }, send));
    const takenSeconds = (performance.now() - startedAtMs) / 1_000;
    const deadlineMs = performance.now() + ARRIVED_WITHIN_MS;
    while (this.#awaited.size > 0 && performance.now() < deadlineMs) await sleep(5);
    const lastAtMs = (this.#times.at(-1)?.arrivedAtMs ?? NaN) - performance.timeOrigin;
    const lostCount = this.#awaited.size;
    this.#awaited.clear();
    return {
      takenPerSecond: takenCount / takenSeconds,
      deliveredPerSecond: this.#times.length / ((lastAtMs - startedAtMs) / 1_000),
      refusedCount,
      lostCount,
    };
  }

  close(): void {
    this.#agent.destroy();
    this.#server.closeAllConnections();
    this.#server.close();
  }

  /** One that comes again is not counted. */
  #arrived(number: number): void {
    const awaited = this.#awaited.get(number);
    if (awaited === undefined) return;
    const nowMs = performance.now();
    this.#latenciesMs.push(nowMs - awaited.dueAtMs);
    this.#times.push({
      sentAtMs: performance.timeOrigin + awaited.dueAtMs,
      arrivedAtMs: performance.timeOrigin + nowMs,
    });
    if (--awaited.leftCount === 0) this.#awaited.delete(number);
  }

  async #post({ url, headers, bodyOf = reportOf }: Target, number: number): Promise<void> {
    const call = request(url, {
      agent: this.#agent,
      method: 'POST',
      headers: { 'Content-Type': 'application/json', ...headers },
    });
    call.end(JSON.stringify(bodyOf(number, number % this.#peopleCount)));
    const [answer] = await once(call, 'response');
    answer.resume();
    await once(answer, 'end');
    if (answer.statusCode < 200 || answer.statusCode > 299)
      throw new Error(`${url} answered ${answer.statusCode}`);
  }
}

const reportOf = (number: number, person: number): object => ({
  delivery_id: String(number),
  metric: 'delivered',
  recipient: `person-${person}@example.com`,
  timestamp: Math.floor(Date.now() / 1_000),
});
