/** Identifiers from before there was a rule. Only the ones that no call names any more are found. */
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { listIrregularIdentifiers } from '../../../src/people/irregular-identifiers.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

test('an identifier with blanks at its ends and an email that is no address are found, page by page', async () => {
  const { database } = await createTestDatabase();
  const irregular = [
    ['email', ' ada@example.com'],
    ['email', 'N/A'],
    ['id', '\u00a0a'],
    ['id', '\u200bb'],
    ['id', 'c\u0085'],
    ['id', 'd\u2060\u200e'],
    ['id', 'e\n'],
    ['id', 'f\u001f'],
  ] as const;
  const regular = [
    ['email', 'ada@example.com'],
    ['id', 'a b'],
    ['id', 'a\u200bb'],
    ['phone', '+4915112345678'],
  ] as const;
  for (const [kind, value] of [...irregular, ...regular])
    await sql`
      insert into person_identifiers (environment_id, kind, value, person_id) values (7, ${kind}, ${value}, 1)`.execute(
      database,
    );
  const found: string[] = [];
  let after: Awaited<ReturnType<typeof listIrregularIdentifiers>>[number] | undefined;
  do {
    const page = await listIrregularIdentifiers(database, after, 3);
    found.push(...page.map(({ value }) => value));
    after = page.at(-1);
  } while (after !== undefined);
  expect(found.toSorted()).toEqual(irregular.map(([, value]) => value).toSorted());
});
