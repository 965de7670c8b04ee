/**
 * One connection to Postgres: its deadlines, its prepared statements, and the writes of a turn in one.
 *
 * Used by the pool (`connection.ts`) and for each connection beside it.
 */
import type { Duplex } from 'node:stream';
import { GatheredWrites } from '@sluice/domain/values/gathered-writes';
import pg from 'pg';
import { afterRunning } from './running-time.ts';

/** Begins the text of a statement that gets a name. */
export const PREPARED_TEXT = '/* prepared */';

/** Text → name. As many as there are such texts in the code. */
const preparedNames = new Map<string, string>();

const WITHIN_TEXT = /^\/\* within (\d+) ms \*\//;

/** As `connection-watch.ts` reads it. */
export interface WatchedConnection {
  /** Start of the statement in progress, by the monotonic clock. Undefined: no statement is in progress. */
  readonly busySinceMs: number | undefined;
  /** As received at the start of the connection; behind a pooler it is not a backend's. */
  readonly processID: number | null;
  /** Closes the socket of one whose statement is under way. */
  end(): Promise<void>;
}

export interface ClientLimits {
  /** To make the connection, the login included. */
  readonly connectMsMax: number;
  /** For the answer to every statement that does not name its own. Absent: it takes as long as it takes. */
  readonly answerMsMax?: number | undefined;
}

/** For a connection beside the pool: the class has no types of `pg`'s many forms of a call. */
export const createClient = (
  config: pg.ClientConfig,
  limits: ClientLimits,
): pg.Client & WatchedConnection => new Client(config, limits);

/** Gives the statements that ask for it a name, which is how `pg` prepares, or a deadline. */
export class Client extends pg.Client implements WatchedConnection {
  /** `pg` sets it; its types leave it out. */
  declare readonly processID: number | null;
  busySinceMs: number | undefined = undefined;
  readonly #limits: ClientLimits;
  /** `begin` and the statement behind it, for example. */
  readonly #writes = new GatheredWrites(() => this.#socket());

  constructor(config: pg.ClientConfig, limits: ClientLimits) {
    super(config);
    this.#limits = limits;
    this.on('drain', () => (this.busySinceMs = undefined));
  }

  /** `pg`'s own `connectionTimeoutMillis` ends a connection whose login was answered while this process stood still. */
  override connect(...given: unknown[]): never {
    const { connectMsMax } = this.#limits;
    const cancel = afterRunning(connectMsMax, () =>
      this.#socket().destroy(
        new Error(
          `Connection terminated: Postgres did not accept the connection in ${connectMsMax} ms`,
        ),
      ),
    );
    this.once('connect', cancel);
    this.once('end', cancel);
    return (super.connect.bind(this) as (...all: unknown[]) => never)(...given);
  }

  override query(...given: unknown[]): never {
    const [text, values] = given;
    this.#writes.expectWrite();
    // Until the client emits 'drain': then no statement is in progress.
    this.busySinceMs ??= performance.now();
    const query = super.query.bind(this) as (...all: unknown[]) => never;
    if (typeof text !== 'string') return query(...given);
    const answer = text.startsWith(PREPARED_TEXT)
      ? query({ name: nameOf(text), text, values })
      : query(...given);
    const own = WITHIN_TEXT.exec(text)?.[1];
    const msMax = own === undefined ? this.#limits.answerMsMax : Number(own);
    return msMax === undefined ? answer : (this.#endUnlessAnswered(answer, msMax) as never);
  }

  /** `pg` waits for the statements in progress of a pipelined connection. One that never ends is why it is ended. */
  override end(...given: unknown[]): never {
    if (this.busySinceMs !== undefined) (this as { pipeline: boolean }).pipeline = false;
    return (super.end.bind(this) as (...all: unknown[]) => never)(...given);
  }

  /** `pg` has it; its types leave it out. */
  #socket(): Duplex {
    return (this as unknown as { connection: { stream: Duplex } }).connection.stream;
  }

  /**
   * If packets are dropped, this end gets no error: TCP resends unconfirmed packets for a quarter of an hour. `pg`'s
   * own `query_timeout` gives up the answer but keeps the connection, and the next statement would wait behind this
   * one. `end()` closes the socket of a client whose statement is in progress, without a goodbye.
   */
  async #endUnlessAnswered(answer: Promise<unknown>, msMax: number): Promise<unknown> {
    let isLate = false;
    const cancel = afterRunning(msMax, () => {
      isLate = true;
      void this.end();
    });
    try {
      return await answer;
    } catch (error) {
      if (!isLate) throw error;
      throw new Error(`Connection terminated: Postgres did not answer in ${msMax} ms`, {
        cause: error,
      });
    } finally {
      cancel();
    }
  }
}

function nameOf(text: string): string {
  let name = preparedNames.get(text);
  if (name === undefined) {
    name = `prepared_${preparedNames.size + 1}`;
    preparedNames.set(text, name);
  }
  return name;
}
