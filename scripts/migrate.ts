/** `npm run migrate`: brings the database of `DATABASE_URL` to this version, queues included. */
import { createDatabase } from '@sluice/database/connection';
import { requireDatabase } from '@sluice/database/database-away';
import { migrate } from '@sluice/database/migrate';
import { reasonOf } from '@sluice/domain/errors';
import { migrateQueues } from '@sluice/platform/queue';

const url = process.env['DATABASE_URL'];
if (url === undefined || url === '') {
  console.error('DATABASE_URL is not set: DATABASE_URL=postgres://… npm run migrate');
  process.exit(1);
}
const database = createDatabase({
  url,
  poolMax: 1,
  applicationName: 'sluice-migrate',
  onError: (error) => console.error(error.message),
});
try {
  await requireDatabase(database);
  const names = await migrate(database);
  await migrateQueues(url);
  console.log(names.length === 0 ? 'already up to date' : `migrated: ${names.join(', ')}`);
} catch (error) {
  console.error(reasonOf(error));
  process.exitCode = 1;
} finally {
  await database.destroy();
}
