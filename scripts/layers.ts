/**
 * Rules about folders, imports and libraries.
 *
 * They are pure functions of an import graph. `check-layers.ts` applies them to the repository, with the data of `layer-order.ts`.
 */
import type { ImportingFile } from './import-graph.ts';

/** A broken rule, with its place. */
export interface Violation {
  readonly path: string;
  readonly problem: string;
}

/** Packages that are not started: no file puts their folders together, so the root of `src` has no file. */
const LIBRARIES: ReadonlySet<string> = new Set(['domain', 'database', 'platform']);

const FILES_MAX = 15;
/** Its files are never moved, so there is no second folder for them. */
const WITHOUT_MAXIMUM: ReadonlySet<string> = new Set(['database/migrations']);

interface Place {
  readonly packageName: string;
  /** Below `src`. Empty: the root. */
  readonly folder: string;
}

function placeOf(path: string): Place | undefined {
  const [, packageName, inside] = /^packages\/([^/]+)\/src\/(.+)$/.exec(path) ?? [];
  if (packageName === undefined || inside === undefined) return undefined;
  return { packageName, folder: inside.split('/').slice(0, -1).join('/') };
}

/** An import of a folder that comes earlier, or of the root of `src`. */
export function orderViolations(
  graph: readonly ImportingFile[],
  folders: Readonly<Record<string, readonly string[]>>,
): Violation[] {
  return graph.flatMap(({ path, imports }) => {
    const from = placeOf(path);
    if (from === undefined || from.folder === '') return [];
    const order = folders[from.packageName] ?? [];
    return imports.flatMap(({ specifier, target }) => {
      const to = target === undefined ? undefined : placeOf(target);
      if (to === undefined || to.packageName !== from.packageName) return [];
      if (to.folder === '')
        return [
          {
            path,
            problem: `imports ${specifier}: a folder never imports the root of its package's src`,
          },
        ];
      if (order.indexOf(to.folder) >= order.indexOf(from.folder)) return [];
      return [
        {
          path,
          problem: `imports ${specifier}: in ${from.packageName}, ${to.folder}/ comes before ${from.folder}/, which may import only folders after itself`,
        },
      ];
    });
  });
}

/** A folder that has no place in the order, too many files in one, a file in the root of a library. */
export function folderViolations(
  graph: readonly ImportingFile[],
  folders: Readonly<Record<string, readonly string[]>>,
): Violation[] {
  const counts = new Map<string, Place & { count: number }>();
  for (const { path } of graph) {
    const place = placeOf(path);
    if (place === undefined || !/\.tsx?$/.test(path)) continue;
    const key = `${place.packageName}/${place.folder}`;
    const counted = counts.get(key) ?? { ...place, count: 0 };
    counted.count++;
    counts.set(key, counted);
  }
  return [...counts.values()].flatMap(({ packageName, folder, count }) => {
    const path = `packages/${packageName}/src/${folder}`;
    const isKnown = folder === '' || folders[packageName]?.includes(folder) === true;
    return [
      ...(isKnown
        ? []
        : [
            {
              path,
              problem: `has no place in the order of ${packageName} (scripts/layer-order.ts)`,
            },
          ]),
      ...(folder === '' && LIBRARIES.has(packageName)
        ? [{ path, problem: `has ${count} files: a library has none in the root of its src` }]
        : []),
      ...(count > FILES_MAX && !WITHOUT_MAXIMUM.has(`${packageName}/${folder}`)
        ? [{ path, problem: `has ${count} files, ${FILES_MAX} at most: look for the second noun` }]
        : []),
    ];
  });
}

/** One cycle of each knot of files that import each other; types and `import()` count. */
export function cycleViolations(graph: readonly ImportingFile[]): Violation[] {
  const targets = new Map(
    graph.map(({ path, imports }) => [path, imports.flatMap(({ target }) => target ?? [])]),
  );
  const seen = new Set<string>();
  const violations: Violation[] = [];
  for (const start of targets.keys()) {
    const cycle = seen.has(start) ? undefined : shortestCycle(start, targets);
    if (cycle === undefined) continue;
    for (const path of cycle) seen.add(path);
    violations.push({
      path: start,
      problem: `is in a cycle of imports: ${[...cycle, start].join(' → ')}`,
    });
  }
  return violations;
}

/** From the file back to itself, by breadth. Undefined: there is no way back. */
function shortestCycle(
  start: string,
  targets: ReadonlyMap<string, readonly string[]>,
): string[] | undefined {
  const cameFrom = new Map<string, string>();
  for (let level = [start]; level.length > 0;) {
    const next: string[] = [];
    for (const path of level) {
      for (const target of targets.get(path) ?? []) {
        if (target === start) return wayTo(path, cameFrom);
        if (cameFrom.has(target)) continue;
        cameFrom.set(target, path);
        next.push(target);
      }
    }
    level = next;
  }
  return undefined;
}

function wayTo(end: string, cameFrom: ReadonlyMap<string, string>): string[] {
  const way: string[] = [];
  for (let path: string | undefined = end; path !== undefined; path = cameFrom.get(path))
    way.unshift(path);
  return way;
}

/** An import of a library outside its home. */
export function homeViolations(
  graph: readonly ImportingFile[],
  homes: Readonly<Record<string, readonly string[]>>,
): Violation[] {
  return graph.flatMap(({ path, imports }) =>
    imports.flatMap(({ specifier }) => {
      const library = Object.keys(homes).find(
        (name) => specifier === name || specifier.startsWith(`${name}/`),
      );
      const home = library === undefined ? undefined : homes[library];
      if (home === undefined) return [];
      if (home.some((place) => path === place || path.startsWith(`${place}/`))) return [];
      return [
        {
          path,
          problem: `imports ${specifier}: ${library} is imported only in ${home.join(', ')}`,
        },
      ];
    }),
  );
}

/**
 * A file of `src` imports a package of ours that its `package.json` does not name under `dependencies`: one that only
 * the tests of its package may know.
 *
 * @param dependencies - of each package, by its folder's name: the folders' names of the packages of ours.
 */
export function dependencyViolations(
  graph: readonly ImportingFile[],
  dependencies: Readonly<Record<string, readonly string[]>>,
): Violation[] {
  return graph.flatMap(({ path, imports }) => {
    const from = placeOf(path);
    if (from === undefined) return [];
    return imports.flatMap(({ specifier, target }) => {
      const to = target === undefined ? undefined : placeOf(target);
      if (to === undefined || to.packageName === from.packageName) return [];
      if (dependencies[from.packageName]?.includes(to.packageName) === true) return [];
      return [
        {
          path,
          problem: `imports ${specifier}: ${from.packageName}'s dependencies do not name ${to.packageName}; its devDependencies are for tests`,
        },
      ];
    });
  });
}
