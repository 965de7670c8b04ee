/**
 * Tables of tenants that a statement touches without naming their tenant. For tests: a statement that forgets the
 * tenant's column reads or changes rows of others, and a test with one workspace would not notice.
 *
 * A reference to a table counts as bound if each of its rows satisfies a comparison (`where`, `on`, `using`, the columns
 * of an `insert`) of its tenant's column with anything that is not just another such table: a parameter, a value of an
 * outer query, of a common table expression or of a list. A condition of an outer join binds only the side that may be
 * absent. It reads enough of SQL for the statements of this package; it is no proof.
 */
import { readTokens, type SqlToken } from './sql-tokens.ts';
import {
  aliasesOf,
  beginsQuery,
  isGroup,
  NO_CONDITION,
  readCondition,
  type Condition,
} from './statement-conditions.ts';

/** Table → its tenant's columns, any of which names the tenant. */
export type TenantColumns = ReadonlyMap<string, readonly string[]>;

interface Reference {
  /** As its columns are qualified. */
  readonly alias: string;
  /** Undefined: a function, a query, a common table expression. */
  readonly table: string | undefined;
  readonly columns: readonly string[];
}

/** @returns the names of the tables, once for each reference that is not bound. */
export function findUnboundTables(text: string, tenantColumns: TenantColumns): string[] {
  const unbound: string[] = [];
  readQuery(readTokens(text), tenantColumns, new Set(), unbound);
  return unbound;
}

const CLAUSES = new Set([
  'select', 'from', 'where', 'set', 'values', 'on', 'using', 'returning', 'group', 'order', 'limit', 'having', 'window',
  'offset', 'for', 'join', 'into', 'update', 'delete', 'insert', 'when', 'then',
]); // prettier-ignore
const SET_OPERATIONS = new Set(['union', 'except', 'intersect']);
const NO_ALIAS = new Set([
  ...CLAUSES, 'left', 'right', 'inner', 'full', 'cross', 'natural', 'lateral', 'as', 'do', 'tablesample', 'with',
]); // prettier-ignore
const JOINS = new Set(['left', 'right', 'inner', 'cross', 'full']);

type JoinKind = 'inner' | 'left' | 'right' | 'full';

interface JoinedCondition {
  readonly tokens: readonly SqlToken[];
  /** Aliases that it can bind; all of them if absent. */
  readonly binds?: ReadonlySet<string>;
}

function readQuery(
  tokens: readonly SqlToken[],
  tenantColumns: TenantColumns,
  outerNames: ReadonlySet<string>,
  unbound: string[],
): void {
  const names = new Set(outerNames);
  let start = 0;
  if (tokens[0] === 'with') {
    start = 1;
    while (start < tokens.length) {
      const isRecursive = tokens[1] === 'recursive';
      if (tokens[start] === 'recursive') start++;
      const name = tokens[start] as string;
      // Its own query reads the table of this name.
      if (isRecursive) names.add(name);
      start++;
      while (
        start < tokens.length &&
        !(isGroup(tokens[start]) && beginsQuery(tokens[start] as SqlToken[]))
      )
        start++;
      readQuery((tokens[start] ?? []) as SqlToken[], tenantColumns, names, unbound);
      names.add(name);
      start++;
      if (tokens[start] !== ',') break;
      start++;
    }
  }
  let from = start;
  for (let at = start; at <= tokens.length; at++) {
    const token = tokens[at];
    if (at < tokens.length && !(typeof token === 'string' && SET_OPERATIONS.has(token))) continue;
    let part = tokens.slice(tokens[from] === 'all' ? from + 1 : from, at);
    if (part.length === 1 && isGroup(part[0])) part = [...part[0]];
    if (part[0] === 'with') readQuery(part, tenantColumns, names, unbound);
    else new QueryScope(part, tenantColumns, names, unbound).read();
    from = at + 1;
  }
}

class QueryScope {
  readonly #tokens: readonly SqlToken[];
  readonly #tenantColumns: TenantColumns;
  readonly #names: ReadonlySet<string>;
  readonly #unbound: string[];
  readonly #references: Reference[] = [];
  readonly #conditions: JoinedCondition[] = [];
  readonly #usings: {
    readonly columns: readonly SqlToken[];
    readonly joined: readonly Reference[];
    readonly join: JoinKind;
  }[] = [];
  /** References before it are not of the item of `from` that is read: the target of an `update`, or behind a comma. */
  #itemStart = 0;
  /** Aliases whose tenant is known. */
  readonly #bound = new Set<string>();
  #join: JoinKind = 'inner';

  constructor(
    tokens: readonly SqlToken[],
    tenantColumns: TenantColumns,
    names: ReadonlySet<string>,
    unbound: string[],
  ) {
    this.#tokens = tokens;
    this.#tenantColumns = tenantColumns;
    this.#names = names;
    this.#unbound = unbound;
  }

  read(): void {
    this.#readClauses();
    const own = {
      tenantAt: (list: readonly SqlToken[], at: number) => this.#tenantAt(list, at),
      tableAt: (list: readonly SqlToken[], at: number) => this.#tableAt(list, at),
    };
    const conditions = [
      ...this.#usings.map(({ columns, joined, join }) => ({
        condition: readUsing(columns, joined),
        binds: boundBy(join, joined),
      })),
      ...this.#conditions.map(({ tokens, binds }) => ({
        condition: readCondition(tokens, own),
        binds,
      })),
    ];
    for (let count = -1; count !== this.#bound.size;) {
      count = this.#bound.size;
      for (const { condition, binds } of conditions) {
        const found = [...aliasesOf(condition, this.#bound)];
        for (const alias of found) if (binds?.has(alias) ?? true) this.#bound.add(alias);
      }
    }
    for (const { alias, table } of this.#references)
      if (table !== undefined && !this.#bound.has(alias)) this.#unbound.push(table);
  }

  #readClauses(): void {
    const tokens = this.#tokens;
    let clause = '';
    let condition: SqlToken[] | undefined;
    let caseDepth = 0;
    let isAfterConflict = false;
    for (let at = 0; at < tokens.length; at++) {
      const token = tokens[at] as SqlToken;
      if (token === 'case') caseDepth++;
      if (token === 'end' && caseDepth > 0) caseDepth--;
      if (
        typeof token === 'string' &&
        CLAUSES.has(token) &&
        tokens[at - 1] !== '.' &&
        // `is distinct from` is no clause.
        !(token === 'from' && tokens[at - 1] === 'distinct') &&
        caseDepth === 0
      ) {
        const previous = clause;
        clause = token;
        condition = undefined;
        if (token === 'using') {
          const next = tokens[at + 1];
          if (isGroup(next) && !beginsQuery(next)) {
            const joined = this.#references.slice(this.#itemStart);
            this.#usings.push({ columns: next, joined, join: this.#join });
            at++;
            clause = 'from';
          } else at = this.#readItem(at + 1) - 1;
        } else if (token === 'on' && tokens[at + 1] === 'conflict') {
          clause = 'conflict';
          isAfterConflict = true;
        } else if (token === 'where' || token === 'on' || token === 'having') {
          condition = [];
          const binds =
            token === 'on'
              ? boundBy(this.#join, this.#references.slice(this.#itemStart))
              : undefined;
          // It is about the row in the way of an insert.
          if (!isAfterConflict)
            this.#conditions.push({ tokens: condition, ...(binds && { binds }) });
        } else if (token === 'update' && ['do', 'for', 'key'].includes(tokens[at - 1] as string))
          clause = previous;
        else if (token === 'join') {
          this.#join = this.#joinBefore(at);
          at = this.#readReference(at + 1) - 1;
        } else if (token === 'into') at = this.#readReference(at + 1, true) - 1;
        else if (token === 'from' || token === 'update') at = this.#readItem(at + 1) - 1;
        else if (token === 'for') clause = 'for';
        continue;
      }
      if (condition !== undefined) {
        // A join ends the condition of the one before.
        if (
          typeof token === 'string' &&
          JOINS.has(token) &&
          caseDepth === 0 &&
          !isGroup(tokens[at + 1])
        ) {
          condition = undefined;
          clause = 'from';
        } else if (token === ',' && clause === 'on') {
          condition = undefined;
          clause = 'from';
          at = this.#readItem(at + 1) - 1;
        } else condition.push(token);
      } else if (token === ',' && (clause === 'from' || clause === 'join')) {
        at = this.#readItem(at + 1) - 1;
        continue;
      }
      if (isGroup(token)) this.#readGroup(token);
    }
  }

  #joinBefore(at: number): JoinKind {
    const word = this.#tokens[at - (this.#tokens[at - 1] === 'outer' ? 2 : 1)];
    return word === 'left' || word === 'right' || word === 'full' ? word : 'inner';
  }

  #readGroup(group: readonly SqlToken[]): void {
    if (beginsQuery(group)) {
      const names = new Set(this.#names);
      readQuery(group, this.#tenantColumns, names, this.#unbound);
    } else for (const token of group) if (isGroup(token)) this.#readGroup(token);
  }

  /** The first of `from`, or the one behind a comma. */
  #readItem(start: number): number {
    this.#itemStart = this.#references.length;
    this.#join = 'inner';
    return this.#readReference(start);
  }

  /** @returns the place behind the reference and its alias. */
  #readReference(start: number, isInsert = false): number {
    const tokens = this.#tokens;
    let at = start;
    while (tokens[at] === 'only' || tokens[at] === 'lateral' || tokens[at] === 'rows') at++;
    const first = tokens[at];
    if (first === undefined) return at;
    at++;
    let table: string | undefined;
    if (isGroup(first)) {
      if (beginsQuery(first)) this.#readGroup(first);
      else
        new QueryScope(['from', ...first], this.#tenantColumns, this.#names, this.#unbound).read();
    } else {
      let name = first;
      while (tokens[at] === '.') {
        name = tokens[at + 1] as string;
        at += 2;
      }
      const next = tokens[at];
      const isFunction = isGroup(next) && !isInsert;
      if (isFunction) {
        this.#readGroup(next);
        at++;
      } else if (this.#tenantColumns.has(name) && !this.#names.has(name)) table = name;
      if (isFunction && tokens[at] === 'with') at += 2;
    }
    const columns = table === undefined ? [] : (this.#tenantColumns.get(table) ?? []);
    let alias = table ?? (typeof first === 'string' ? first : '');
    if (tokens[at] === 'as') at++;
    const named = tokens[at];
    if (typeof named === 'string' && /^[a-z_]\w*$/.test(named) && !NO_ALIAS.has(named)) {
      alias = named;
      at++;
      if (isGroup(tokens[at]) && !isInsert) at++;
    }
    if (!isInsert) {
      this.#references.push({ alias, table, columns });
      return at;
    }
    const inserted = tokens[at];
    const names = isGroup(inserted) && !beginsQuery(inserted) ? inserted : [];
    if (table !== undefined && !columns.some((column) => names.includes(column)))
      this.#unbound.push(table);
    return names.length > 0 ? at + 1 : at;
  }

  #tenantAt(tokens: readonly SqlToken[], at: number): string | undefined {
    const name = tokens[at];
    if (typeof name !== 'string') return undefined;
    const tables = this.#references.filter(({ columns }) => columns.includes(name));
    if (tokens[at - 1] === '.') {
      const qualifier = tokens[at - 2];
      return tables.find(({ alias }) => alias === qualifier)?.alias;
    }
    const isJoined = this.#usings.some(({ columns }) => columns.includes(name));
    return tables.length === 1 || isJoined ? tables[0]?.alias : undefined;
  }

  #tableAt(tokens: readonly SqlToken[], at: number): string | undefined {
    if (tokens[at - 1] !== '.') return this.#tenantAt(tokens, at);
    const qualifier = tokens[at - 2];
    return this.#references.find(({ alias, table }) => table && alias === qualifier)?.alias;
  }
}

/** `using`: the last of the tables and lists with the ones before. */
function readUsing(names: readonly SqlToken[], joined: readonly Reference[]): Condition {
  const last = joined.at(-1);
  if (last === undefined) return NO_CONDITION;
  const isTenant = ({ columns }: Reference): boolean =>
    columns.some((column) => names.includes(column));
  const from = (one: Reference, other: Reference): Condition => ({
    kind: 'from',
    alias: one.alias,
    sources: other.table === undefined ? [] : [other.alias],
  });
  const of = joined.slice(0, -1).flatMap((each): Condition[] => {
    if (isTenant(each) && isTenant(last))
      return [{ kind: 'same', aliases: [each.alias, last.alias] }];
    if (isTenant(each)) return [from(each, last)];
    return isTenant(last) ? [from(last, each)] : [];
  });
  return { kind: 'all', of };
}

/**
 * The condition of an outer join holds only for rows of the side that may be absent.
 *
 * @returns the aliases that it can bind; `undefined` if it can bind all of them.
 */
function boundBy(join: JoinKind, joined: readonly Reference[]): ReadonlySet<string> | undefined {
  if (join === 'inner') return undefined;
  const aliases = joined.map(({ alias }) => alias);
  if (join === 'left') return new Set(aliases.slice(-1));
  return new Set(join === 'right' ? aliases.slice(0, -1) : []);
}
