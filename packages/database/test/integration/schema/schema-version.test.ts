/** Old and new versions against one schema: the ones that may run, and the advice to the others. */
import { sql, type Kysely } from 'kysely';
import { expect, test } from 'vitest';
import { migrate, MIGRATIONS } from '../../../src/schema/migrate.ts';
import { checkSchema, type SchemaStep } from '../../../src/schema/schema-version.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

const step = (statement: string, oldestCode?: string): SchemaStep => ({
  async up(database: Kysely<unknown>) {
    await sql.raw(statement).execute(database);
  },
  ...(oldestCode !== undefined && { oldestCode }),
});

/** Three releases of one change: a column is added, the old one is no longer used, it is taken away. */
const RELEASE_1 = MIGRATIONS;
const RELEASE_2 = {
  ...RELEASE_1,
  '9001_expand': step('alter table users add column nickname text'),
};
const RELEASE_3 = { ...RELEASE_2, '9002_unused': step('select 1') };
const RELEASE_4 = {
  ...RELEASE_3,
  '9003_contract': step('alter table users drop column nickname', '9002_unused'),
};

test('a schema that is ahead only by additions serves old and new code', async () => {
  const { database } = await createTestDatabase();
  const begun: string[] = [];
  const migrated = await migrate(database, RELEASE_2, (name) => void begun.push(name));
  expect(migrated).toEqual(['9001_expand']);
  expect(begun).toEqual(migrated);
  await expect(checkSchema(database, Object.keys(RELEASE_1))).resolves.toBeUndefined();
  await expect(checkSchema(database, Object.keys(RELEASE_2))).resolves.toBeUndefined();
});

test('code that is ahead of the schema does not start, and the error asks for a migration', async () => {
  const { database } = await createTestDatabase();
  await expect(checkSchema(database, Object.keys(RELEASE_3))).rejects.toMatchObject({
    code: 'MIGRATION_MISMATCH',
    message: expect.stringMatching(/behind.*9001_expand, 9002_unused.*npm run migrate/),
  });
});

test('a schema from which something was taken away refuses code that still uses it, and no other', async () => {
  const { database } = await createTestDatabase();
  await migrate(database, RELEASE_4);
  for (const tooOld of [RELEASE_1, RELEASE_2]) {
    const refused = {
      code: 'MIGRATION_MISMATCH',
      message: expect.stringMatching(/ahead.*knows 9002_unused.*newer version/),
    };
    await expect(checkSchema(database, Object.keys(tooOld))).rejects.toMatchObject(refused);
    await expect(migrate(database, tooOld)).rejects.toMatchObject(refused);
  }
  await expect(checkSchema(database, Object.keys(RELEASE_3))).resolves.toBeUndefined();
  await expect(checkSchema(database, Object.keys(RELEASE_4))).resolves.toBeUndefined();
});

test('an older version that migrates again leaves the schema as it is', async () => {
  const { database } = await createTestDatabase();
  await migrate(database, RELEASE_2);
  expect(await migrate(database, RELEASE_1)).toEqual([]);
  await expect(checkSchema(database, Object.keys(RELEASE_2))).resolves.toBeUndefined();
});

test('a migration that fails leaves no demand behind', async () => {
  const { database } = await createTestDatabase();
  const broken = { ...RELEASE_1, '9001_broken': step('select 1 / 0', '9001_broken') };
  await expect(migrate(database, broken)).rejects.toMatchObject({ code: 'MIGRATION_MISMATCH' });
  await expect(checkSchema(database, Object.keys(RELEASE_1))).resolves.toBeUndefined();
});

test('an empty database is behind, not broken', async () => {
  const { database } = await createTestDatabase();
  await sql`drop schema public cascade; create schema public`.execute(database);
  await expect(checkSchema(database)).rejects.toMatchObject({ code: 'MIGRATION_MISMATCH' });
});
