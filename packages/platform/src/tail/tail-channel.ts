/**
 * Channel between processes for short-lived messages: Redis' publish and subscribe if there is a Redis, else Postgres'
 * `LISTEN` and `NOTIFY`. A message is delivered at most once and never stored, and no process waits for it.
 *
 * On Postgres a notification holds less than 8,000 bytes, and commits that notify wait for each other. Ours are
 * transactions of their own without a write, on a connection of their own, a few a second, so that no other commit
 * waits for more than one of them.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { connectionWarnings, type WarnOfConnection } from '../redis/connection-warnings.ts';
import { KEEP_ALIVE } from '../redis/keep-alive.ts';
import type { Logger } from '../process/logger.ts';
import type { RedisClient } from '../redis/redis-client.ts';
import { connectProducer, connectWorker } from '../redis/redis.ts';
import { within } from '../process/within.ts';

export interface TailChannelOptions {
  readonly databaseUrl: string;
  /** Absent: through Postgres. */
  readonly redisUrl?: string | undefined;
  readonly prefix: string;
  readonly logger: Pick<Logger, 'warn'>;
}

export interface TailChannel {
  /** Longest text, in bytes of UTF-8. */
  readonly messageSizeBytesMax: number;
  /** Bytes that a process may publish at a time, all its texts together, without being a burden. */
  readonly burstSizeBytesMax: number;
  /** @throws if it could not be sent. There may be no listener. */
  publish(topic: string, text: string): Promise<void>;
  /** Hears a topic once this resolves, and again by itself after a broken connection. One listener a topic. */
  listen(topic: string, onText: (text: string) => void): Promise<void>;
  unlisten(topic: string): Promise<void>;
  close(): Promise<void>;
}

const SEND_DEADLINE_MS = 2_000;
const REDIS_MESSAGE_SIZE_BYTES_MAX = 64 * 1_024;
const REDIS_BURST_SIZE_BYTES_MAX = 512 * 1_024;
/** Of `NAMEDATALEN` and `NOTIFY_PAYLOAD_MAX_LENGTH` of an unchanged Postgres. */
const NOTIFY_SIZE_BYTES_MAX = 7_999;
const NOTIFY_BURST_COUNT_MAX = 8;
const RECONNECT_DELAY_MS_MIN = 100;
const RECONNECT_DELAY_MS_MAX = 5_000;

/** Opens no connection until it is used. */
export function openTailChannel(options: TailChannelOptions): TailChannel {
  return options.redisUrl === undefined || options.redisUrl === ''
    ? new PostgresChannel(options)
    : new RedisChannel(options, options.redisUrl);
}

type Listener = (text: string) => void;

class RedisChannel implements TailChannel {
  readonly messageSizeBytesMax = REDIS_MESSAGE_SIZE_BYTES_MAX;
  readonly burstSizeBytesMax = REDIS_BURST_SIZE_BYTES_MAX;
  readonly #options: TailChannelOptions;
  readonly #url: string;
  readonly #warn: WarnOfConnection;
  readonly #listeners = new Map<string, Listener>();
  #sender: Promise<RedisClient> | undefined;
  /** Its own connection: a listening one can do no other work. */
  #hearer: RedisClient | undefined;

  constructor(options: TailChannelOptions, url: string) {
    this.#options = options;
    this.#url = url;
    this.#warn = connectionWarnings(options.logger);
  }

  async publish(topic: string, text: string): Promise<void> {
    this.#sender ??= connectProducer(this.#url, SEND_DEADLINE_MS).then((sender) => {
      sender.on('error', (error) => this.#warn(error));
      return sender;
    });
    await (await this.#sender).publish(this.#nameOf(topic), text);
  }

  async listen(topic: string, onText: Listener): Promise<void> {
    const name = this.#nameOf(topic);
    this.#listeners.set(name, onText);
    // After every reconnect ioredis subscribes again by itself.
    this.#hearer ??= this.#connectHearer();
    await this.#hearer.subscribe(name);
  }

  async unlisten(topic: string): Promise<void> {
    const name = this.#nameOf(topic);
    this.#listeners.delete(name);
    await this.#hearer?.unsubscribe(name);
  }

  async close(): Promise<void> {
    this.#hearer?.disconnect();
    (await this.#sender)?.disconnect();
  }

  #connectHearer(): RedisClient {
    const hearer = connectWorker(this.#url);
    hearer.on('error', (error) => this.#warn(error));
    hearer.on('message', (name: string, text: string) => this.#listeners.get(name)?.(text));
    return hearer;
  }

  #nameOf(topic: string): string {
    return `${this.#options.prefix}-${topic}`;
  }
}

class PostgresChannel implements TailChannel {
  readonly messageSizeBytesMax = NOTIFY_SIZE_BYTES_MAX;
  readonly burstSizeBytesMax = NOTIFY_BURST_COUNT_MAX * NOTIFY_SIZE_BYTES_MAX;
  readonly #options: TailChannelOptions;
  readonly #listeners = new Map<string, Listener>();
  readonly #closing = new AbortController();
  #connected: Promise<pg.Client> | undefined;
  /** The end of the last query of the connection. */
  #lastQuery: Promise<unknown> = Promise.resolve();

  constructor(options: TailChannelOptions) {
    this.#options = options;
  }

  async publish(topic: string, text: string): Promise<void> {
    const client = await within(SEND_DEADLINE_MS, this.#client());
    try {
      await this.#query(client, 'select pg_notify($1, $2)', [this.#nameOf(topic), text]);
    } catch (error) {
      // A connection that does not answer gets no messages either, until TCP gives it up: another takes its place.
      void client.end();
      throw error;
    }
  }

  async listen(topic: string, onText: Listener): Promise<void> {
    const name = this.#nameOf(topic);
    this.#listeners.set(name, onText);
    const client = await this.#client();
    await this.#query(client, `listen ${client.escapeIdentifier(name)}`);
  }

  async unlisten(topic: string): Promise<void> {
    const name = this.#nameOf(topic);
    if (!this.#listeners.delete(name)) return;
    const client = await within(SEND_DEADLINE_MS, this.#client());
    await this.#query(client, `unlisten ${client.escapeIdentifier(name)}`);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    const client = await this.#connected?.catch(() => undefined);
    // On a silent path the end would never be answered.
    if (client) await within(SEND_DEADLINE_MS, client.end()).catch(() => undefined);
  }

  /** One after another: `pg` warns of a query that is sent while another runs, and version 9 will refuse it. */
  #query(client: pg.Client, text: string, values: readonly string[] = []): Promise<unknown> {
    const query = this.#lastQuery.then(() => client.query(text, [...values]));
    this.#lastQuery = query.catch(() => undefined);
    return query;
  }

  #client(): Promise<pg.Client> {
    return (this.#connected ??= this.#connect());
  }

  /** Tries for ever; a caller that cannot wait gives up by itself. */
  async #connect(): Promise<pg.Client> {
    for (let delayMs = RECONNECT_DELAY_MS_MIN; ; delayMs *= 2) {
      if (this.#closing.signal.aborted) throw new Error('the live tail is closed');
      const client = new pg.Client({
        connectionString: this.#options.databaseUrl,
        application_name: 'sluice-tail',
        connectionTimeoutMillis: RECONNECT_DELAY_MS_MAX,
        query_timeout: RECONNECT_DELAY_MS_MAX,
        ...KEEP_ALIVE,
      });
      client.on('error', () => undefined);
      client.on('notification', ({ channel, payload = '' }) =>
        this.#listeners.get(channel)?.(payload),
      );
      try {
        await client.connect();
        for (const name of this.#listeners.keys())
          await client.query(`listen ${client.escapeIdentifier(name)}`);
        client.on('end', () => this.#reconnect());
        return client;
      } catch (error) {
        this.#options.logger.warn(
          { error },
          'the live tail could not connect to Postgres; the process tries again',
        );
        await client.end().catch(() => undefined);
        await sleep(Math.min(delayMs, RECONNECT_DELAY_MS_MAX), undefined, {
          signal: this.#closing.signal,
        }).catch(() => undefined);
      }
    }
  }

  #reconnect(): void {
    this.#connected = undefined;
    this.#lastQuery = Promise.resolve();
    if (this.#closing.signal.aborted || this.#listeners.size === 0) return;
    this.#client().catch(() => undefined);
  }

  #nameOf(topic: string): string {
    // Each database is a namespace of its own.
    return `sluice-${topic}`;
  }
}
