import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { createTestDatabase } from '@sluice/database/testing';

test('each test database is migrated, and what is written to one is not in another', async () => {
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
