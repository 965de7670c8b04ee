/** `sluice parked list|retry`, `npm run parked -- list|retry`: operations that a fault of ours kept from being applied. */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Database } from '@sluice/database/connection/connection';
import { listDeadLetteredOperations } from '@sluice/database/events/dead-lettered-operations';
import { printableJson } from '@sluice/domain/values/printable';
import { addingSettings, platformSettings } from '@sluice/platform/settings/config';
import { createLogger } from '@sluice/platform/process/logger';
import { openProducer } from '@sluice/platform/queue/queue';
import { retryDeadLettered } from '@sluice/worker/events/retry-dead-lettered';
import type { z } from 'zod';
import { actOnDatabase } from './act-on-database.ts';
import { startProgress } from './progress.mjs';

const SHOWN_MAX = 100;

const [, , action] = process.argv;
if (action !== 'list' && action !== 'retry') {
  console.error('usage: sluice parked list|retry (with the settings of a worker)');
  process.exit(2);
}
const parkedSettings = platformSettings.extend(addingSettings);
await actOnDatabase('parked', parkedSettings, action === 'list' ? list : retry);

async function list(database: Database): Promise<void> {
  const deadLettered = await listDeadLetteredOperations(database, SHOWN_MAX);
  for (const each of deadLettered) console.log(printableJson(each));
  if (deadLettered.length === 0) console.error('no dead-lettered operations');
}

async function retry(database: Database, settings: z.infer<typeof parkedSettings>): Promise<void> {
  const producer = await openProducer(
    {
      databaseUrl: settings.DATABASE_URL,
      redisUrl: settings.REDIS_URL,
      prefix: settings.QUEUE_PREFIX,
      shardCount: settings.SHARD_COUNT,
      logger: createLogger('parked', settings.LOG_LEVEL),
    },
    undefined,
    { fillPercentMax: settings.REDIS_FILL_PERCENT_MAX },
  );
  const progress = startProgress('queueing again', 'operations', { silentMs: 2_000 });
  try {
    const count = await retryDeadLettered(
      database,
      producer,
      settings.SHARD_COUNT,
      sleep,
      progress.report,
    ).finally(() => progress.end());
    console.log(`queued again: ${count}`);
  } finally {
    // Its connections would keep the program from ending.
    await producer.close();
  }
}
