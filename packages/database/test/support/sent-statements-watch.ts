/** Finds statements that this process sends without the tenant of a table. */
import { readFileSync } from 'node:fs';
import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { unboundIn, unlistedAt } from './judge-statement.ts';
import { STATEMENT } from './read-statements.ts';
import { functionAt } from './sql-templates.ts';

export interface SentStatementsWatch {
  /** @returns a sentence for each faulty statement since the last call. */
  readonly takeFaults: () => string[];
  readonly stop: () => void;
}

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
const OWN_FILE = fileURLToPath(import.meta.url);
/** The ones of a pool, of Kysely and of a transaction stand before the sender's. */
const STACK_DEPTH = 60;
const FRAME = /(\/[^():]*\.ts):(\d+):\d+\)?$/gm;
/** Passes on the statements of others. */
const CONNECTION = /^packages\/database\/src\/connection\//;
/** The rest are tests and their tools. Their statements may read the rows of all tenants. */
const OF_SERVICES = /^packages\/\w[\w-]*\/src\/(?!(?:testing|demo|embedded|migrations)\/)/;

/** @param unlisted - tables that a statement may not touch in this way. */
export function watchSentStatements(unlisted = unlistedAt): SentStatementsWatch {
  /** Text → the fault, or undefined if it names its tenants. */
  const judged = new Map<string, string | undefined>();
  let faults = new Set<string>();
  const prototype = pg.Client.prototype as unknown as Record<
    'query',
    (...all: unknown[]) => unknown
  >;
  const { query } = prototype;
  prototype.query = function (this: unknown, ...all: unknown[]) {
    const [given] = all as [string | { text?: unknown } | null];
    const text = typeof given === 'string' ? given : given?.text;
    if (typeof text === 'string') {
      if (!judged.has(text)) judged.set(text, judge(text, unlisted));
      const fault = judged.get(text);
      if (fault !== undefined) faults.add(fault);
    }
    return Reflect.apply(query, this, all);
  };
  const takeFaults = (): string[] => {
    const taken = [...faults];
    faults = new Set();
    return taken;
  };
  return { takeFaults, stop: () => (prototype.query = query) };
}

function judge(text: string, unlisted: typeof unlistedAt): string | undefined {
  if (!STATEMENT.test(text) || unboundIn(text).length === 0) return undefined;
  const place = senderOf();
  const tables = place === undefined ? [] : unlisted({ place, text });
  if (tables.length === 0) return undefined;
  return `${place} sent a statement that does not name the tenant of ${tables.join(', ')}: ${text}`;
}

/** @returns the place of the source that sends a statement now; undefined if it is a test's. */
function senderOf(): string | undefined {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = STACK_DEPTH;
  const { stack = '' } = new Error();
  Error.stackTraceLimit = stackTraceLimit;
  for (const [, path = '', line = ''] of stack.matchAll(FRAME)) {
    const file = relative(ROOT, path);
    if (path === OWN_FILE || file.includes('node_modules/') || CONNECTION.test(file)) continue;
    if (!OF_SERVICES.test(file)) return undefined;
    const source = readFileSync(path, 'utf8');
    const lines = source.split('\n').slice(0, Number(line));
    return `${file.replace('packages/database/src/', '')}#${functionAt(source, lines.join('\n').length)}`;
  }
  return undefined;
}
