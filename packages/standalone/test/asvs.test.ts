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

test('every section from 1.1 to 14.5 stands in the table once, in order', () => {
  const expected = SECTION_COUNTS.flatMap((count, index) =>
    Array.from({ length: count }, (_, section) => `${index + 1}.${section + 1}`),
  );
  expect(rows.map(({ number }) => number)).toEqual(expected);
});

test('each section is met, not applicable or open; met ones have a test, open ones name their requirements', () => {
  for (const { number, state, shown, remarks } of rows) {
    expect(['met', 'not applicable', 'open'], number).toContain(state);
    if (state === 'met') expect(shown, number).toMatch(/`/);
    if (state === 'open') expect(remarks, number).toMatch(new RegExp(`\\b${number}\\.\\d`));
  }
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
