/** Brings a database to where the services can use it: schema, queues, and the demo workspace or its absence. */
import { createDatabase } from '@sluice/database/connection/connection';
import { requireDatabase } from '@sluice/database/connection/database-away';
import { migrate } from '@sluice/database/schema/migrate';
import { revokeDemoCredentials, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { migrateQueues } from '@sluice/platform/queue/queue';

export const APPLICATION_NAME = 'sluice-standalone';
/** One that is silent is told of within five seconds of the start. */
const CONNECT_MS_MAX = 3_000;

/**
 * May be run at every start.
 *
 * @throws AppError DATABASE_UNAVAILABLE, MIGRATION_MISMATCH
 */
export async function prepareDatabase(url: string, hasDemo: boolean): Promise<void> {
  const database = createDatabase({
    url,
    poolMax: 2,
    applicationName: APPLICATION_NAME,
    connectMsMax: CONNECT_MS_MAX,
    // A statement that fails because of it says so itself.
    onError: () => {},
  });
  try {
    await requireDatabase(database);
    await migrate(database);
    if (hasDemo) await seedDemoWorkspace(database);
    else await revokeDemoCredentials(database);
  } finally {
    await database.destroy();
  }
  await migrateQueues(url);
}
