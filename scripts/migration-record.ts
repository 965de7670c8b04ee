/**
 * Rules of `check-migrations.ts`: the numbers of migrations, and that a recorded one never changes. Pure functions of
 * the files' texts and of the record, `packages/database/migrations.sha256`.
 */
import { createHash } from 'node:crypto';

/** A migration, by its name without `.ts`. */
export interface MigrationFile {
  readonly name: string;
  readonly text: string;
}

/** Of branches that were merged at the same time, before there was this check. */
const NUMBER_SHARED: ReadonlySet<string> = new Set([
  '0008_imports',
  '0008_test_keys',
  '0010_webhook_secrets',
  '0010_webhook_send_options',
  '0010_webhooks_replayed',
  '0010_webhooks_watched',
]);
/** Given up before they were on main. */
const NUMBERS_LEFT_OUT: ReadonlySet<number> = new Set([18, 36]);

/**
 * The hash of a migration's code. Imports, comments and white space are left out: a file that it imports may be moved
 * or a comment be mended, and neither changes a schema. Of SQL, only comments that have their line to themselves.
 */
export function hashOf(text: string): string {
  const code = text
    .replaceAll(/\/\*[\s\S]*?\*\//g, '')
    .replaceAll(/^import\s[^;]*;$/gm, '')
    .replaceAll(/^\s*(\/\/|--).*$/gm, '')
    .replaceAll(/\s+/g, ' ');
  return createHash('sha256').update(code.trim()).digest('hex');
}

/** A line each, as `sha256sum` writes them: the hash, two spaces, the name. */
export function readRecord(text: string): ReadonlyMap<string, string> {
  return new Map(
    text
      .split('\n')
      .filter((line) => line !== '')
      .map((line): [string, string] => {
        const [hash = '', name = ''] = line.split('  ');
        return [name, hash];
      }),
  );
}

export function writeRecord(record: ReadonlyMap<string, string>): string {
  return [...record]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([name, hash]) => `${hash}  ${name}\n`)
    .join('');
}

/** Numbers that occur twice, and missing numbers. */
export function numberProblems(names: readonly string[]): string[] {
  const numbers = names.map((name) => Number(name.slice(0, 4)));
  const twice = names.filter(
    (name, place) =>
      numbers.indexOf(numbers[place] as number) !== numbers.lastIndexOf(numbers[place] as number) &&
      !NUMBER_SHARED.has(name),
  );
  const missing = Array.from({ length: Math.max(0, ...numbers) }, (_, place) => place + 1).filter(
    (number) => !numbers.includes(number) && !NUMBERS_LEFT_OUT.has(number),
  );
  return [
    ...twice.map((name) => `${name}: another migration has its number`),
    ...missing.map((number) => `${String(number).padStart(4, '0')}: no migration has this number`),
  ];
}

/** Migrations that were changed or removed after they were recorded. */
export function changeProblems(
  migrations: readonly MigrationFile[],
  record: ReadonlyMap<string, string>,
): string[] {
  const hashes = new Map(migrations.map(({ name, text }) => [name, hashOf(text)]));
  return [...record].flatMap(([name, recorded]) => {
    const hash = hashes.get(name);
    if (hash === undefined) return [`${name}: is recorded and not there`];
    return hash === recorded
      ? []
      : [`${name}: was changed; one that is recorded never is, write the next one`];
  });
}

/** Migrations that are not in the record yet. */
export function unrecorded(
  migrations: readonly MigrationFile[],
  record: ReadonlyMap<string, string>,
): MigrationFile[] {
  return migrations.filter(({ name }) => !record.has(name));
}
