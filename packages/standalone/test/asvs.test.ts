/** The table of `docs/operations/asvs.md`: every section once, each state known, each test there. */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const page = readFileSync(join(ROOT, 'docs/operations/asvs.md'), 'utf8');
const rows = [...page.matchAll(/^\| (\d+)\.(\d+) [^|]+\| ([^|]+) \|([^|]*)\|([^|]*)\|$/gm)].map(
  ([, chapter, section, state = '', shown = '', remarks = '']) => ({
    chapter: Number(chapter),
    number: `${chapter}.${section}`,
    state,
    shown,
    remarks,
  }),
);

/** Sections of each chapter of ASVS 4.0.3, from 1 to 14. */
const SECTION_COUNTS = [14, 10, 7, 3, 5, 4, 4, 3, 2, 3, 1, 6, 4, 5];

/**
 * Section, and the numbers of its requirements of level 1 and 2. Deleted requirements and level 3 are
 * absent.
 */
const REQUIREMENTS = `
1.1 1-7, 1.2 1-4, 1.4 1 4 5, 1.5 1-4, 1.6 1-4, 1.7 1-2, 1.8 1-2, 1.9 1-2, 1.10 1, 1.11 1-2, 1.12 2, 1.14 1-6,
2.1 1-12, 2.2 1-3, 2.3 1-3, 2.4 1-5, 2.5 1-7, 2.6 1-3, 2.7 1-6, 2.8 1-7, 2.9 1-3, 2.10 1-4,
3.1 1, 3.2 1-4, 3.3 1-4, 3.4 1-5, 3.5 1-3, 3.7 1, 4.1 1-3 5, 4.2 1-2, 4.3 1-3,
5.1 1-5, 5.2 1-8, 5.3 1-10, 5.4 1-3, 5.5 1-4, 6.1 1-3, 6.2 1-6, 6.3 1-2, 6.4 1-2,
7.1 1-4, 7.2 1-2, 7.3 1 3 4, 7.4 1-3, 8.1 1-4, 8.2 1-3, 8.3 1-8, 9.1 1-3, 9.2 1-4, 10.2 1-2, 10.3 1-3,
11.1 1-8, 12.1 1-3, 12.2 1, 12.3 1-6, 12.4 1-2, 12.5 1-2, 12.6 1, 13.1 1 3-5, 13.2 1-3 5 6, 13.3 1-2, 13.4 1-2,
14.1 1-4, 14.2 1-6, 14.3 2 3, 14.4 1-7, 14.5 1-4`;

const requirements = new Set(
  REQUIREMENTS.split(',').flatMap((text) => {
    const [section = '', ...parts] = text.trim().split(' ');
    return parts.flatMap((part) => {
      const [from = 0, to = from] = part.split('-').map(Number);
      return Array.from({ length: to - from + 1 }, (_, index) => `${section}.${from + index}`);
    });
  }),
);

/** Requirements that ask for the same control in two sections: both are open, or neither is. */
const SAME_CONTROL = [
  ['1.6.2', '6.4.1'],
  ['1.9.1', '9.2.2'],
  ['1.9.2', '9.2.3'],
  ['1.14.2', '10.3.2'],
  ['1.14.3', '14.2.1'],
  ['3.7.1', '4.3.3'],
  ['5.2.6', '12.6.1'],
  ['13.1.5', '13.2.5'],
] as const;

/** The numbers of requirements in the last column. */
const numbersIn = (remarks: string): string[] => remarks.match(/\b\d+\.\d+\.\d+\b/g) ?? [];

test('every section from 1.1 to 14.5 stands in the table once, in order', () => {
  const expected = SECTION_COUNTS.flatMap((count, index) =>
    Array.from({ length: count }, (_, section) => `${index + 1}.${section + 1}`),
  );
  expect(rows.map(({ number }) => number)).toEqual(expected);
});

test('each section is met, not applicable or open; met ones have a test, open ones alone name their requirements', () => {
  for (const { number, state, shown, remarks } of rows) {
    expect(['met', 'not applicable', 'open'], number).toContain(state);
    if (![...requirements].some((each) => each.startsWith(`${number}.`)))
      expect(state, number).toBe('not applicable');
    if (state === 'met') expect(shown, number).toMatch(/`/);
    const numbers = numbersIn(remarks);
    expect(numbers.length > 0, number).toBe(state === 'open');
    expect(new Set(numbers).size, number).toBe(numbers.length);
    const strange = numbers.filter(
      (each) => !each.startsWith(`${number}.`) || !requirements.has(each),
    );
    expect(strange, number).toEqual([]);
  }
});

test('a control that two sections ask for is open in both or in neither', () => {
  const open = new Set(rows.flatMap(({ remarks }) => numbersIn(remarks)));
  for (const [one, other] of SAME_CONTROL)
    expect([one, open.has(one)]).toEqual([one, open.has(other)]);
});

test('each file that it names is there', () => {
  for (const { shown, remarks } of rows)
    for (const [, path = ''] of `${shown} ${remarks}`.matchAll(
      /`([\w./-]+\.(?:ts|md|mjs|json))`/g,
    )) {
      const file = /^(docs|infra)\//.test(path) ? join(ROOT, path) : join(ROOT, 'packages', path);
      expect(existsSync(file), path).toBe(true);
    }
});
