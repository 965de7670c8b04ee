/** `npm run migrate`: brings the database of `DATABASE_URL` to this version, queues included. */
import { migrate, MIGRATIONS } from '@sluice/database/schema/migrate';
import { readSchemaState } from '@sluice/database/schema/schema-version';
import { migrateQueues } from '@sluice/platform/queue/queue';
import { actOnDatabase, databaseSettings, readWords } from './act-on-database.ts';
import { startProgress } from './progress.mjs';

const { values } = readWords('usage: sluice migrate [--json]', {
  options: { json: { type: 'boolean', default: false } },
});
await actOnDatabase(
  'migrate',
  databaseSettings,
  async (database, settings) => {
    const { applied } = await readSchemaState(database);
    const all = Object.keys(MIGRATIONS).filter((name) => !applied.includes(name)).length;
    const progress = startProgress('migrating', 'migrations', { silentMs: 2_000 });
    let begun = 0;
    const names = await migrate(database, MIGRATIONS, () => progress.report(begun++, all)).finally(
      () => progress.end(),
    );
    await migrateQueues(settings.DATABASE_URL);
    if (values.json) return console.log(JSON.stringify({ migrated: names }));
    console.log(names.length === 0 ? 'already up to date' : `migrated: ${names.join(', ')}`);
  },
  // It makes it.
  () => Promise.resolve(),
);
