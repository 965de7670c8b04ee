/**
 * Asks Sentinels for the replicas and the master of their set.
 *
 * The client knows some Sentinels by its URL and the others from them. A connection for each question: they are asked
 * every few seconds, and a Sentinel that hangs or is gone must not delay the next question.
 */
import { Redis } from 'ioredis';

/** The view of all Sentinels that answered. */
export interface SentinelView {
  /** Listed replicas, up or down: each of them may become master. */
  readonly replicaCount: number;
  /** `run_id` of the master that a majority of all Sentinels sees up. Null without one, and while a failover runs. */
  readonly masterRunId: string | null;
}

/** Of one Sentinel. */
interface SentinelAnswer {
  /** Of the Sentinel itself. */
  readonly id: string;
  readonly master: ReadonlyMap<string, string>;
  readonly replicaCount: number;
  readonly others: readonly { readonly id: string; readonly address: Address }[];
}
interface Address {
  readonly host: string;
  readonly port: number;
}

const TIMEOUT_MS = 1_000;
const DEFAULT_PORT = 26_379;

/** A list of replicas changes when an operator adds one; the old list serves meanwhile. */
const LATEST_AGE_MS_MAX = 5_000;
/** A master must be silent for longer until another one takes its place. */
const RECENT_AGE_MS_MAX = 500;

/** Views of the Sentinels of one set, kept for a while. */
export class SentinelViews {
  readonly #redis: Redis;
  readonly #monotonicNow: () => number;
  #last: { readonly view: SentinelView; readonly atMs: number } | undefined;
  #reading: Promise<SentinelView> | undefined;

  /** @param redis - as for {@link readSentinels}. */
  constructor(redis: Redis, monotonicNow: () => number) {
    this.#redis = redis;
    this.#monotonicNow = monotonicNow;
  }

  /** The last one. It is read anew for the next caller if it is older than 5 s. */
  async latest(): Promise<SentinelView> {
    if (!this.#last) return this.#read();
    if (this.#ageMs() > LATEST_AGE_MS_MAX) void this.#read().catch(() => undefined);
    return this.#last.view;
  }

  /** One that is half a second old at most. */
  async recent(): Promise<SentinelView> {
    return this.#last && this.#ageMs() < RECENT_AGE_MS_MAX ? this.#last.view : this.#read();
  }

  #ageMs(): number {
    return this.#monotonicNow() - (this.#last?.atMs ?? -Infinity);
  }

  #read(): Promise<SentinelView> {
    const atMs = this.#monotonicNow();
    this.#reading ??= readSentinels(this.#redis)
      .then((view) => {
        this.#last = { view, atMs };
        return view;
      })
      .finally(() => (this.#reading = undefined));
    return this.#reading;
  }
}

/**
 * @param redis - a client that follows the master that Sentinels name.
 * @throws Error if all of them fail: they are away, or the user may not run `SENTINEL`.
 */
async function readSentinels(redis: Redis): Promise<SentinelView> {
  const answers = new Map<string, SentinelAnswer>();
  let failure: unknown;
  const askAll = async (addresses: readonly Address[]): Promise<void> => {
    const found = await Promise.allSettled(addresses.map((address) => ask(redis, address)));
    for (const each of found)
      if (each.status === 'fulfilled') answers.set(each.value.id, each.value);
      else failure = each.reason;
  };
  await askAll(
    (redis.options.sentinels ?? []).map(({ host = '127.0.0.1', port = DEFAULT_PORT }) => ({
      host,
      port,
    })),
  );
  const others = new Map(
    [...answers.values()].flatMap((answer) =>
      answer.others.map(({ id, address }) => [id, address]),
    ),
  );
  await askAll([...others].flatMap(([id, address]) => (answers.has(id) ? [] : [address])));
  if (answers.size === 0)
    throw new Error('no Sentinel lists the replicas of the master', { cause: failure });
  return viewOf([...answers.values()]);
}

function viewOf(answers: readonly SentinelAnswer[]): SentinelView {
  const sentinelCount = Math.max(...answers.map(({ others }) => 1 + others.length));
  const counts = new Map<string, number>();
  for (const { master } of answers)
    if (master.get('flags') === 'master') {
      const runId = master.get('runid') ?? '';
      counts.set(runId, (counts.get(runId) ?? 0) + 1);
    }
  const isFailover = answers.some(({ master }) =>
    (master.get('flags') ?? '').includes('failover_in_progress'),
  );
  const [agreed] = [...counts].find(([, count]) => count > sentinelCount / 2) ?? [];
  return {
    replicaCount: Math.max(...answers.map(({ replicaCount }) => replicaCount)),
    masterRunId: isFailover ? null : (agreed ?? null),
  };
}

async function ask({ options }: Redis, { host, port }: Address): Promise<SentinelAnswer> {
  const { sentinelUsername, sentinelPassword, name, enableTLSForSentinelMode, sentinelTLS } =
    options;
  const sentinel = new Redis({
    host,
    port,
    lazyConnect: true,
    enableReadyCheck: false,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    connectTimeout: TIMEOUT_MS,
    commandTimeout: TIMEOUT_MS,
    ...(sentinelUsername !== undefined && { username: sentinelUsername }),
    ...(sentinelPassword !== undefined && { password: sentinelPassword }),
    ...(enableTLSForSentinelMode && { tls: sentinelTLS ?? {} }),
  });
  // The command has the same error.
  sentinel.on('error', () => undefined);
  const run = (word: string, ...words: string[]) => sentinel.call('SENTINEL', word, ...words);
  try {
    await sentinel.connect();
    const set = name ?? '';
    const [id, master, replicas, others] = await Promise.all([
      run('MYID'),
      run('MASTER', set),
      run('REPLICAS', set),
      run('SENTINELS', set),
    ]);
    return {
      id: String(id),
      master: fieldsOf(master),
      replicaCount: (replicas as unknown[]).length,
      others: (others as unknown[]).map(fieldsOf).map((fields) => ({
        id: fields.get('runid') ?? '',
        address: { host: fields.get('ip') ?? '', port: Number(fields.get('port')) },
      })),
    };
  } finally {
    sentinel.disconnect();
  }
}

/** Of an answer that has names and values by turns. */
function fieldsOf(answer: unknown): ReadonlyMap<string, string> {
  const words = answer as string[];
  return new Map(
    words.flatMap((word, index) => (index % 2 === 0 ? [[word, words[index + 1] ?? '']] : [])),
  );
}
