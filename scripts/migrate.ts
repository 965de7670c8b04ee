/**
 * `npm run migrate`: brings the database of `DATABASE_URL` to this version, queues and the services' roles included. On
 * the coordinator of Citus it also puts missing tables on the nodes.
 */
import { grantDatabaseRoles } from '@sluice/database/schema/database-roles';
import { distribute, requireCoordinator } from '@sluice/database/schema/distribute';
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
    await requireCoordinator(database);
    const { applied } = await readSchemaState(database);
    const all = Object.keys(MIGRATIONS).filter((name) => !applied.includes(name)).length;
    const progress = startProgress('migrating', 'migrations', { silentMs: 2_000 });
    let begun = 0;
    const names = await migrate(database, MIGRATIONS, () => progress.report(begun++, all)).finally(
      () => progress.end(),
    );
    await migrateQueues(settings.DATABASE_URL);
    const distributed = await distribute(database, (table) => {
      if (!values.json) console.log(`distributing ${table}`);
    });
    const roles = await grantDatabaseRoles(database);
    if (roles.outcome === 'not-allowed')
      // Everything works without them, with the owner's login.
      console.error(
        `this user may not make the roles of the services, so they use the login of DATABASE_URL. To have the roles, run as a superuser, then migrate again: ${roles.statements}`,
      );
    if (values.json)
      return console.log(
        JSON.stringify({ migrated: names, ...(distributed.length > 0 && { distributed }) }),
      );
    console.log(names.length === 0 ? 'already up to date' : `migrated: ${names.join(', ')}`);
    if (distributed.length > 0) console.log(`distributed: ${distributed.join(', ')}`);
  },
  // It makes it.
  () => Promise.resolve(),
);
