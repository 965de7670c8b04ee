/**
 * Variables of the environment that are probably misspelt settings.
 *
 * A setting that is misspelt has no effect, and no other check finds it. Only a warning: the environment belongs to
 * other programs too, and a variable of theirs must never end a start.
 */

/** A transposition is two edits; more would take `PATH` for `PORT`. */
const EDIT_COUNT_MAX = 2;

export interface MisspeltSetting {
  /** As it is in the environment. */
  readonly name: string;
  readonly nearestName: string;
}

/** @param settingNames - of this process. Letter case counts as no edit. */
export function findMisspeltSettings(
  environment: Readonly<Record<string, string | undefined>>,
  settingNames: readonly string[],
): MisspeltSetting[] {
  const known = new Set(settingNames);
  return Object.keys(environment).flatMap((name) => {
    if (known.has(name)) return [];
    const upper = name.toUpperCase();
    let nearestName: string | undefined;
    let editCount = EDIT_COUNT_MAX + 1;
    for (const settingName of settingNames) {
      const count = countEdits(upper, settingName, editCount);
      if (count >= editCount) continue;
      editCount = count;
      nearestName = settingName;
    }
    return nearestName === undefined ? [] : [{ name, nearestName }];
  });
}

/** Levenshtein distance, or `limit` if it is not below that. */
function countEdits(one: string, other: string, limit: number): number {
  if (Math.abs(one.length - other.length) >= limit) return limit;
  let above = Array.from({ length: other.length + 1 }, (_, column) => column);
  for (let row = 1; row <= one.length; row++) {
    const counts = [row];
    for (let column = 1; column <= other.length; column++) {
      const isEqual = one[row - 1] === other[column - 1];
      counts.push(
        Math.min(
          (above[column] as number) + 1,
          (counts[column - 1] as number) + 1,
          (above[column - 1] as number) + (isEqual ? 0 : 1),
        ),
      );
    }
    if (Math.min(...counts) >= limit) return limit;
    above = counts;
  }
  return above.at(-1) as number;
}
