/**
 * A Postgres with two workspaces and its own clock, for imports.
 *
 * The imports run in the test's own process.
 */
import { Readable } from 'node:stream';
import type { Database } from '@sluice/database/connection/connection';
import { appendImportChunk, type PieceOutcome } from '@sluice/database/imports/import-chunks';
import { listImportProblems } from '@sluice/database/imports/import-problems';
import {
  finishUpload,
  insertImport,
  type NewImport,
} from '@sluice/database/imports/import-changes';
import { findImport, type ImportKey, type ImportRow } from '@sluice/database/imports/imports';
import { NumberStock } from '@sluice/database/people/numbers';
import { insertTestWorkspace } from '@sluice/database/testing/test-tenants';
import { BY_TEST, createTestDatabase } from '@sluice/database/testing/testing';
import type { Operation } from '@sluice/domain/operations/operation';
import { identify } from '@sluice/domain/testing/sample-operations';
import { createLogger } from '@sluice/platform/process/logger';
import { createIdGenerator } from '@sluice/platform/process/new-id';
import { sql } from 'kysely';
import { processCommitBatch } from '../../../src/events/process-commit-batch.ts';
import {
  endUnfinishedImports,
  runNextImport,
  type RunImportDeps,
} from '../../../src/imports/run-import.ts';
import { TakenIdWatch } from '../../../src/events/taken-id-watch.ts';

const LEASE_MS = 15_000;
const CHUNK_SIZE_BYTES = 100_000;
export const newId = createIdGenerator(Date.now);

const AMPLE_STORAGE = { sizeBytesMax: 1e11, sharePercent: 25 };

export class ImportsWorld {
  readonly database: Database;
  nowMs = Date.now();

  private constructor(database: Database) {
    this.database = database;
  }

  static async create(): Promise<ImportsWorld> {
    const { database } = await createTestDatabase();
    for (const environmentId of [1, 2]) await insertTestWorkspace(database, environmentId);
    return new ImportsWorld(database);
  }

  /** False if no import was due. */
  async run(overrides: Partial<RunImportDeps> = {}): Promise<boolean> {
    const deps: RunImportDeps = {
      ...this.deps(),
      fetchFile: () => Readable.from([]),
      pause: () => Promise.resolve(),
      ...overrides,
    };
    await endUnfinishedImports(deps);
    return runNextImport(deps);
  }

  /** All dependencies but the sources of files. */
  deps(): Omit<RunImportDeps, 'fetchFile' | 'pause'> {
    return {
      ...this.processing(),
      wakeLanes: () => Promise.resolve(),
      leaseMs: LEASE_MS,
      monotonicNow: () => 0,
      logger: createLogger('test', 'silent'),
      sizeBytesMax: 1e9,
      unfinishedSizeBytesMax: 1e10,
      storage: AMPLE_STORAGE,
      stopping: new AbortController().signal,
    };
  }

  async process(...operations: Operation[]): Promise<void> {
    await processCommitBatch(this.processing(), { id: newId(), operations });
  }

  people(...ids: string[]): Promise<void> {
    return this.process(...ids.map((id) => identify(`id:${id}`)));
  }

  async insert(more: Partial<NewImport> = {}): Promise<ImportKey> {
    return (await insertImport(
      this.database,
      {
        environmentId: 1,
        name: 'test',
        description: null,
        identifier: 'id',
        dataToProcess: 'all',
        dataFileUrl: null,
        nowMs: this.nowMs,
        ...more,
      },
      BY_TEST,
    )) as ImportRow;
  }

  async upload(file: string | Buffer, more: Partial<NewImport> = {}): Promise<ImportKey> {
    const made = await this.insert(more);
    const bytes = Buffer.from(file);
    for (let at = 0; at < bytes.length; at += CHUNK_SIZE_BYTES) {
      const piece = bytes.subarray(at, at + CHUNK_SIZE_BYTES);
      if ((await this.keep(made, piece)) !== 'kept')
        throw new Error('the import takes no more of its file');
    }
    await finishUpload(this.database, made, undefined, this.nowMs);
    return made;
  }

  keep(key: ImportKey, bytes: Buffer): Promise<PieceOutcome> {
    const piece = { fencing: 0, bytes, leaseMs: 0, nowMs: this.nowMs };
    return appendImportChunk(this.database, key, {
      ...piece,
      unfinishedSizeBytesMax: 1e10,
      storage: AMPLE_STORAGE,
    });
  }

  /** As time does: every holder of an import loses it. */
  async endLeases(): Promise<void> {
    await sql`
      update imports set held_until = clock_timestamp() - interval '1 second'
       where held_until is not null`.execute(this.database);
  }

  async shown(key: ImportKey): Promise<object> {
    return (await findImport(this.database, key)) as object;
  }

  problems(key: ImportKey, severity: 'error' | 'warning') {
    return listImportProblems(this.database, key, severity, { rowNumber: 0, position: 0 }, 1_000);
  }

  /** Events of both workspaces, in the order of their ids. */
  async events() {
    const { rows } = await sql<{ name: string; eventId: string; data: object; id: string }>`
      select e.name, e.event_id as "eventId", e.data, p.id from events e join people p using (environment_id, person_id)
      where e.kind = 'event'
      order by e.event_id`.execute(this.database);
    return rows;
  }

  async chunkCount(): Promise<number> {
    const { rows } = await sql<{ count: number }>`select count(*)::int from import_chunks`.execute(
      this.database,
    );
    return rows[0]!.count;
  }

  /** Dependencies of the processing of commit batches. */
  processing() {
    return {
      database: this.database,
      numbers: new NumberStock(),
      takenIds: new TakenIdWatch(),
      newId,
      now: () => this.nowMs,
    };
  }
}
