/** Compares the findings of each file with its ceiling, which only falls. Used by `check-prose.ts`. */

/** Findings a file may have, by its path from the root. */
export type Ceilings = Readonly<Record<string, number>>;

/**
 * @param counts - the findings of every file that was read.
 * @returns `risen`: files above their ceiling, 0 if they have none. `lowered`: the ceilings for the counts, none above the old.
 */
export function comparedToCeilings(
  counts: Ceilings,
  ceilings: Ceilings,
): { risen: string[]; lowered: Ceilings } {
  const ceilingOf = (path: string): number => ceilings[path] ?? 0;
  const lowered = Object.entries(counts)
    .map(([path, count]) => [path, Math.min(count, ceilingOf(path))] as const)
    .filter(([, count]) => count > 0)
    .toSorted(([a], [b]) => (a < b ? -1 : 1));
  return {
    risen: Object.keys(counts).filter((path) => (counts[path] ?? 0) > ceilingOf(path)),
    lowered: Object.fromEntries(lowered),
  };
}
