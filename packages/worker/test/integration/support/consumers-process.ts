/** A process of several workers for `many-workers.test.ts`: consumers with the real processing of commit batches. */
import { createDatabase } from '@sluice/database/connection/connection';
import { NumberStock } from '@sluice/database/people/numbers';
import { createLogger } from '@sluice/platform/process/logger';
import { createIdGenerator } from '@sluice/platform/process/new-id';
import { startConsumers } from '@sluice/platform/consumers/queue-consumers';
import { processCommitBatch } from '../../../src/events/process-commit-batch.ts';
import { TakenIdWatch } from '../../../src/events/taken-id-watch.ts';

const { DATABASE_URL = '', REDIS_URL, QUEUE_PREFIX = '', SHARD_COUNT, WORKERS } = process.env;
const logger = createLogger('workers', 'info');
const now = Date.now;
const database = createDatabase({
  url: DATABASE_URL,
  poolMax: 3,
  applicationName: 'workers',
  onError: () => undefined,
});
const deps = {
  database,
  numbers: new NumberStock(),
  takenIds: new TakenIdWatch(),
  newId: createIdGenerator(now),
  now,
};
const consumers = await Promise.all(
  Array.from({ length: Number(WORKERS) }, () =>
    startConsumers(
      {
        databaseUrl: DATABASE_URL,
        redisUrl: REDIS_URL,
        prefix: QUEUE_PREFIX,
        shardCount: Number(SHARD_COUNT),
        stalledAfterMs: 1_500,
        logger,
      },
      {
        async processCommitBatch(commitBatch) {
          logger.info({ took: commitBatch.id }, 'envelope');
          await processCommitBatch(deps, commitBatch);
          return { outcome: 'done' };
        },
        wakeLane: () => Promise.resolve({ outcome: 'done' }),
        laneConcurrency: 1,
        now,
      },
    ),
  ),
);
process.once('SIGTERM', () => {
  void Promise.all(consumers.map((each) => each.close()))
    .then(() => database.destroy())
    .then(() => process.exit(0));
});
// The starting test waits for this line.
logger.info({ port: 0 }, 'workers are running');
