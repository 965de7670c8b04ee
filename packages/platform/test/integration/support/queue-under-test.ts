/** A queue for each test, with consumers that end with it. */
import type { BrokerOptions } from '@sluice/platform/queue/broker-options';
import {
  startConsumers,
  type ConsumerOptions,
  type Consumers,
} from '@sluice/platform/consumers/queue-consumers';
import type { Processors } from '@sluice/platform/consumers/queue-processors';
import type { JobOutcome } from '@sluice/platform/consumers/queue-shard-job';
import { createLogger } from '@sluice/platform/process/logger';
import { openProducer, type Producer } from '@sluice/platform/queue/queue';
import { uniquePrefix } from '@sluice/platform/testing/testing';
import { afterEach, beforeAll, beforeEach } from 'vitest';
import { ADD_MS_MAX } from './broker-world.ts';

export interface BrokerUnderTest {
  /** For `REDIS_URL`; undefined for Postgres. */
  readonly url: string | undefined;
  close(): Promise<void>;
}

export interface QueueUnderTest {
  readonly producer: Producer;
  readonly options: BrokerOptions;
  readonly brokerUrl: string | undefined;
  /** Begins to take jobs; each processor that is absent answers that its job is done. */
  consume(processors: Partial<Processors>, more?: Partial<ConsumerOptions>): Promise<Consumers>;
}

/** The broker is up all the time. It, this process or a start of workers may stand still for seconds. */
export const WAIT_MS = 30_000;

export const DONE: JobOutcome = { outcome: 'done' };
const NO_DATABASE = 'postgres://127.0.0.1:1/none';

/**
 * Called in a `describe`; the broker is opened once for all.
 *
 * @param openDatabase - makes one for each test, if the broker is Postgres.
 * @returns its address.
 */
export function useQueue(
  openBroker: () => Promise<BrokerUnderTest>,
  openDatabase: () => Promise<string> = () => Promise.resolve(NO_DATABASE),
): QueueUnderTest {
  let brokerUrl: string | undefined;
  let options: BrokerOptions;
  let producer: Producer;
  const opened: Consumers[] = [];

  const consume = async (
    processors: Partial<Processors>,
    more: Partial<ConsumerOptions> = {},
  ): Promise<Consumers> => {
    const consumers = await startConsumers(
      { ...options, ...more },
      {
        processCommitBatch: () => Promise.resolve(DONE),
        wakeLane: () => Promise.resolve(DONE),
        laneConcurrency: 4,
        now: Date.now,
        ...processors,
      },
    );
    opened.push(consumers);
    return consumers;
  };

  beforeAll(async () => {
    const broker = await openBroker();
    brokerUrl = broker.url;
    return () => broker.close();
  });
  beforeEach(async () => {
    options = {
      databaseUrl: await openDatabase(),
      redisUrl: brokerUrl,
      prefix: uniquePrefix(),
      shardCount: 2,
      logger: createLogger('test', 'silent'),
    };
    producer = await openProducer(options, ADD_MS_MAX);
  });
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((consumers) => consumers.close()));
    await producer.close();
  });

  return {
    consume,
    get producer() {
      return producer;
    },
    get options() {
      return options;
    },
    get brokerUrl() {
      return brokerUrl;
    },
  };
}
