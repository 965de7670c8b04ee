/** A database of commit batches: workspaces of their own for tests that share it, and their rows. */
import { sql } from 'kysely';
import type { Database } from '@sluice/database/connection/connection';
import { NumberStock } from '@sluice/database/people/numbers';
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { Operation } from '@sluice/domain/operations/operation';
import { NOW_MS } from '@sluice/domain/testing/sample-operations';
import { createIdGenerator } from '@sluice/platform/process/new-id';
import {
  processCommitBatch,
  type ProcessCommitBatchDeps,
  type ProcessOutcome,
} from '../../../src/events/process-commit-batch.ts';
import { TakenIdWatch } from '../../../src/events/taken-id-watch.ts';

type Row = Record<string, unknown>;

export interface CommitBatchWorld {
  readonly database: Database;
  readonly deps: ProcessCommitBatchDeps;
  readonly databaseUrl: string;
  readonly newId: () => string;
  /** A workspace that no other test uses. */
  newEnvironment(): number;
  /** Processes operations as one new commit batch. */
  process(operations: Operation[], by?: ProcessCommitBatchDeps): Promise<ProcessOutcome>;
  /** `columns` is SQL. */
  rowsOf(table: string, environmentId: number, columns?: string): Promise<Row[]>;
  countOf(table: string, environmentId: number): Promise<number>;
  eventNames(environmentId: number): Promise<unknown[]>;
}

export async function createCommitBatchWorld(): Promise<CommitBatchWorld> {
  const { database, url } = await createTestDatabase();
  const newId = createIdGenerator(Date.now);
  const deps = {
    database,
    numbers: new NumberStock(),
    takenIds: new TakenIdWatch(),
    newId,
    now: () => NOW_MS,
    // No other process works here.
    waitMsMax: 0,
  };
  let lastEnvironment = 100;

  async function rowsOf(table: string, environmentId: number, columns = '*'): Promise<Row[]> {
    const { rows } = await sql<Row>`
      select ${sql.raw(columns)} from ${sql.table(table)} where environment_id = ${environmentId}`.execute(
      database,
    );
    return rows;
  }
  return {
    database,
    databaseUrl: url,
    deps,
    newId,
    newEnvironment: () => ++lastEnvironment,
    process: (operations, by = deps) => processCommitBatch(by, { id: newId(), operations }),
    rowsOf,
    countOf: async (table, environmentId) => (await rowsOf(table, environmentId, '1')).length,
    eventNames: async (environmentId) =>
      (await rowsOf('events', environmentId, `name`))
        .map((row) => row['name'])
        .filter((name) => name !== null),
  };
}

export const inEnvironment = (environmentId: number, ...operations: Operation[]): Operation[] =>
  operations.map((operation) => ({ ...operation, environmentId }));
