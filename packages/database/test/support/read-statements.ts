/**
 * Every SQL statement of this package's source. It is composed of its fragments as it is sent.
 *
 * A condition that the code adds only sometimes makes two statements, one with and one without it.
 */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { functionAt, splitAt, templatesIn, type Template } from './sql-templates.ts';

const SOURCE = fileURLToPath(new URL('../../src', import.meta.url));
/** Migrations change the schema; the others are no part of a service. */
const LEFT_OUT = /^(migrations|testing|demo|embedded)\//;
const FRAGMENT_DEPTH_MAX = 4;
/** Ten independent options. */
const VARIANTS_MAX = 1024;
/** In place of a condition of `connection/tenant-statements.ts`: on many nodes one tenant, on one server no condition. */
const OF_ONE_TENANT = 'true /* of one tenant */';
/** Beside a text that a statement has only on a Postgres without Citus. */
export const ON_ONE_SERVER = '/* on one server */';
/** In place of an expression that is not known to be SQL. */
const VALUE = ' $1 ';

export interface SourceStatement {
  /** `folder/file.ts#function` */
  readonly place: string;
  readonly text: string;
}

/** Name → TypeScript expressions, one of which it stands for. */
type Fragments = ReadonlyMap<string, readonly string[]>;

export function readStatements(): SourceStatement[] {
  const files = (readdirSync(SOURCE, { recursive: true }) as string[]).filter(
    (file) => file.endsWith('.ts') && !LEFT_OUT.test(file),
  );
  const sources = new Map(files.map((file) => [file, readFileSync(join(SOURCE, file), 'utf8')]));
  const own = new Map([...sources].map(([file, source]) => [file, fragmentsIn(source)]));
  return [...sources].flatMap(([file, source]) => {
    const fragments = new Map([...importedBy(file, source, own), ...(own.get(file) ?? [])]);
    return templatesIn(source).flatMap(({ start, template }) => {
      if (isBeginOfOthers(source, start)) return [];
      const place = `${file}#${functionAt(source, start)}`;
      return compose(template, fragments, 0).flatMap((text) =>
        STATEMENT.test(text) ? [{ place, text }] : [],
      );
    });
  });
}

/** The beginning of a text that is a whole statement, not a part of one. */
export const STATEMENT = /^\s*(?:\/\*.*?\*\/\s*|\$1\s+)*(select|with|insert|update|delete)\b/i;

/** `const NAME = sql…`, of which other statements begin with `${NAME}`. */
function isBeginOfOthers(source: string, start: number): boolean {
  const name = /\bconst (\w+) = $/.exec(source.slice(Math.max(0, start - 100), start))?.[1];
  return name !== undefined && new RegExp(`\`\\s*\\$\\{${name}\\}`).test(source);
}

function importedBy(
  file: string,
  source: string,
  own: ReadonlyMap<string, Fragments>,
): Map<string, readonly string[]> {
  const imported = new Map<string, readonly string[]>();
  for (const [, names = '', path = ''] of source.matchAll(
    /^import \{([^}]*)\} from '(\.[^']*)';/gm,
  )) {
    const from = own.get(join(file, '..', path));
    for (const name of names.split(',').map((each) => each.trim()))
      if (from?.has(name)) imported.set(name, from.get(name) ?? []);
  }
  return imported;
}

/** Constants with a template in them, and functions that return templates. Whole statements are left out. */
function fragmentsIn(source: string): Map<string, string[]> {
  const fragments = new Map<string, string[]>();
  const isDone = new Set<number>();
  for (const { start, end, template } of templatesIn(source)) {
    const before = source.slice(Math.max(0, start - 300), start);
    const own = /\bconst (\w+)(?: = (?:\([^()]*\)(?:: [^=]*)? =>\s*)?|[^;]{0,200}=\s*\[?\s*)$/.exec(
      before,
    );
    const conditional = /\bconst (\w+) =\s[^;`{]{0,200}\?\s*$/.exec(before);
    const [opening] = template;
    const isWhole = typeof opening === 'string' && STATEMENT.test(opening);
    if (isWhole && !/\bconst \w+ = $/.test(before)) continue;
    const constant = own ?? conditional;
    const name = constant?.[1] ?? functionAt(source, start);
    let expression = source.slice(start, end);
    if (conditional !== null || /=\s*\[\s*$/.test(before)) {
      const from = start - (before.length - (constant?.index ?? 0));
      const place = source.indexOf('=', from) + 1;
      if (isDone.has(place)) continue;
      isDone.add(place);
      [expression] = splitAt(source.slice(place), ';') as [string];
    }
    const known = fragments.get(name);
    // A function that returns one of several.
    const isReturned = constant === null && /\breturn $/.test(before);
    if (known === undefined) fragments.set(name, [expression]);
    else if (isReturned) known.push(expression);
  }
  return fragments;
}

function compose(template: Template, fragments: Fragments, depth: number): string[] {
  return product(
    template.map((part) =>
      typeof part === 'string' ? [part] : textsOf(part.expression, fragments, depth),
    ),
  ).map((parts) => parts.join(''));
}

/** Every choice of one text of each list. */
function product(lists: readonly (readonly string[])[]): string[][] {
  let chosen: string[][] = [[]];
  for (const list of lists) {
    const texts = [...new Set(list)];
    chosen = chosen.flatMap((each) => texts.map((text) => [...each, text]));
    if (chosen.length > VARIANTS_MAX) throw new Error('a statement has too many variants');
  }
  return chosen;
}

/** The texts that it may add to a statement. */
function textsOf(expression: string, fragments: Fragments, depth: number): string[] {
  const text = expression.trim();
  if (depth >= FRAGMENT_DEPTH_MAX) return [VALUE];
  if (text === '' || text === 'undefined') return [''];
  if (text.startsWith('part.isOf(')) return [` ${OF_ONE_TENANT} `];
  const [condition = '', ...branches] = splitAt(text, '?');
  if (branches.length > 0) {
    const [first = '', ...rest] = splitBranches(text.slice(condition.length + 1));
    const whenTrue = textsOf(first, fragments, depth);
    const whenFalse = textsOf(rest.join(':'), fragments, depth);
    if (condition.trim() !== 'isOnNodes') return [...whenTrue, ...whenFalse];
    return [...whenTrue, ...whenFalse.map((each) => `${each} ${ON_ONE_SERVER}`)];
  }
  const joined = /^sql\.join\(([\s\S]*)\)$/.exec(text)?.[1];
  if (joined !== undefined) return joinedTexts(joined, fragments, depth);
  if (text.startsWith('[')) return listTexts(text, ', ', fragments, depth);
  const inside = templatesIn(text);
  if (inside.length > 0)
    return product(inside.map(({ template }) => compose(template, fragments, depth + 1))).map(
      (parts) => parts.join(' '),
    );
  const name = /^(\w+)\s*(?:\(|,|$)/.exec(text)?.[1] ?? '';
  const known = fragments.get(name) ?? [];
  if (known.length === 0) return [VALUE];
  return known.flatMap((each) => textsOf(each, fragments, depth + 1)).map((each) => ` ${each} `);
}

/** `a : b`, of which `a` may have branches of its own. */
function splitBranches(text: string): string[] {
  const parts = splitAt(text, ':');
  let count = 1;
  while (splitAt(parts.slice(0, count).join(':'), '?').length > count) count++;
  return [parts.slice(0, count).join(':'), ...parts.slice(count)];
}

function joinedTexts(joined: string, fragments: Fragments, depth: number): string[] {
  const [list = '', separator = ''] = splitAt(joined, ',').map((each) => each.trim());
  const between = /`([^`]*)`/.exec(separator)?.[1] ?? ', ';
  const [known] = /^\w+$/.test(list) ? (fragments.get(list) ?? []) : [list];
  if (known === undefined) return [VALUE];
  const items = known.trim();
  return items.startsWith('[')
    ? listTexts(items, between, fragments, depth)
    : [VALUE, ...(known === list ? [] : textsOf(items, fragments, depth + 1))].slice(-1);
}

function listTexts(list: string, separator: string, fragments: Fragments, depth: number): string[] {
  const inner = list.slice(1, list.lastIndexOf(']'));
  return product(splitAt(inner, ',').map((each) => textsOf(each, fragments, depth))).map((items) =>
    items.filter((item) => item.trim() !== '').join(separator),
  );
}
