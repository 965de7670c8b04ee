/** A supervisor to be killed by the tests: `node run-embedded-postgres.ts <folder>`. */
import { startEmbeddedPostgres } from '@sluice/database/embedded/embedded-postgres';
import pg from 'pg';

const server = await startEmbeddedPostgres({
  directory: process.argv[2] as string,
  durability: 'none',
  onProgress: () => {},
});
async function answer(): Promise<void> {
  const client = new pg.Client({ connectionString: server.url('postgres') });
  await client.connect();
  await client.query('select 1');
  await client.end();
  process.stdout.write('interrupted; still answering\n');
}
process.on('SIGINT', () => void answer());
process.stdout.write('up\n');
