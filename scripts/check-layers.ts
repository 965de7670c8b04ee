/**
 * Part of `npm run check`: the order of the folders in each package, cycles of imports, and where a library may be
 * imported. The rules and their data are in `layers.ts`.
 */
import { readdirSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readImportGraph } from './import-graph.ts';
import {
  cycleViolations,
  FOLDERS,
  folderViolations,
  HOMES,
  homeViolations,
  orderViolations,
} from './layers.ts';

const ROOT = fileURLToPath(new URL('..', import.meta.url));

const folders = readdirSync(`${ROOT}packages`).flatMap((name) =>
  ['src', 'test', 'bin'].map((part) => `packages/${name}/${part}`),
);
const graph = readImportGraph(ROOT, [...folders, 'benchmarks/src', 'benchmarks/test', 'scripts']);
const violations = [
  ...folderViolations(graph, FOLDERS),
  ...orderViolations(graph, FOLDERS),
  ...cycleViolations(graph),
  ...homeViolations(graph, HOMES),
];
for (const { path, problem } of violations) console.error(`${path} ${problem}`);
process.exitCode = violations.length === 0 ? 0 : 1;
