/** The plan that Postgres takes for the very statement that is sent. */
import type { Database } from '@sluice/database/connection/connection';
import { CompiledQuery } from 'kysely';
import { expect } from 'vitest';
import type { SentStatement } from '@sluice/database/testing/statements-sent';

export interface Plan {
  readonly 'Node Type': string;
  readonly 'Relation Name'?: string;
  readonly 'Index Name'?: string;
  readonly 'Actual Rows': number;
  readonly 'Actual Loops': number;
  readonly 'Rows Removed by Filter'?: number;
  readonly Plans?: readonly Plan[];
}

/** The nodes of the plan of the one statement that `use` sends, beside locks; in a transaction or not. */
export async function explain(
  database: Database,
  use: (database: Database) => Promise<unknown>,
): Promise<Plan[]> {
  const sent: CompiledQuery[] = [];
  const executor = database.getExecutor();
  const recording = new Proxy(executor, {
    get(target, key) {
      const member: unknown = Reflect.get(target, key, target);
      if (typeof member !== 'function') return member;
      return (...given: unknown[]) => {
        if (key === 'executeQuery') sent.push(given[0] as CompiledQuery);
        return Reflect.apply(member, target, given);
      };
    },
  });
  const recorded = { getExecutor: () => recording };
  const transaction = () => ({ execute: (run: (within: object) => unknown) => run(recorded) });
  await use({ ...recorded, transaction } as unknown as Database);
  const read = sent.filter(({ sql: text }) => !text.startsWith('select pg_advisory_xact_lock'));
  expect(read).toHaveLength(1);
  const [query] = read as [CompiledQuery];
  const { rows } = await database.executeQuery<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
    CompiledQuery.raw(`explain (analyze, format json) ${query.sql}`, [...query.parameters]),
  );
  return nodesOf(rows[0]!['QUERY PLAN'][0].Plan);
}

/** The nodes of the plan that a statement would have; it is not run. */
export async function planOf(database: Database, { text, values }: SentStatement): Promise<Plan[]> {
  const { rows } = await database.executeQuery<{ 'QUERY PLAN': [{ Plan: Plan }] }>(
    CompiledQuery.raw(`explain (format json) ${text}`, [...values]),
  );
  return nodesOf(rows[0]!['QUERY PLAN'][0].Plan);
}

const nodesOf = (plan: Plan): Plan[] => [plan, ...(plan.Plans ?? []).flatMap(nodesOf)];

/** Rows that were fetched, also rows that a filter threw away. */
export const rowsRead = (nodes: readonly Plan[]): number =>
  nodes
    .filter((node) => node['Relation Name'] !== undefined)
    .reduce(
      (sum, node) =>
        sum + (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'],
      0,
    );
