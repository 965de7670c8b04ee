/** The rule of `results/`: of each benchmark the latest result of each month. */
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { keptAs, replacedBy } from '../src/kept-results.ts';

test('a result replaces the results of its benchmark and month', () => {
  const others = [
    '2026-11-01-0bcfe56-intake.json',
    '2026-11-02-0bcfe56-intake-steps.json',
    '2026-11-25-288b61d8-suite.json',
    '2026-10-31-a54d3b2-intake.json',
  ];
  expect(replacedBy('2026-11-30-b3938f99-intake.json', others)).toEqual([
    '2026-11-01-0bcfe56-intake.json',
  ]);
});

test('of each benchmark and month one result is kept', () => {
  const files = readdirSync(join(import.meta.dirname, '../results'));
  expect(files.map(keptAs)).not.toContain(' ');
  expect(new Set(files.map(keptAs)).size, 'remove the older ones').toBe(files.length);
});
