/** Compares the findings of files and folders with their ceilings. A ceiling only falls. Used by `check-prose.ts`. */

/** Findings that are allowed: of a file by its path from the root, of a folder by its path with a slash at the end. */
export type Ceilings = Readonly<Record<string, number>>;

/** @returns the key of `ceilings` that counts for a file: the file, else its nearest folder, else the file with 0. */
export function areaOf(path: string, ceilings: Ceilings): string {
  if (path in ceilings) return path;
  const folders = path.split('/').slice(0, -1);
  for (let depth = folders.length; depth > 0; depth--) {
    const folder = `${folders.slice(0, depth).join('/')}/`;
    if (folder in ceilings) return folder;
  }
  return path;
}

/**
 * @param counts - the findings of every file that was read.
 * @returns `counted`: findings by area. `risen`: areas above their ceiling. `lowered`: the ceilings for these counts,
 *   never above the old, and without files that have no findings.
 */
export function comparedToCeilings(
  counts: Ceilings,
  ceilings: Ceilings,
): { counted: Ceilings; risen: string[]; lowered: Ceilings } {
  const counted: Record<string, number> = {};
  for (const [path, count] of Object.entries(counts)) {
    const area = areaOf(path, ceilings);
    counted[area] = (counted[area] ?? 0) + count;
  }
  const lowered = Object.entries(ceilings)
    .map(([area, ceiling]) => [area, Math.min(counted[area] ?? 0, ceiling)] as const)
    .filter(([area, ceiling]) => ceiling > 0 || area.endsWith('/'));
  return {
    counted,
    risen: Object.keys(counted).filter((area) => (counted[area] ?? 0) > (ceilings[area] ?? 0)),
    lowered: Object.fromEntries(lowered),
  };
}
