/** `npm run migrate`: brings the database of `DATABASE_URL` to this version, queues included. */
import { requireDatabase } from '@sluice/database/database-away';
import { migrate } from '@sluice/database/migrate';
import { migrateQueues } from '@sluice/platform/queue';
import { actOnDatabase, databaseSettings } from './act-on-database.ts';

await actOnDatabase('migrate', databaseSettings, async (database, settings) => {
  await requireDatabase(database);
  const names = await migrate(database);
  await migrateQueues(settings.DATABASE_URL);
  console.log(names.length === 0 ? 'already up to date' : `migrated: ${names.join(', ')}`);
});
