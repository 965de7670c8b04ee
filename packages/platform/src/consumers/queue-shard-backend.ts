/**
 * Waiting for commit batches of a shard, taking and ending them: BullMQ's own backends with one part changed in each.
 *
 * - **Postgres: the wait.** BullMQ's ends as soon as a job waits. While one worker had the shard, every other asked, was refused and
 *   asked again: 46 transactions for each commit batch with four workers. This wait ends when the shard is free. The worker that
 *   took the last commit batch looks at once, and the others a quarter of a second later. The worker parses a job once.
 * - **Redis: the scripts.** BullMQ's look for delays, priorities, rate limits, parents and deduplication, and write job events. The
 *   script that takes a job gives a sign of another one, so each worker asked twice. All other operations are BullMQ's.
 *
 * Before: `queue.ts` adds. After: `queue-workers.ts`, whose workers of shards have one each.
 */
import {
  createRedisBackend,
  PostgresConnection,
  PostgresQueueBackend,
  raw2NextJobData,
  type BackendFactory,
  type RedisQueueBackend,
} from 'bullmq';
import pg from 'pg';
import type { RedisClient } from '../redis/redis-client.ts';
import { isShardFree } from '../queue/queue-heads.ts';
import { JOB_CHANNEL, type JobSigns } from './job-signs.ts';

type Connection = ConstructorParameters<typeof PostgresConnection>[0];
type Found = Awaited<ReturnType<PostgresQueueBackend['waitForJob']>>;

const OTHERS_LOOK_AFTER_MS = 250;

class ShardBackend extends PostgresQueueBackend {
  /** True until another worker takes a commit batch after us. */
  #isOurs = true;
  readonly #signs: JobSigns;
  readonly #texts: TextPool;
  #isInterrupted = false;
  #endWait = (): void => {};

  constructor(
    signs: JobSigns,
    texts: TextPool,
    ...options: ConstructorParameters<typeof PostgresQueueBackend>
  ) {
    super(...options);
    this.#signs = signs;
    this.#texts = texts;
  }

  override async moveToActive(token: string, name?: string): Promise<unknown[]> {
    const taken: unknown[] = await super.moveToActive(token, name);
    this.#isOurs = taken[0] !== null;
    return this.#texts.complete(taken);
  }

  override async moveToCompleted<Data, Result, Name extends string>(
    ...given: Parameters<typeof PostgresQueueBackend.prototype.moveToCompleted<Data, Result, Name>>
  ): ReturnType<PostgresQueueBackend['moveToCompleted']> {
    const ended = await super.moveToCompleted(...given);
    if (ended.result) this.#texts.complete(ended.result);
    return ended;
  }

  override async waitForJob(timeoutSeconds: number): Promise<Found> {
    if (this.#isInterrupted) return null;
    await this.#signs.listen();
    if (this.#isInterrupted) return null;
    return this.#untilFree(timeoutSeconds);
  }

  #untilFree(timeoutSeconds: number): Promise<Found> {
    return new Promise((resolve) => {
      let look: NodeJS.Timeout | undefined;
      let isOver = false;
      const end = (found: Found): void => {
        // A look that comes back late must not end the next wait.
        if (isOver) return;
        isOver = true;
        clearTimeout(timeout);
        clearTimeout(look);
        endHearing();
        this.#endWait = () => {};
        resolve(found);
      };
      const lookSoon = (): void => {
        look ??= setTimeout(
          () => {
            look = undefined;
            isShardFree(this.connection.pool, this.queueName).then(
              (isFree) => isFree && end({ member: this.queueName, score: 0 }),
              // The next worker that takes a job meets the error.
              () => end(null),
            );
          },
          this.#isOurs ? 0 : OTHERS_LOOK_AFTER_MS,
        );
      };
      const timeout = setTimeout(end, timeoutSeconds * 1_000, null);
      this.#endWait = () => end(null);
      const endHearing = this.#signs.wait(this.queueName, {
        onSign: lookSoon,
        onLost: () => end(null),
      });
      // A job may have come before we listened.
      lookSoon();
    });
  }

  override async disconnectBlocking(isToWait?: boolean): Promise<void> {
    this.#isInterrupted = true;
    this.#endWait();
    await super.disconnectBlocking(isToWait);
  }

  override async reconnectBlocking(): Promise<void> {
    this.#isInterrupted = false;
    await super.reconnectBlocking();
  }

  /** Publishes that the shard is free, when a worker ends its last commit batch and does not take the next one. */
  override async close(isForced?: boolean): Promise<void> {
    this.#endWait();
    if (!isForced && !this.closing) {
      await this.connection.pool
        .query('select pg_notify($1, $2)', [JOB_CHANNEL, this.queueName])
        .catch(() => undefined);
    }
    await super.close(isForced);
  }
}

/** Statements of BullMQ that take a job. */
const TAKES_JOB = /\bmove_to_(?:active|completed_fetch)\(/;

/**
 * Pool that keeps the data of a job that is taken as the text that Postgres sent. BullMQ writes a parsed value as text, and
 * parses that: 2.7 µs an event with the first parsing, and one parsing takes 0.9 (EPYC, 2026-11-27, commit batches of
 * 1,000).
 */
class TextPool {
  readonly pool: pg.Pool;
  /** By the id of the job, until `complete`. */
  readonly #texts = new Map<string, string>();

  constructor(pool: pg.Pool) {
    const query = (text: string, values?: unknown[]): Promise<pg.QueryResult> =>
      TAKES_JOB.test(text) ? this.#takeJob(pool, text, values) : pool.query(text, values);
    this.pool = new Proxy(pool, {
      get: (target, key) => (key === 'query' ? query : Reflect.get(target, key, target)),
    });
  }

  /** Gives the data to the job of an answer of BullMQ. @param answer - the job, or null, and more. */
  complete(answer: unknown[]): unknown[] {
    const job = answer[0] as { id: string; data: string } | null;
    const text = job ? this.#texts.get(job.id) : undefined;
    if (!job || text === undefined) return answer;
    job.data = text;
    this.#texts.delete(job.id);
    return answer;
  }

  async #takeJob(pool: pg.Pool, text: string, values: unknown[] = []): Promise<pg.QueryResult> {
    const types = { getTypeParser: parserOf };
    const result = await pool.query<Record<string, unknown>>({ text, values, types });
    const jsonNames = result.fields
      .filter(({ name, dataTypeID }) => dataTypeID === JSONB && name !== 'data')
      .map(({ name }) => name);
    for (const row of result.rows) {
      for (const name of jsonNames)
        if (typeof row[name] === 'string') row[name] = JSON.parse(row[name]);
      this.#texts.set(row.id as string, row.data as string);
      row.data = {};
    }
    return result;
  }
}

const JSONB: number = pg.types.builtins.JSONB;
const keepText = (text: string): string => text;

const parserOf: typeof pg.types.getTypeParser = (
  ...given: Parameters<typeof pg.types.getTypeParser>
) => (given[0] === pg.types.builtins.JSONB ? keepText : pg.types.getTypeParser(...given));

/**
 * For `withBackend`: only for queues whose global concurrency is 1. Its workers use `pool`, with any connection that they
 * are given.
 */
export const createShardBackend =
  (signs: JobSigns, pool: pg.Pool): BackendFactory<PostgresQueueBackend, Connection> =>
  (name, options) => {
    const texts = new TextPool(pool);
    // BullMQ takes a pool, by a type of its own.
    const connection = new PostgresConnection(texts.pool as object as Connection);
    return new ShardBackend(signs, texts, connection, name, options);
  };

/**
 * Takes the next job, as BullMQ's `moveToActive` leaves it but for its counters. A job without its hash was
 * deleted by hand and is dropped. KEYS: the waiting jobs, the active jobs, settings, BullMQ's prefix of all keys of the queue.
 * Of ARGV the first two: the lock's token and how long it lasts, milliseconds.
 */
const TAKE = `
  local function take()
    local isPaused, concurrency = unpack(redis.call('HMGET', KEYS[3], 'paused', 'concurrency'))
    if isPaused then return end
    if concurrency and redis.call('LLEN', KEYS[2]) >= tonumber(concurrency) then return end
    while true do
      local id = redis.call('RPOPLPUSH', KEYS[1], KEYS[2])
      if not id then return end
      local job = redis.call('HGETALL', KEYS[4] .. id)
      if #job > 0 then
        redis.call('SET', KEYS[4] .. id .. ':lock', ARGV[1], 'PX', ARGV[2])
        return {job, id}
      end
      redis.call('LREM', KEYS[2], 1, id)
    end
  end`;
const TAKE_SCRIPT = `${TAKE}
  return take()`;
/**
 * Ends a job under its lock, as BullMQ's `moveToFinished` does for a job that is not kept, and takes the next one if it is to.
 * Answers with BullMQ's codes if the job is not the caller's: -1 no such job, -2 no lock, -6 the lock of another, -3 not in
 * progress. KEYS: as above, and the marks of the check of stalled jobs. ARGV: as above, the job's id, whether to take the next.
 */
const END_SCRIPT = `${TAKE}
  local job = KEYS[4] .. ARGV[3]
  if redis.call('EXISTS', job) == 0 then return -1 end
  local token = redis.call('GET', job .. ':lock')
  if token ~= ARGV[1] then return token and -6 or -2 end
  redis.call('SREM', KEYS[5], ARGV[3])
  local removed = redis.call('LREM', KEYS[2], -1, ARGV[3])
  if removed < 1 then
    redis.call('DEL', job .. ':lock')
    return -3
  end
  redis.call('DEL', job, job .. ':lock')
  if ARGV[4] == '1' then return take() end`;

type TakenJob = [job: (string | number)[], id: string] | null;

interface ShardScripts {
  takeShardJob(...given: (string | number)[]): Promise<TakenJob>;
  endShardJob(...given: (string | number)[]): Promise<TakenJob | number>;
}

/** An answer without a job, in BullMQ's form. */
const NOTHING_TAKEN = [0, 0, 0, 0];

/**
 * For workers of queues whose global concurrency is 1 and whose jobs are commit batches.
 *
 * @param redis - the connection for commands.
 * @param onTaking - called as a worker asks for a job; its own commands leave in the same write.
 */
export function createRedisShardBackend(
  redis: RedisClient,
  onTaking: () => void,
): BackendFactory<RedisQueueBackend> {
  redis.defineCommand('takeShardJob', { lua: TAKE_SCRIPT, numberOfKeys: 4 });
  redis.defineCommand('endShardJob', { lua: END_SCRIPT, numberOfKeys: 5 });
  const scripts = redis as unknown as ShardScripts;
  return (name, options, factoryOptions) => {
    const backend = createRedisBackend(name, options, factoryOptions);
    const { keys } = backend;
    const queueKeys = [keys['wait'], keys['active'], keys['meta'], keys['']] as string[];
    const stalledKey = keys['stalled'] as string;
    const { lockDuration = 0 } = options as { lockDuration?: number };
    const nextOf = (taken: TakenJob): ReturnType<typeof raw2NextJobData> | typeof NOTHING_TAKEN => {
      if (!taken) return NOTHING_TAKEN;
      const [job, id] = taken;
      // The lock lasts from now. Only BullMQ in this process reads it, so Redis does not keep it.
      return raw2NextJobData([[...job, 'processedOn', Date.now()], id, 0, 0]);
    };
    return Object.assign(backend, {
      async moveToActive(token: string) {
        const taking = scripts.takeShardJob(...queueKeys, token, lockDuration);
        onTaking();
        return nextOf(await taking);
      },
      async moveToCompleted(
        { id = '' }: { readonly id?: string },
        _: unknown,
        __: unknown,
        token: string,
        takesNext: boolean,
      ) {
        const finishedOn = Date.now();
        const isNextWanted = takesNext && !backend.closing ? '1' : '0';
        const ended = await scripts.endShardJob(
          ...queueKeys,
          stalledKey,
          token,
          lockDuration,
          id,
          isNextWanted,
        );
        if (typeof ended === 'number')
          throw backend.finishedErrors({ code: ended, jobId: id, command: 'end', state: 'active' });
        return { result: isNextWanted === '1' ? nextOf(ended) : 0, finishedOn };
      },
    });
  };
}
