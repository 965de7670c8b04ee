/** The embedded Postgres of `npm start`, when it ends without being asked to. */
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDatabase } from '@sluice/database/connection/connection';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';
import { keepPostgres } from '../../src/keep-postgres.ts';

const WAIT = { timeout: 90_000, interval: 50 };

test('a killed Postgres starts again at the same address, with its data, and notes report its end and its return', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-test-kept-'));
  // Postgres' account must pass through.
  await chmod(directory, 0o711);
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const notes: string[] = [];
  const postgres = await keepPostgres('kept', {
    directory,
    memoryBytes: 1_000_000_000,
    onProgress: () => {},
    onNote: (line) => void notes.push(line),
  });
  onTestFinished(() => postgres.stop());
  const database = createDatabase({
    url: postgres.url,
    poolMax: 1,
    applicationName: 'test',
    onError: () => {},
  });
  onTestFinished(() => database.destroy());
  await sql`create table kept as select 1 as one`.execute(database);
  const pidFile = await readFile(join(directory, 'postgres', 'postmaster.pid'), 'utf8');
  process.kill(Number(pidFile.split('\n')[0]), 'SIGKILL');
  await vi.waitFor(() => expect(notes.at(-1)).toBe('Postgres is there again'), WAIT);
  expect(notes[0]).toContain('Postgres ended');
  const { rows } = await sql`select one from kept`.execute(database);
  expect(rows).toEqual([{ one: 1 }]);
}, 240_000);
