/** `npm run migrate`: brings the database of `DATABASE_URL` to this version, queues included. */
import { migrate, MIGRATIONS } from '@sluice/database/schema/migrate';
import { migrateQueues } from '@sluice/platform/queue/queue';
import { actOnDatabase, databaseSettings, readWords } from './act-on-database.ts';

const { values } = readWords('usage: sluice migrate [--json]', {
  options: { json: { type: 'boolean', default: false } },
});
await actOnDatabase(
  'migrate',
  databaseSettings,
  async (database, settings) => {
    const names = await migrate(database, MIGRATIONS, (name) => console.error(name));
    await migrateQueues(settings.DATABASE_URL);
    if (values.json) return console.log(JSON.stringify({ migrated: names }));
    console.log(names.length === 0 ? 'already up to date' : `migrated: ${names.join(', ')}`);
  },
  // It makes it.
  () => Promise.resolve(),
);
