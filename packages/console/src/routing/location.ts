/**
 * The address of the page: the screen, its object, and its filters. All state of a screen that a user may want to keep
 * is here, so that Back, a reload and a copied link show the same.
 *
 * Pure. A value that a screen does not know is left out of the address.
 */

/** Allowed values of a parameter of the query. */
export type QueryRule = readonly string[] | RegExp;
export type QueryRules = Readonly<Record<string, QueryRule>>;

/** Parameters that all screens have, and links keep. */
const COMMON_QUERY = {
  /** Times in UTC, unless it is the zone of this machine or of the account. */
  tz: ['local', 'account'],
  /** The workspace, if it is not the user's first. */
  workspace: /^[1-9]\d{0,9}$/,
} satisfies QueryRules;

export interface Place {
  /** Percent-decoded parameters of the path. */
  readonly params: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
}

/** @returns the parameters of the path, or undefined if it is another path. `/webhooks/:id` */
export function matchPath(pattern: string, path: string): Record<string, string> | undefined {
  const wanted = pattern.split('/');
  const given = path.replace(/(?<=.)\/$/, '').split('/');
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [index, part] of wanted.entries()) {
    const text = given[index] ?? '';
    if (!part.startsWith(':')) {
      if (part !== text) return undefined;
      continue;
    }
    try {
      params[part.slice(1)] = decodeURIComponent(text);
    } catch {
      return undefined;
    }
    if (text === '') return undefined;
  }
  return params;
}

export const isAdmitted = (rule: QueryRule, value: string): boolean =>
  rule instanceof RegExp ? rule.test(value) : rule.includes(value);

/** The value, if it is a choice. */
export const choiceOf = <Choice extends string>(
  choices: readonly Choice[],
  value: string | undefined,
): Choice | undefined => choices.find((each) => each === value);

/** The values that the rules admit; the first of several with one name. */
export function readQuery(search: string, rules: QueryRules): Record<string, string> {
  const given = new URLSearchParams(search);
  const known: Record<string, string> = {};
  for (const [name, rule] of Object.entries({ ...COMMON_QUERY, ...rules })) {
    const value = given.get(name);
    if (value === null) continue;
    if (isAdmitted(rule, value)) known[name] = value;
  }
  return known;
}

/** In the order of names, so that one state has one address. */
export function writeQuery(query: Readonly<Record<string, string | undefined>>): string {
  const known = Object.entries(query)
    .filter((entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== '')
    .toSorted(([one], [other]) => (one < other ? -1 : 1));
  return known.length === 0 ? '' : `?${new URLSearchParams(known).toString()}`;
}

/** A link to another screen, which keeps the parameters of all screens. */
export function linkTo(
  path: string,
  current: Readonly<Record<string, string>>,
  query: Readonly<Record<string, string>> = {},
): string {
  const kept = Object.fromEntries(
    Object.keys(COMMON_QUERY).flatMap((name) => {
      const value = current[name];
      return value === undefined ? [] : [[name, value] as const];
    }),
  );
  return `${path}${writeQuery({ ...kept, ...query })}`;
}

/** One segment of a path. */
export const segment = encodeURIComponent;
