/**
 * Tables that each service reads and writes, taken from its code: the SQL of the functions of `database` that its
 * modules import, and of the functions that these call.
 *
 * Read by regular expressions, which is enough for code that oxfmt has formatted: a declaration begins its line, and
 * keywords of SQL are in small letters.
 */
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { readImportGraph } from '../import-graph.ts';

const ROOT = fileURLToPath(new URL('../../', import.meta.url));
const SERVICES = ['intake', 'worker', 'api'] as const;
export type ServiceName = (typeof SERVICES)[number];

export type Verb = 'select' | 'insert' | 'update' | 'delete';
const VERBS: Readonly<Record<string, Verb>> = {
  'insert into': 'insert',
  update: 'update',
  'delete from': 'delete',
  from: 'select',
  join: 'select',
};

interface DatabaseModule {
  /** Text of each top-level declaration. */
  readonly declarations: ReadonlyMap<string, string>;
  /** Local name → its declaration. */
  readonly imports: ReadonlyMap<string, { readonly path: string; readonly name: string }>;
}

const graph = readImportGraph(ROOT, [
  'packages/domain/src',
  'packages/database/src',
  'packages/platform/src',
  'packages/billing-vendor/src',
  ...SERVICES.map((name) => `packages/${name}/src`),
]);
const targetsOf = new Map(
  graph.map(({ path, imports }) => [path, imports.flatMap(({ target }) => target ?? [])]),
);
const isDatabase = (path: string): boolean => path.startsWith('packages/database/src/');
const modules = new Map<string, DatabaseModule>();

/** Table → the service's verbs on it. Words that are no tables may be among them. */
export function statementsOf(service: ServiceName): ReadonlyMap<string, ReadonlySet<Verb>> {
  const tables = new Map<string, Set<Verb>>();
  for (const text of declarationsOf(service))
    for (const [table, verb] of statementsIn(text))
      tables.set(table, (tables.get(table) ?? new Set()).add(verb));
  return tables;
}

/** Table → the columns that the service's inserts fill. */
export function insertedColumnsOf(service: ServiceName): ReadonlyMap<string, ReadonlySet<string>> {
  const tables = new Map<string, Set<string>>();
  for (const text of declarationsOf(service))
    for (const [, table = '', columns = ''] of text.matchAll(
      /\binsert into\s+([a-z][a-z_]*)\s*\(([a-z_,\s]+)\)/g,
    ))
      for (const column of columns.split(','))
        tables.set(table, (tables.get(table) ?? new Set()).add(column.trim()));
  return tables;
}

/** Texts of the functions of `database` that the service needs. */
function declarationsOf(service: ServiceName): string[] {
  const used = new Map<string, { path: string; name: string }>();
  const need = (path: string, name: string): void => {
    const key = `${path} ${name}`;
    if (used.has(key)) return;
    used.set(key, { path, name });
    const { declarations, imports } = moduleAt(path);
    for (const [word] of (declarations.get(name) ?? '').matchAll(/\b[A-Za-z_]\w*\b/g)) {
      if (word !== name && declarations.has(word)) need(path, word);
      const imported = imports.get(word);
      if (imported) need(imported.path, imported.name);
    }
  };
  for (const path of modulesOf(service))
    for (const { path: target, name } of importsIn(path).values()) need(target, name);

  return [...used.values()].map(({ path, name }) => moduleAt(path).declarations.get(name) ?? '');
}

/** Reached from its main.ts, without the modules of `database`. */
function modulesOf(service: ServiceName): string[] {
  const reached = new Set([`packages/${service}/src/main.ts`]);
  for (const path of reached)
    for (const target of targetsOf.get(path) ?? []) if (!isDatabase(target)) reached.add(target);
  return [...reached];
}

function importsIn(path: string): Map<string, { path: string; name: string }> {
  const text = readFileSync(`${ROOT}${path}`, 'utf8');
  const imports = new Map<string, { path: string; name: string }>();
  for (const [, names = '', specifier = ''] of text.matchAll(
    /^(?:import|export) \{([^}]*)\} from '([^']+)'/gm,
  )) {
    const target = graph
      .find((file) => file.path === path)
      ?.imports.find((each) => each.specifier === specifier)?.target;
    if (target === undefined || !isDatabase(target)) continue;
    for (const part of names.split(',')) {
      const [name, local = name] = part.trim().split(' as ');
      if (name && !name.startsWith('type ') && local) imports.set(local, { path: target, name });
    }
  }
  return imports;
}

function moduleAt(path: string): DatabaseModule {
  let found = modules.get(path);
  if (!found) {
    const text = readFileSync(`${ROOT}${path}`, 'utf8').replaceAll(/^ *(\/\/|\/?\*).*$/gm, '');
    const starts = [
      ...text.matchAll(/^(?:export )?(?:async )?(?:function\*?|const|class) (\w+)/gm),
    ];
    found = {
      declarations: new Map(
        starts.map((start, index) => [
          start[1] as string,
          text.slice(start.index, starts[index + 1]?.index),
        ]),
      ),
      imports: importsIn(path),
    };
    modules.set(path, found);
  }
  return found;
}

function statementsIn(text: string): [string, Verb][] {
  // Of a template within another one the parts are read by themselves.
  return text.split('`').flatMap((part) => {
    const found = [
      ...part.matchAll(/\b(insert into|update|delete from|from|join)\s+([a-z][a-z_]*)\b/g),
    ].flatMap(([, words = '', table = '']): [string, Verb][] =>
      words === 'update' && ['set', 'of'].includes(table) ? [] : [[table, VERBS[words] as Verb]],
    );
    // Locking or changing existing rows needs the right to update them.
    const isLocking = /\bfor (no key )?(update|share)\b|\bfor key share\b/.test(part);
    const isUpserting = /\bdo update\b/.test(part);
    // The columns of a conflict are read.
    const isReading = /\bon conflict\b|\breturning\b/.test(part);
    return found.flatMap(([table, verb]): [string, Verb][] => [
      [table, verb],
      ...((isLocking && verb === 'select') || (isUpserting && verb === 'insert')
        ? ([[table, 'update']] as [string, Verb][])
        : []),
      ...(isReading && verb === 'insert' ? ([[table, 'select']] as [string, Verb][]) : []),
    ]);
  });
}
