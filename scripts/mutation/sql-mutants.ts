/**
 * The mutants of the SQL in a `sql` template: conditions, comparisons, the order of rows and of arguments, locks, and
 * assignments. Most changes that Postgres refuses are avoided; the others fail in the first test.
 */
import { nodesAt, type SyntaxNode } from './syntax-tree.ts';

interface SqlChange {
  readonly start: number;
  readonly end: number;
  readonly replacement: string;
}

/** Words that end a condition at its own depth of parentheses. */
const CONDITION_ENDS =
  /^(and|or|order\s+by|group\s+by|returning|limit|for\s+(update|share|no\s+key|key)|union|on\s+conflict|set|where|having|from|then|else|end|when|as|select|values|left|inner|join|window|offset)\b/i;

/** Each pattern is tried on the SQL, whose `${…}` are one word each. */
const REPLACEMENTS: readonly (readonly [RegExp, string])[] = [
  [/(?<=\s)<=(?=\s)/g, '<'],
  [/(?<=\s)>=(?=\s)/g, '>'],
  [/(?<=\s)<(?=\s)/g, '<='],
  [/(?<=\s)>(?=\s)/g, '>='],
  [/(?<=\s)<>(?=\s)/g, '='],
  [/\bis not null\b/g, 'is null'],
  [/\bis null\b/g, 'is not null'],
  [/\bnot (?=exists\b|like\b|in\b)/g, ''],
  [/(?<!not )\bexists(?= ?\()/g, 'not exists'],
  [/\bleast\b/g, 'greatest'],
  [/\bgreatest\b/g, 'least'],
  [/\bmin(?=\()/g, 'max'],
  [/\bmax(?=\()/g, 'min'],
  [/(?<=\s)\+(?=\s)/g, '-'],
  [/(?<=\s)-(?=\s)/g, '+'],
  [/\bfor (update|share|no key update|key share)( of \w+)?( skip locked| nowait)?/g, ''],
  [/\bskip locked\b/g, ''],
  [/\bor(?=\s)/g, 'and'],
  [/\bdesc\b/g, 'asc'],
  [/\blimit \S+/g, ''],
  [/\btrue\b/g, 'false'],
  [/\bfalse\b/g, 'true'],
  [/\bdistinct\b/g, ''],
  [/\bunion all\b/g, 'union'],
];

/** @param template - the template after the tag `sql`. Undefined: there are no mutants. */
export function sqlMutants(
  template: SyntaxNode | undefined,
  text: string,
): (SqlChange & { readonly kind: string })[] {
  if (!template) return [];
  const base = template.start + 1;
  const query = withoutExpressions(template, text);
  return [
    ...REPLACEMENTS.flatMap(([pattern, replacement]) =>
      [...query.matchAll(pattern)].map((match) => ({
        start: match.index,
        end: match.index + match[0].length,
        replacement,
      })),
    ),
    ...removedConditions(query),
    ...swappedArguments(query, text.slice(base, template.end - 1)),
    ...removedAssignments(query),
  ].map(({ start, end, replacement }) => ({
    start: base + start,
    end: base + end,
    replacement,
    kind: 'sql',
  }));
}

/** The SQL at its own offsets, each `${…}` as so many letters. */
function withoutExpressions(template: SyntaxNode, text: string): string {
  let query = text.slice(template.start + 1, template.end - 1);
  for (const { start, end } of nodesAt(template, 'expressions')) {
    const from = text.lastIndexOf('${', start) - template.start - 1;
    const to = text.indexOf('}', end) + 1 - template.start - 1;
    query = query.slice(0, from) + 'X'.repeat(to - from) + query.slice(to);
  }
  return query;
}

/** `and …` goes; the first condition after `where` and `when` becomes `true`, and `when` `false` too. */
function removedConditions(query: string): SqlChange[] {
  const changes: SqlChange[] = [];
  for (const match of query.matchAll(/\b(and|where|when|on)\s+/gi)) {
    const word = match[1]?.toLowerCase();
    if (word === 'on' && /^conflict\b/i.test(query.slice(match.index + match[0].length))) continue;
    if (word === 'and' && /\bbetween\s+\S+\s+$/i.test(query.slice(0, match.index))) continue;
    const start = match.index + match[0].length;
    const end = endOfCondition(query, start);
    if (word === 'and') changes.push({ start: match.index, end, replacement: '' });
    else changes.push({ start, end, replacement: 'true ' });
    if (word === 'when') changes.push({ start, end, replacement: 'false ' });
  }
  return changes;
}

function endOfCondition(query: string, start: number): number {
  let depth = 0;
  for (let at = start; at < query.length; at++) {
    const character = query[at];
    if (character === '(') depth++;
    else if (character === ')' && --depth < 0) return at;
    else if (character === ',' && depth === 0) return at;
    else if (depth === 0 && /\s/.test(query[at - 1] ?? '') && isEnd(query, at)) return at;
  }
  return query.length;
}

const isEnd = (query: string, at: number): boolean => CONDITION_ENDS.test(query.slice(at, at + 24));

/** `coalesce(a, b)` becomes `coalesce(b, a)`. */
function swappedArguments(query: string, sql: string): SqlChange[] {
  return [...query.matchAll(/\bcoalesce\(/g)].flatMap((match) => {
    const start = match.index + match[0].length;
    const comma = endOfCondition(query, start);
    const end = endOfCondition(query, comma + 1);
    if (query[comma] !== ',' || query[end] !== ')') return [];
    const replacement = `${sql.slice(comma + 1, end)}, ${sql.slice(start, comma)}`;
    return [{ start, end, replacement }];
  });
}

/** Of `set a = 1, b = 2` each assignment is left out in turn. */
function removedAssignments(query: string): SqlChange[] {
  return [...query.matchAll(/\bset\s+(?=[\w".]+\s*=)/gi)].flatMap((match) => {
    const parts: { start: number; end: number }[] = [];
    let start = match.index + match[0].length;
    for (;;) {
      const end = endOfCase(query, start);
      parts.push({ start, end });
      if (query[end] !== ',') break;
      start = end + 1;
    }
    if (parts.length < 2) return [];
    return parts.map((part, index) =>
      index === 0
        ? { start: part.start, end: part.end + 1, replacement: '' }
        : { start: part.start - 1, end: part.end, replacement: '' },
    );
  });
}

/** As `endOfCondition`, beyond the words within `case … end`. */
function endOfCase(query: string, start: number): number {
  const blank = (part: string) => 'X'.repeat(part.length);
  return endOfCondition(query.replaceAll(/\bcase\b[^]*?\bend\b/gi, blank), start);
}
