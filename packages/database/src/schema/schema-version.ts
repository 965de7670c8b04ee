/**
 * Compatibility of code and schema. Code and schema are both known by the migrations that they have: old and new
 * processes run side by side during a rolling restart, so a schema may be ahead of a process, but never behind it.
 *
 * | the schema has | code that knows fewer | code that knows more |
 * |---|---|---|
 * | the code's migrations exactly | runs | |
 * | newer ones, which only add (expand) | runs | |
 * | a newer one that takes away (contract) | runs if it knows that one's `oldestCode`, else does not start | |
 * | not all of the code's | | does not start: `npm run migrate` first |
 *
 * So taking something away needs three releases. The first adds the new. The second stops using the old. The third takes
 * the old away, and names the second release's migration as the oldest code that can live with it.
 */
import { AppError } from '@sluice/domain/values/errors';
import { sql } from 'kysely';
import type { Migration } from 'kysely/migration';
import type { DatabaseOrTransaction } from '../connection/connection.ts';
import { MIGRATION_NAMES } from './schema-names.ts';

/** A migration and whom it breaks with. */
export interface SchemaStep extends Migration {
  /** Code that does not know this migration cannot run after this one. Absent: any code can. */
  readonly oldestCode?: string;
}

export interface SchemaState {
  /** Names of the migrations that were run. */
  readonly applied: readonly string[];
  /** Requirements of the migrations that take away, on the code: each is the name of a migration. */
  readonly oldestCodes: readonly string[];
}

export type SchemaVerdict =
  | { readonly outcome: 'usable' }
  /** `names` have to be run first. */
  | { readonly outcome: 'behind'; readonly names: readonly string[] }
  /** Code must know `names`. */
  | { readonly outcome: 'ahead'; readonly names: readonly string[] };

/** May code that knows these migrations run? Pure. */
export function judgeSchema(known: readonly string[], state: SchemaState): SchemaVerdict {
  const tooNew = state.oldestCodes.filter((name) => !known.includes(name));
  if (tooNew.length > 0) return { outcome: 'ahead', names: tooNew };
  const missing = known.filter((name) => !state.applied.includes(name));
  return missing.length > 0 ? { outcome: 'behind', names: missing } : { outcome: 'usable' };
}

/** Two statements over a few dozen rows. An empty database has no migrations. */
export async function readSchemaState(database: DatabaseOrTransaction): Promise<SchemaState> {
  const hasTable = async (name: string): Promise<boolean> => {
    const { rows } = await sql<{ isThere: boolean }>`
      select to_regclass(${name}) is not null as "isThere"`.execute(database);
    return rows[0]?.isThere === true;
  };
  const namesOf = async (table: string, column: string): Promise<string[]> => {
    if (!(await hasTable(table))) return [];
    const { rows } = await sql<{ name: string }>`
      select ${sql.ref(column)} as name from ${sql.table(table)} order by 1`.execute(database);
    return rows.map(({ name }) => name);
  };
  return {
    applied: await namesOf('kysely_migration', 'name'),
    oldestCodes: await namesOf('schema_requirements', 'oldest_code'),
  };
}

/**
 * For the start of a process.
 *
 * @throws AppError MIGRATION_MISMATCH if code that knows these migrations cannot run against the schema as it is.
 */
export async function checkSchema(
  database: DatabaseOrTransaction,
  known: readonly string[] = MIGRATION_NAMES,
): Promise<void> {
  assertUsable(judgeSchema(known, await readSchemaState(database)));
}

/** The migration, with its `oldestCode` written down in the transaction that runs it. */
export const recordingDemand = (name: string, step: SchemaStep): Migration => ({
  async up(database) {
    await step.up(database);
    if (step.oldestCode === undefined) return;
    await sql`
      insert into schema_requirements (migration, oldest_code)
      values (${name}, ${step.oldestCode})`.execute(database);
  },
});

const NAMED_MAX = 3;

/** An empty database lacks all of them, and the next action would stand behind half a page of names. */
const firstOf = (names: readonly string[]): string =>
  names.length <= NAMED_MAX
    ? names.join(', ')
    : `${names.slice(0, NAMED_MAX).join(', ')} and ${names.length - NAMED_MAX} more`;

/** @throws AppError MIGRATION_MISMATCH with the next action, unless the schema can be used. */
export function assertUsable(verdict: SchemaVerdict): void {
  switch (verdict.outcome) {
    case 'usable':
      return;
    case 'behind':
      throw new AppError(
        'MIGRATION_MISMATCH',
        `the schema is behind this version, which also needs ${firstOf(verdict.names)}; run npm run migrate, then start again`,
      );
    case 'ahead':
      throw new AppError(
        'MIGRATION_MISMATCH',
        `the schema is ahead of this version and needs code that knows ${verdict.names.join(', ')}; start a newer version`,
      );
  }
}
