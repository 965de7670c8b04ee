/**
 * Tables of tenants that a statement touches without naming their tenant. For tests: a statement that forgets the
 * tenant's column reads or changes rows of others, and a test with one workspace would not notice.
 *
 * A reference to a table counts as bound if a condition of its own query (`where`, `on`, `using`, the columns of an
 * `insert`) compares its tenant's column with anything that is not just another such table: a parameter, a value of an
 * outer query, of a common table expression or of a list. It reads enough of SQL for the statements of this package;
 * it is no proof.
 */
import { readTokens, type SqlToken } from './sql-tokens.ts';

/** Table → its tenant's columns, any of which names the tenant. */
export type TenantColumns = ReadonlyMap<string, readonly string[]>;

interface Reference {
  /** As its columns are qualified. */
  readonly alias: string;
  /** Undefined: a function, a query, a common table expression. */
  readonly table: string | undefined;
  readonly columns: readonly string[];
  /** The target of an `insert`: no condition is about it. */
  readonly isInserted: boolean;
}

/** @returns the names of the tables, once for each reference that is not bound. */
export function findUnboundTables(text: string, tenantColumns: TenantColumns): string[] {
  const unbound: string[] = [];
  readQuery(readTokens(text), tenantColumns, new Set(), unbound);
  return unbound;
}

const isGroup = (token: SqlToken | undefined): token is readonly SqlToken[] => Array.isArray(token);
const beginsQuery = (group: readonly SqlToken[]): boolean =>
  ['select', 'with', 'values', 'insert', 'update', 'delete'].includes(group[0] as string) ||
  (isGroup(group[0]) && beginsQuery(group[0]));

const CLAUSES = new Set([
  'select', 'from', 'where', 'set', 'values', 'on', 'using', 'returning', 'group', 'order', 'limit', 'having', 'window',
  'offset', 'for', 'join', 'into', 'update', 'delete', 'insert', 'when', 'then',
]); // prettier-ignore
const SET_OPERATIONS = new Set(['union', 'except', 'intersect']);
const NO_ALIAS = new Set([
  ...CLAUSES, 'left', 'right', 'inner', 'full', 'cross', 'natural', 'lateral', 'as', 'do', 'tablesample', 'with',
]); // prettier-ignore
const COMPARISONS = new Set(['=', 'in']);

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
      if (tokens[start] === 'recursive') start++;
      names.add(tokens[start] as string);
      start++;
      while (
        start < tokens.length &&
        !(isGroup(tokens[start]) && beginsQuery(tokens[start] as SqlToken[]))
      )
        start++;
      readQuery((tokens[start] ?? []) as SqlToken[], tenantColumns, names, unbound);
      start++;
      if (tokens[start] !== ',') break;
      start++;
    }
  }
  let from = start;
  for (let at = start; at <= tokens.length; at++) {
    const token = tokens[at];
    if (at < tokens.length && !(typeof token === 'string' && SET_OPERATIONS.has(token))) continue;
    let part = tokens.slice(from, at).filter((each) => each !== 'all' || from === start);
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
  readonly #conditions: SqlToken[][] = [];
  readonly #usings: { readonly columns: readonly SqlToken[]; readonly count: number }[] = [];
  /** Aliases whose tenant is known. `''` stands for the only table without a qualifier. */
  readonly #bound = new Set<string>();
  readonly #edges: (readonly [string, string])[] = [];

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
    for (const { columns, count } of this.#usings) this.#joinUsing(columns, count);
    for (const condition of this.#conditions) this.#readCondition(condition);
    for (let isChanged = true; isChanged;) {
      isChanged = false;
      for (const [one, other] of this.#edges) {
        if (this.#bound.has(one) === this.#bound.has(other)) continue;
        this.#bound.add(one).add(other);
        isChanged = true;
      }
    }
    for (const { alias, table } of this.#references)
      if (table !== undefined && !this.#bound.has(alias)) this.#unbound.push(table);
  }

  #readClauses(): void {
    const tokens = this.#tokens;
    let clause = '';
    let condition: SqlToken[] | undefined;
    for (let at = 0; at < tokens.length; at++) {
      const token = tokens[at] as SqlToken;
      if (typeof token === 'string' && CLAUSES.has(token) && tokens[at - 1] !== '.') {
        const previous = clause;
        clause = token;
        condition = undefined;
        if (token === 'using') {
          const next = tokens[at + 1];
          if (isGroup(next) && !beginsQuery(next)) {
            this.#usings.push({ columns: next, count: this.#references.length });
            at++;
            clause = 'from';
          } else at = this.#readReference(at + 1) - 1;
        } else if (token === 'on' && tokens[at + 1] === 'conflict') clause = 'conflict';
        else if (token === 'where' || token === 'on' || token === 'having') {
          condition = [];
          this.#conditions.push(condition);
        } else if (token === 'update' && ['do', 'for', 'key'].includes(tokens[at - 1] as string))
          clause = previous;
        else if (token === 'from' && previous === 'select' && this.#isDistinctFrom(at))
          clause = previous;
        else if (['from', 'join', 'update', 'into'].includes(token))
          at = this.#readReference(at + 1, token === 'into') - 1;
        else if (token === 'for') clause = 'for';
        continue;
      }
      if (condition !== undefined) {
        // A join ends the condition of the one before.
        if (
          typeof token === 'string' &&
          ['left', 'right', 'inner', 'cross', 'full'].includes(token) &&
          !isGroup(tokens[at + 1])
        ) {
          condition = undefined;
          clause = 'from';
        } else if (token === ',' && clause === 'on') {
          condition = undefined;
          clause = 'from';
          at = this.#readReference(at + 1) - 1;
        } else condition.push(token);
      } else if (token === ',' && (clause === 'from' || clause === 'join')) {
        at = this.#readReference(at + 1) - 1;
        continue;
      }
      if (isGroup(token)) this.#readGroup(token);
    }
  }

  /** `is distinct from` is no clause. */
  readonly #isDistinctFrom = (at: number): boolean => this.#tokens[at - 1] === 'distinct';

  #readGroup(group: readonly SqlToken[]): void {
    if (beginsQuery(group)) {
      const names = new Set(this.#names);
      readQuery(group, this.#tenantColumns, names, this.#unbound);
    } else for (const token of group) if (isGroup(token)) this.#readGroup(token);
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
    this.#references.push({ alias, table, columns, isInserted: isInsert });
    const inserted = tokens[at];
    if (isInsert && isGroup(inserted)) {
      if (columns.some((column) => inserted.includes(column))) this.#bound.add(alias);
      at++;
    }
    return at;
  }

  #joinUsing(joined: readonly SqlToken[], count: number): void {
    const isOfTenant = joined.some((name) =>
      ['environment_id', 'account_id'].includes(name as string),
    );
    if (!isOfTenant) return;
    const references = this.#references.slice(0, count);
    const last = references.at(-1);
    for (const each of references.slice(0, -1)) {
      if (last?.table === undefined && each.table !== undefined) this.#bound.add(each.alias);
      if (each.table === undefined && last?.table !== undefined) this.#bound.add(last.alias);
      if (each.table !== undefined && last?.table !== undefined)
        this.#edges.push([each.alias, last.alias]);
    }
  }

  #readCondition(tokens: readonly SqlToken[]): void {
    for (const [at, token] of tokens.entries()) {
      if (isGroup(token)) {
        if (beginsQuery(token)) continue;
        const operator = tokens[at + 1];
        const other = tokens[at + 2];
        if ((operator === '=' || operator === 'in') && isGroup(other))
          this.#compareRows(token, other);
        else if (operator === 'in' || operator === '=') this.#compareRows(token, []);
        else if (!(tokens[at - 1] === '=' || tokens[at - 1] === 'in')) this.#readCondition(token);
        continue;
      }
      const mention = this.#mentionAt(tokens, at);
      if (mention === undefined) continue;
      const after = tokens[at + 1];
      if (typeof after === 'string' && COMPARISONS.has(after))
        this.#compare(mention, this.#mentionFrom(tokens, at + 2));
      else {
        const before = at - (tokens[at - 1] === '.' ? 3 : 1);
        if (tokens[before] === '=') this.#compare(mention, this.#mentionTo(tokens, before - 1));
      }
    }
  }

  #compareRows(one: readonly SqlToken[], other: readonly SqlToken[]): void {
    const others = splitByComma(other);
    for (const [place, item] of splitByComma(one).entries()) {
      const mention = this.#mentionFrom(item, 0);
      const counterpart = this.#mentionFrom(others[place] ?? [], 0);
      if (mention !== undefined) this.#compare(mention, counterpart);
      else if (counterpart !== undefined) this.#compare(counterpart, undefined);
    }
  }

  #compare(one: string, other: string | undefined): void {
    if (other === undefined) this.#bound.add(one);
    else this.#edges.push([one, other]);
  }

  #mentionFrom(tokens: readonly SqlToken[], at: number): string | undefined {
    return this.#mentionAt(tokens, tokens[at + 1] === '.' ? at + 2 : at);
  }

  #mentionTo(tokens: readonly SqlToken[], at: number): string | undefined {
    return this.#mentionAt(tokens, at);
  }

  /** The alias of the tenant's table whose column stands there. */
  #mentionAt(tokens: readonly SqlToken[], at: number): string | undefined {
    const name = tokens[at];
    if (typeof name !== 'string') return undefined;
    const tables = this.#references.filter(({ table, columns }) => table && columns.includes(name));
    if (tokens[at - 1] === '.') {
      const qualifier = tokens[at - 2];
      return tables.find(({ alias }) => alias === qualifier)?.alias;
    }
    const candidates = tables.filter(({ isInserted }) => !isInserted);
    const isJoined = this.#usings.some(({ columns }) => columns.includes(name));
    return candidates.length === 1 || isJoined ? candidates[0]?.alias : undefined;
  }
}

function splitByComma(tokens: readonly SqlToken[]): SqlToken[][] {
  const items: SqlToken[][] = [[]];
  for (const token of tokens) {
    if (token === ',') items.push([]);
    else items.at(-1)?.push(token);
  }
  return items;
}
