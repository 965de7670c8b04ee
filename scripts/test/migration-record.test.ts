/** The check of migrations. It fails on a number twice, on a missing one, and on a change of a recorded one. */
import { describe, expect, test } from 'vitest';
import {
  changeProblems,
  hashOf,
  numberProblems,
  readRecord,
  unrecorded,
  writeRecord,
} from '../migration-record.ts';

const FIRST = ['0001_accounts', '0002_people'];

const migration = (sql: string) => `/** What it is for. */
import { sql, type Kysely } from 'kysely';

export const first = {
  async up(database) {
    // Why.
    await sql\`
      -- Of the first.
      ${sql}\`.execute(database);
  },
};
`;

describe('numbers', () => {
  test('one after the other are right', () => {
    expect(numberProblems([...FIRST, '0003_webhooks'])).toEqual([]);
  });

  test('a number that occurs twice fails, except the old pairs', () => {
    expect(numberProblems([...FIRST, '0002_events'])).toEqual([
      '0002_people: another migration has its number',
      '0002_events: another migration has its number',
    ]);
    const old = ['0008_imports', '0008_test_keys'];
    expect(numberProblems(old).filter((problem) => problem.includes('another'))).toEqual([]);
    expect(numberProblems([...old, '0008_more'])).toContain(
      '0008_more: another migration has its number',
    );
  });

  test('one that is left out fails', () => {
    expect(numberProblems([...FIRST, '0004_webhooks'])).toEqual([
      '0003: no migration has this number',
    ]);
  });
});

describe('a migration that is recorded', () => {
  const record = new Map([['0001_first', hashOf(migration('create table a (b int)'))]]);
  const problemsWith = (text: string) => changeProblems([{ name: '0001_first', text }], record);

  test('may import another file, and be commented and formatted anew', () => {
    const text = migration('create table\n  a (b int)')
      .replace('What it is for', 'The first table')
      .replace("'kysely'", "'kysely/kysely'")
      .replace('Why', 'Because')
      .replace('Of the first', 'Of it');
    expect(problemsWith(text)).toEqual([]);
  });

  test('fails if its statement changed, and if it is gone', () => {
    expect(problemsWith(migration('create table a (b bigint)'))).toEqual([
      '0001_first: was changed; one that is recorded never is, write the next one',
    ]);
    expect(changeProblems([], record)).toEqual(['0001_first: is recorded and not there']);
  });

  test('stands in the record as it was written', () => {
    expect(readRecord(writeRecord(record))).toEqual(record);
    const fresh = { name: '0002_second', text: '' };
    expect(unrecorded([{ name: '0001_first', text: '' }, fresh], record)).toEqual([fresh]);
  });
});
