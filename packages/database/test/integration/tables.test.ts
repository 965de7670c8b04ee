import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { generateTables } from '@sluice/database/generate-tables';
import { createTestDatabase } from '@sluice/database/testing';

test('the table types are those of the migrated schema (npm run database:types brings them up to date)', async () => {
  const { database } = await createTestDatabase();
  const written = await readFile(new URL('../../src/tables.ts', import.meta.url), 'utf8');
  expect(written).toBe(await generateTables(database));
});
