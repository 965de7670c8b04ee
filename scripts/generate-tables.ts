/** `npm run database:types`: migrates an empty Postgres and writes the types of its tables. */
import { chmod, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDatabase } from '@sluice/database/connection';
import { startEmbeddedPostgres } from '@sluice/database/embedded-postgres';
import { generateTables } from '@sluice/database/generate-tables';
import { migrate } from '@sluice/database/migrate';

const TARGET = new URL('../packages/database/src/tables.ts', import.meta.url);

const directory = await mkdtemp(join(tmpdir(), 'sluice-types-'));
await chmod(directory, 0o711);
const postgres = await startEmbeddedPostgres({
  directory,
  durability: 'none',
  onProgress: console.error,
});
try {
  const database = createDatabase({
    url: postgres.url('postgres'),
    poolMax: 2,
    applicationName: 'generate tables',
    // A query that fails says so itself; an idle connection that the stopping server cuts off is no news.
    onError: () => {},
  });
  await migrate(database);
  await writeFile(TARGET, await generateTables(database));
  await database.destroy();
} finally {
  await postgres.remove();
  await rm(directory, { recursive: true, force: true });
}
console.log('packages/database/src/tables.ts is up to date');
