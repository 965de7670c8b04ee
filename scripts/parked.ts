/** `npm run parked -- list|retry`: operations that a fault of ours kept from being applied. */
import { createDatabase, type Database } from '@sluice/database/connection';
import { listParkedOperations } from '@sluice/database/parked-operations';
import { reasonOf } from '@sluice/domain/errors';
import { parseSettings, platformSettings } from '@sluice/platform/config';
import { createLogger } from '@sluice/platform/logger';
import { openProducer } from '@sluice/platform/queue';
import { retryParked } from '@sluice/worker/retry-parked';
import type { z } from 'zod';

const SHOWN_MAX = 100;

const [, , action] = process.argv;
if (action !== 'list' && action !== 'retry') {
  console.error('usage: npm run parked -- list|retry (the settings are those of a worker)');
  process.exit(2);
}
try {
  await (action === 'list' ? list() : retry());
} catch (error) {
  console.error(reasonOf(error));
  process.exitCode = 1;
}

async function list(): Promise<void> {
  await withDatabase(async (database) => {
    for (const parked of await listParkedOperations(database, SHOWN_MAX))
      console.log(JSON.stringify(parked));
  });
}

async function retry(): Promise<void> {
  await withDatabase(async (database, settings) => {
    const producer = await openProducer({
      databaseUrl: settings.DATABASE_URL,
      redisUrl: settings.REDIS_URL,
      prefix: settings.QUEUE_PREFIX,
      shardCount: settings.SHARD_COUNT,
      logger: createLogger('parked', settings.LOG_LEVEL),
    });
    try {
      console.log(`queued again: ${await retryParked(database, producer, settings.SHARD_COUNT)}`);
    } finally {
      // Its connections would keep the program from ending.
      await producer.close();
    }
  });
}

async function withDatabase(
  act: (database: Database, settings: z.infer<typeof platformSettings>) => Promise<void>,
): Promise<void> {
  const settings = parseSettings(platformSettings, process.env);
  const database = createDatabase({
    url: settings.DATABASE_URL,
    poolMax: 1,
    applicationName: 'sluice-parked',
    onError: (error) => console.error(error.message),
  });
  try {
    await act(database, settings);
  } finally {
    await database.destroy();
  }
}
