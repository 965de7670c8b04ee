/**
 * Part of `npm run check`: each migration has a number of its own, without a gap, and recorded ones never change. The
 * record is `packages/database/migrations.sha256`. `--add` records the new ones (`npm run migrations:record`); it never
 * changes a line that is there.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import {
  changeProblems,
  hashOf,
  numberProblems,
  readRecord,
  unrecorded,
  writeRecord,
  type MigrationFile,
} from './migration-record.ts';

const FOLDER = new URL('../packages/database/src/migrations/', import.meta.url);
const RECORD = new URL('../packages/database/migrations.sha256', import.meta.url);

const migrations = readdirSync(FOLDER)
  .toSorted()
  .map((file): MigrationFile => ({
    name: file.replace(/\.ts$/, ''),
    text: readFileSync(new URL(file, FOLDER), 'utf8'),
  }));
const record = readRecord(readFileSync(RECORD, 'utf8'));
const fresh = unrecorded(migrations, record);
const problems = [
  ...numberProblems(migrations.map(({ name }) => name)),
  ...changeProblems(migrations, record),
];
if (!process.argv.includes('--add')) {
  for (const { name } of fresh)
    problems.push(`${name}: is not recorded: npm run migrations:record`);
} else if (problems.length === 0) {
  const added = fresh.map(({ name, text }): [string, string] => [name, hashOf(text)]);
  writeFileSync(RECORD, writeRecord(new Map([...record, ...added])));
}
for (const problem of problems) console.error(problem);
process.exitCode = problems.length === 0 ? 0 : 1;
