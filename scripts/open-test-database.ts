/** `npm run database:open -- <folder>`: serves the databases that a failed test run kept, until Ctrl-C. */
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { startEmbeddedPostgres } from '@sluice/database/embedded/embedded-postgres';
import { dataLink } from '@sluice/database/embedded/postgres-cluster';

const [, , directory] = process.argv;
if (directory === undefined) {
  console.error('usage: npm run database:open -- <folder that the test run named>');
  process.exit(2);
}
// Otherwise Postgres would make a new, empty database in a folder without one.
if (!existsSync(dataLink(directory))) {
  console.error(`${directory} holds no databases; take the folder that the test run named`);
  process.exit(2);
}
const postgres = await startEmbeddedPostgres({
  directory,
  durability: 'full',
  onProgress: console.error,
});
console.log(
  `postgres is up: ${postgres.url('DATABASE')}\nCtrl-C stops it; remove ${directory} when done`,
);
await once(process, 'SIGINT');
await postgres.stop();
