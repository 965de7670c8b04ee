import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { contrastOf, SURFACES, textColorOn, whyNoAccent } from '../../src/accounts/portal.ts';

test('the contrast of two colours follows the formula of WCAG', () => {
  expect(contrastOf('#000000', '#ffffff')).toBeCloseTo(21, 5);
  expect(contrastOf('#ffffff', '#767676')).toBeCloseTo(4.54, 2);
  expect(contrastOf('#777777', '#777777')).toBe(1);
});

test('an accent is refused if its contrast with a page is below 3:1', () => {
  expect(whyNoAccent('#0b7a83', 'auto')).toBe(undefined);
  expect(whyNoAccent('#ffff00', 'dark')).toBe(undefined);
  expect(whyNoAccent('#ffff00', 'light')).toMatch(/3:1 to the light page; it has 1\.07:1/);
  expect(whyNoAccent('#222222', 'light')).toBe(undefined);
  expect(whyNoAccent('#222222', 'auto')).toMatch(/dark page/);
});

test('text on any accent has at least 4.5:1', () => {
  for (let level = 0; level < 256; level++) {
    const grey = `#${level.toString(16).padStart(2, '0').repeat(3)}`;
    expect(contrastOf(grey, textColorOn(grey))).toBeGreaterThan(4.5);
  }
});

test('the surfaces have the colours of the page', () => {
  const tokens = readFileSync(
    new URL('../../../console/src/styles/tokens.css', import.meta.url),
    'utf8',
  );
  expect(/--surface: light-dark\((#\w+), (#\w+)\)/.exec(tokens)?.slice(1)).toEqual([
    SURFACES.light,
    SURFACES.dark,
  ]);
});
