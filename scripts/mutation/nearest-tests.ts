/**
 * Test files that can notice a change of a file.
 *
 * Their imports lead to it. The tests of its own package come first, since they hold the package's promises. A file of the use cases may have its tests in the packages that call it.
 */
import { basename } from 'node:path';
import type { ImportingFile } from '../import-graph.ts';

export interface NearTest {
  readonly path: string;
  /** Of imports between the test and the file: 1 if the test imports it itself. */
  readonly distance: number;
}

/**
 * @param path - of the file, from the root of the repository.
 * @returns of a package first the test of the same name and the ones whose names begin with it (`rule-limits.test.ts`
 *   of `rule.ts`), then the nearest.
 */
export function nearestTests(graph: readonly ImportingFile[], path: string): NearTest[] {
  const importers = new Map<string, string[]>();
  for (const { path: importer, imports } of graph)
    for (const { target } of imports)
      if (target !== undefined) importers.set(target, [...(importers.get(target) ?? []), importer]);
  const distances = new Map([[path, 0]]);
  for (const [current, distance] of distances)
    for (const importer of importers.get(current) ?? [])
      if (!distances.has(importer)) distances.set(importer, distance + 1);
  const name = basename(path).replace(/\.tsx?$/, '');
  const rank = (test: string): number =>
    [`${name}.`, `${name}-`].some((start) => basename(test).startsWith(start)) ? 0 : 1;
  const tests = [...distances]
    .map(([test, distance]) => ({ path: test, distance }))
    .filter((test) => test.path.endsWith('.test.ts'));
  const isOther = (test: string): number => (packageOf(test) === packageOf(path) ? 0 : 1);
  return tests.toSorted(
    (one, other) =>
      isOther(one.path) - isOther(other.path) ||
      rank(one.path) - rank(other.path) ||
      one.distance - other.distance ||
      (one.path < other.path ? -1 : 1),
  );
}

const packageOf = (path: string): string => path.split('/').slice(0, 2).join('/');
