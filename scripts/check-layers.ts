/**
 * Part of `npm run check`: the order of the folders in each package, cycles of imports, the home of each library, and
 * the dependencies between packages. The rules are in `layers.ts`, their data in `layer-order.ts`.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readImportGraph } from './import-graph.ts';
import {
  cycleViolations,
  dependencyViolations,
  folderViolations,
  homeViolations,
  orderViolations,
} from './layers.ts';
import { FOLDERS, HOMES } from './layer-order.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const packages = readdirSync(`${ROOT}packages`);
const folders = packages.flatMap((name) =>
  ['src', 'test', 'bin'].map((part) => `packages/${name}/${part}`),
);
const graph = readImportGraph(ROOT, [...folders, 'benchmarks/src', 'benchmarks/test', 'scripts']);
const violations = [
  ...folderViolations(graph, FOLDERS),
  ...orderViolations(graph, FOLDERS),
  ...cycleViolations(graph),
  ...homeViolations(graph, HOMES),
  ...dependencyViolations(
    graph,
    Object.fromEntries(packages.map((name) => [name, dependenciesOf(name)])),
  ),
];
for (const { path, problem } of violations) console.error(`${path} ${problem}`);
process.exitCode = violations.length === 0 ? 0 : 1;

/** The packages of ours that a package depends on, by the names of their folders. */
function dependenciesOf(name: string): string[] {
  const { dependencies = {} } = JSON.parse(
    readFileSync(`${ROOT}packages/${name}/package.json`, 'utf8'),
  ) as { dependencies?: Record<string, string> };
  return Object.keys(dependencies).flatMap((dependency) =>
    dependency.startsWith('@sluice/') ? [dependency.slice('@sluice/'.length)] : [],
  );
}
