import { execFile } from 'node:child_process';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { createTestDatabase } from '@sluice/database/testing/testing';

test('each test database is migrated and separate from the others', async () => {
  const first = await createTestDatabase();
  const second = await createTestDatabase();
  await sql`insert into accounts (name) values ('only in the first')`.execute(first.database);
  const found = await sql`select from accounts`.execute(second.database);
  expect(found.rows).toEqual([]);
});

test('a client that a test forgets to close is named', async () => {
  const { default: pg } = await import('pg');
  const forgetful = await createTestDatabase();
  const client = new pg.Client({ connectionString: forgetful.url, application_name: 'forgotten' });
  client.on('error', () => {});
  await client.connect();
  await expect(forgetful.drop()).rejects.toThrow('forgotten');
});

test('the command for kept databases fails for a folder without databases and makes no files', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-nothing-kept-'));
  onTestFinished(() => rm(directory, { recursive: true }));
  const script = new URL('../../../../../scripts/open-test-database.ts', import.meta.url);
  await expect(
    promisify(execFile)(process.execPath, [fileURLToPath(script), directory]),
  ).rejects.toMatchObject({ code: 2, stderr: expect.stringContaining('holds no databases') });
  expect(await readdir(directory)).toEqual([]);
});
