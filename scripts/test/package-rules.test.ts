/** The check of packages (`scripts/package-rules.ts`) fails on each kind of fault. */
import { expect, test } from 'vitest';
import { packageProblems, type LockedEntry } from '../package-rules.ts';

const REGISTRY = 'https://registry.npmjs.org/a/-/a-1.0.0.tgz';
const problemsOf = (entry: LockedEntry, scripts: Record<string, boolean> = {}): string[] =>
  packageProblems(
    { 'node_modules/a': { version: '1.0.0', integrity: 'sha512-x', resolved: REGISTRY, ...entry } },
    scripts,
  );

test.each<LockedEntry>([
  { license: 'MIT' },
  { license: '(WTFPL OR MIT)' },
  { license: '(MIT AND Zlib)' },
  { license: 'MPL-2.0', dev: true },
])('%j may be there', (entry) => {
  expect(problemsOf(entry)).toEqual([]);
});

test.each<[LockedEntry, string]>([
  [{ license: 'GPL-3.0' }, 'GPL-3.0'],
  [{ license: 'MPL-2.0' }, 'MPL-2.0'],
  [{ license: 'MIT AND GPL-3.0', dev: true }, 'GPL-3.0'],
  [{}, 'not known'],
  [{ license: 'SEE LICENSE IN LICENSE' }, 'SEE LICENSE'],
])('the licence of %j is refused', (entry, named) => {
  expect(problemsOf(entry)).toEqual([expect.stringContaining(named)]);
});

test('a script at its installation must be named, whether it may run or not', () => {
  const entry = { license: 'MIT', hasInstallScript: true };
  expect(problemsOf(entry)).toEqual([expect.stringContaining('allowScripts')]);
  expect(problemsOf(entry, { a: true })).toEqual([]);
  expect(problemsOf(entry, { a: false })).toEqual([]);
});

test('a package from elsewhere, or without a hash, is refused', () => {
  expect(problemsOf({ license: 'MIT', resolved: 'git+ssh://git@example.com/a.git' })).toEqual([
    expect.stringContaining('example.com'),
  ]);
  const { integrity: _, ...entry } = { license: 'MIT', version: '1.0.0', integrity: undefined };
  expect(packageProblems({ 'node_modules/a': entry }, {})).toEqual([
    expect.stringContaining('no hash'),
  ]);
});

test('our own packages are not asked', () => {
  expect(
    packageProblems({ 'packages/a': {}, 'node_modules/@sluice/a': { link: true } }, {}),
  ).toEqual([]);
});
