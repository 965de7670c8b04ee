/** `--grep`: which lines of the live tail are shown. Pure. */

type Fields = Readonly<Record<string, unknown>>;

/**
 * @param words - `status=500` is a member, at any depth, of exactly this value; another word stands anywhere in a value, in
 *   any letter case.
 */
export const fitsAll = (words: readonly string[], line: Fields): boolean =>
  words.every((word) => fits(word, line));

function fits(word: string, line: Fields): boolean {
  const [, name, value] = /^([\w.]+)=(.*)$/s.exec(word) ?? [];
  const leaves = leavesOf(line);
  if (name !== undefined)
    return leaves.some(
      ([path, text]) => text === value && (path === name || path.endsWith(`.${name}`)),
    );
  const lowerCase = word.toLowerCase();
  return leaves.some(([, text]) => text.toLowerCase().includes(lowerCase));
}

/** Each value with the names that lead to it; places in lists are not named. */
function leavesOf(value: unknown, path = ''): [path: string, text: string][] {
  if (value === null || value === undefined) return [];
  if (Array.isArray(value)) return value.flatMap((item) => leavesOf(item, path));
  if (typeof value === 'string') return [[path, value]];
  if (typeof value !== 'object') return [[path, JSON.stringify(value)]];
  return Object.entries(value).flatMap(([name, item]) =>
    leavesOf(item, path === '' ? name : `${path}.${name}`),
  );
}
