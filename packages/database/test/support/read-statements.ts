/** Every SQL statement of this package's source. It is composed of its fragments as it is sent. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const SOURCE = fileURLToPath(new URL('../../src', import.meta.url));
/** Migrations change the schema; the others are no part of a service. */
const LEFT_OUT = /^(migrations|testing|demo|embedded)\//;
const FRAGMENT_DEPTH_MAX = 4;
/** In place of a condition of `connection/tenant-statements.ts`: on many nodes one tenant, on one server no condition. */
const OF_ONE_TENANT = 'true /* of one tenant */';

export interface SourceStatement {
  /** `folder/file.ts#function` */
  readonly place: string;
  readonly text: string;
}

/** A template literal behind `sql`: its texts, and the expressions between. */
type Template = readonly (string | { readonly expression: string })[];

export function readStatements(): SourceStatement[] {
  const files = (readdirSync(SOURCE, { recursive: true }) as string[]).filter(
    (file) => file.endsWith('.ts') && !LEFT_OUT.test(file),
  );
  const sources = new Map(files.map((file) => [file, readFileSync(join(SOURCE, file), 'utf8')]));
  const shared = new Map<string, Template>();
  for (const source of sources.values())
    for (const [name, template] of fragmentsIn(source))
      if (new RegExp(`^export (?:const|function) ${name}\\b`, 'm').test(source))
        shared.set(name, template);
  return [...sources].flatMap(([file, source]) => {
    const fragments = new Map([...shared, ...fragmentsIn(source)]);
    return templatesIn(source).flatMap(({ start, template }) => {
      const text = compose(template, fragments, 0);
      if (!STATEMENT.test(text)) return [];
      return [{ place: `${file}#${functionAt(source, start)}`, text }];
    });
  });
}

/** Templates that make a statement of their own, not the ones inside another. */
function templatesIn(source: string): { start: number; template: Template }[] {
  const found: { start: number; template: Template }[] = [];
  const opening = /\bsql(?:<(?:[^<>`]|<[^<>`]*>)*>)?`/g;
  for (let match = opening.exec(source); match; match = opening.exec(source)) {
    const { template, end } = readTemplate(source, opening.lastIndex);
    found.push({ start: match.index, template });
    opening.lastIndex = end;
  }
  return found;
}

/** `const NAME = sql…`, and functions that return their first template. Whole statements are left out. */
function fragmentsIn(source: string): Map<string, Template> {
  const fragments = new Map<string, Template>();
  for (const { start, template } of templatesIn(source)) {
    const [opening] = template;
    if (typeof opening === 'string' && STATEMENT.test(opening)) continue;
    const own = /\bconst (\w+)(?: = (?:\([^()]*\)(?:: [^=]*)? =>\s*)?|[^;]{0,200}=\s*\[?\s*)$/.exec(
      source.slice(Math.max(0, start - 300), start),
    )?.[1];
    const name = own ?? functionAt(source, start);
    if (!fragments.has(name)) fragments.set(name, template);
  }
  return fragments;
}

const STATEMENT = /^\s*(?:\/\*.*?\*\/\s*|\$1\s+)?(select|with|insert|update|delete)\b/i;

function functionAt(source: string, place: number): string {
  const names = source
    .slice(0, place)
    .matchAll(/^(?:export )?(?:async )?(?:function\*? |const |class )(\w+)/gm);
  return [...names].at(-1)?.[1] ?? '';
}

function readTemplate(source: string, start: number): { template: Template; end: number } {
  const parts: (string | { expression: string })[] = [];
  let text = '';
  for (let at = start; at < source.length; at++) {
    const character = source[at] as string;
    if (character === '`') {
      parts.push(text);
      return { template: parts, end: at + 1 };
    }
    if (character === '\\') {
      text += source[++at];
    } else if (character === '$' && source[at + 1] === '{') {
      const end = endOfExpression(source, at + 2);
      parts.push(text, { expression: source.slice(at + 2, end) });
      text = '';
      at = end;
    } else text += character;
  }
  throw new Error('a template does not end');
}

/** The place of the brace that ends it. */
function endOfExpression(source: string, start: number): number {
  let depth = 0;
  for (let at = start; at < source.length; at++) {
    const character = source[at];
    if (character === '`') at = readTemplate(source, at + 1).end - 1;
    else if (character === "'") at = source.indexOf("'", at + 1);
    else if (character === '{') depth++;
    else if (character === '}' && depth-- === 0) return at;
  }
  throw new Error('an expression does not end');
}

function compose(
  template: Template,
  fragments: ReadonlyMap<string, Template>,
  depth: number,
): string {
  return template
    .map((part) => (typeof part === 'string' ? part : textOf(part.expression, fragments, depth)))
    .join('');
}

function textOf(
  expression: string,
  fragments: ReadonlyMap<string, Template>,
  depth: number,
): string {
  if (depth >= FRAGMENT_DEPTH_MAX) return ' $1 ';
  if (/^\s*part\.isOf\(/.test(expression)) return ` ${OF_ONE_TENANT} `;
  const inside = expression.startsWith('sql.join(') ? [] : templatesIn(expression);
  if (inside.length > 0)
    return inside.map(({ template }) => compose(template, fragments, depth + 1)).join(' ');
  const name = /^\s*(?:sql\.join\()?(\w+)\s*(?:\(|,|$)/.exec(expression)?.[1] ?? '';
  const fragment = fragments.get(name);
  return fragment === undefined ? ' $1 ' : ` ${compose(fragment, fragments, depth + 1)} `;
}
