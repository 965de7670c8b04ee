/**
 * Conditions of SQL, read for the tables whose tenant they name. For tests.
 *
 * A comparison counts if every row that the condition lets through satisfies it: each alternative of an `or` must name
 * the tenant, and a negated comparison, a part of an expression and an argument of a function name no tenant.
 */
import type { SqlToken } from './sql-tokens.ts';

export type Condition =
  /** The tenant's column of `alias` equals a value, which may be made from columns of other tables. */
  | { readonly kind: 'from'; readonly alias: string; readonly sources: readonly string[] }
  /** Two tables have the same tenant. */
  | { readonly kind: 'same'; readonly aliases: readonly [string, string] }
  | { readonly kind: 'all' | 'any'; readonly of: readonly Condition[] };

/** The query's own tables of tenants. */
export interface OwnTables {
  /** @returns the alias of the table whose tenant column stands at that place, if any. */
  tenantAt(tokens: readonly SqlToken[], at: number): string | undefined;
  /** @returns the alias of the table whose column, of any kind, is at that place, if it is known. */
  tableAt(tokens: readonly SqlToken[], at: number): string | undefined;
}

/** It lets every row through. */
export const NO_CONDITION: Condition = { kind: 'all', of: [] };

export const isGroup = (token: SqlToken | undefined): token is readonly SqlToken[] =>
  Array.isArray(token);
export const beginsQuery = (group: readonly SqlToken[]): boolean =>
  ['select', 'with', 'values', 'insert', 'update', 'delete'].includes(group[0] as string) ||
  (isGroup(group[0]) && beginsQuery(group[0]));

const OPERATORS = new Set([
  '=', '<', '>', '<=', '>=', '<>', '!=', 'in', 'is', 'not', 'like', 'ilike', 'between',
]); // prettier-ignore

export function readCondition(tokens: readonly SqlToken[], own: OwnTables): Condition {
  const whole = withoutCases(tokens);
  const alternatives = split(whole, 'or');
  if (alternatives.length > 1)
    return { kind: 'any', of: alternatives.map((each) => readCondition(each, own)) };
  const parts = splitByAnd(whole);
  if (parts.length > 1) return { kind: 'all', of: parts.map((each) => readCondition(each, own)) };
  const [only] = whole;
  if (whole.length === 1 && isGroup(only))
    return beginsQuery(only) ? NO_CONDITION : readCondition(only, own);
  return readComparison(whole, own);
}

/** @returns the aliases whose tenant is known in each row that the condition lets through. */
export function aliasesOf(condition: Condition, known: ReadonlySet<string>): Set<string> {
  switch (condition.kind) {
    case 'from': {
      const isKnown = condition.sources.every((source) => known.has(source));
      return isKnown ? new Set(known).add(condition.alias) : new Set(known);
    }
    case 'same': {
      const [one, other] = condition.aliases;
      const isKnown = known.has(one) || known.has(other);
      return isKnown ? new Set(known).add(one).add(other) : new Set(known);
    }
    case 'any':
      return condition.of
        .map((each) => aliasesOf(each, known))
        .reduce((kept, each) => new Set([...kept].filter((alias) => each.has(alias))));
    case 'all': {
      let found = new Set(known);
      for (let count = -1; count !== found.size;) {
        count = found.size;
        for (const each of condition.of) found = aliasesOf(each, found);
      }
      return found;
    }
  }
}

/** `case … end` is an expression: its parts are no conditions of the statement. */
function withoutCases(tokens: readonly SqlToken[]): SqlToken[] {
  const kept: SqlToken[] = [];
  let depth = 0;
  for (const token of tokens) {
    if (token === 'case' && depth++ === 0) kept.push("''");
    if (depth === 0) kept.push(token);
    if (token === 'end' && depth > 0) depth--;
  }
  return kept;
}

function split(tokens: readonly SqlToken[], separator: string): SqlToken[][] {
  const items: SqlToken[][] = [[]];
  for (const token of tokens) {
    if (token === separator) items.push([]);
    else items.at(-1)?.push(token);
  }
  return items;
}

function splitByAnd(tokens: readonly SqlToken[]): SqlToken[][] {
  const items: SqlToken[][] = [[]];
  let isBetween = false;
  for (const token of tokens) {
    if (token === 'between') isBetween = true;
    if (token === 'and' && !isBetween) items.push([]);
    else items.at(-1)?.push(token);
    if (token === 'and') isBetween = false;
  }
  return items;
}

/** `column = value`, `value = column`, `column in (…)`, and rows of them. */
function readComparison(tokens: readonly SqlToken[], own: OwnTables): Condition {
  const places = [...tokens.keys()].filter((at) => OPERATORS.has(tokens[at] as string));
  const [place] = places;
  if (place === undefined || places.length > 1) return NO_CONDITION;
  const operator = tokens[place];
  if (operator !== '=' && operator !== 'in') return NO_CONDITION;
  const left = tokens.slice(0, place);
  const right = tokens.slice(place + 1);
  // True for each row if the list is empty.
  if (right[0] === 'all') return NO_CONDITION;
  const [row] = left;
  if (left.length === 1 && isGroup(row)) return readRows(row, right, own);
  return compare(left, right, own);
}

function readRows(row: readonly SqlToken[], right: readonly SqlToken[], own: OwnTables): Condition {
  if (beginsQuery(row)) return NO_CONDITION;
  const [other] = right;
  const isRow =
    right.length === 1 && isGroup(other) && !beginsQuery(other) && !other.every(isGroupOrComma);
  const others = isRow ? split(other, ',') : [];
  return {
    kind: 'all',
    of: split(row, ',').map((item, at) => compare(item, isRow ? (others[at] ?? []) : right, own)),
  };
}

const isGroupOrComma = (token: SqlToken): boolean => isGroup(token) || token === ',';

function compare(left: readonly SqlToken[], right: readonly SqlToken[], own: OwnTables): Condition {
  const one = soleTenant(left, own);
  const other = soleTenant(right, own);
  if (one !== undefined && other !== undefined) return { kind: 'same', aliases: [one, other] };
  if (one !== undefined) return { kind: 'from', alias: one, sources: tablesIn(right, own) };
  if (other !== undefined) return { kind: 'from', alias: other, sources: tablesIn(left, own) };
  return NO_CONDITION;
}

function soleTenant(tokens: readonly SqlToken[], own: OwnTables): string | undefined {
  const isQualified = tokens.length === 3 && tokens[1] === '.';
  return tokens.length === 1 || isQualified ? own.tenantAt(tokens, tokens.length - 1) : undefined;
}

/** `coalesce($1, environment_id)` has the table itself: such a comparison names no tenant. */
const tablesIn = (tokens: readonly SqlToken[], own: OwnTables): string[] =>
  tokens.flatMap((token, at) => {
    if (isGroup(token)) return beginsQuery(token) ? [] : tablesIn(token, own);
    return own.tableAt(tokens, at) ?? [];
  });
