/**
 * Test files that can notice a change of a file: their imports lead to it, the nearest first. If its own package has
 * such tests, only these: a package's promises are held by its own tests.
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
 * @returns nearest first; of the same distance first the test of the same name.
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
  const rank = (test: string): number =>
    basename(test) === basename(path).replace(/\.tsx?$/, '.test.ts') ? 0 : 1;
  const tests = [...distances]
    .map(([test, distance]) => ({ path: test, distance }))
    .filter((test) => test.path.endsWith('.test.ts'));
  const own = tests.filter((test) => packageOf(test.path) === packageOf(path));
  return (own.length > 0 ? own : tests).toSorted(
    (one, other) =>
      one.distance - other.distance ||
      rank(one.path) - rank(other.path) ||
      (one.path < other.path ? -1 : 1),
  );
}

const packageOf = (path: string): string => path.split('/').slice(0, 2).join('/');
