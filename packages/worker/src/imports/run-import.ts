/**
 * Runs one import to its end, or until the worker stops: the file is fetched, its first line judged, its rows written
 * in batches.
 *
 * Every step writes how far it is, under a lease. So a killed worker costs the time until its lease ends and at most
 * one batch of reading: the next worker begins at the byte behind the last batch. A file that is being fetched is
 * fetched again from its start.
 *
 * Before: `api/src/imports/new-imports.ts`, which kept the file, and `reconcile-imports.ts`, which has it run. After:
 * `read-csv.ts`, `import-rows.ts`.
 */
import { sumImportProblems } from '@sluice/database/imports/import-problems';
import {
  advanceImport,
  claimImport,
  type ImportStep,
} from '@sluice/database/imports/import-claims';
import { failAbandonedUploads, failStuckImports } from '@sluice/database/imports/import-upkeep';
import { type FileForm, type ImportRow, type ImportState } from '@sluice/database/imports/imports';
import { readColumns, spreadsheetRow } from '@sluice/domain/imports/import-file';
import { problemsCapacity } from '@sluice/domain/imports/problem-limits';
import { UNFINISHED_IMPORT_DAYS_MAX } from '@sluice/domain/imports/import-limits';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import {
  importRows,
  type BatchOutcome,
  type ImportInProgress,
  type ImportRowsDeps,
} from './import-rows.ts';
import { CsvFault } from './csv-fault.ts';
import { FETCH_RETRY_AFTER_MS, fetchImport, type FetchImportDeps } from './fetch-import.ts';
import type { ClaimFetch, FetchPlaces, PlacedFetch } from './fetch-places.ts';
import { findFileForm, formBefore } from './file-form.ts';
import type { ImportTurns } from './import-turns.ts';
import type { CsvRecord, WrongBytes } from './read-csv.ts';
import { StoredFile } from './stored-file.ts';

export interface RunImportDeps extends ImportRowsDeps, Omit<FetchImportDeps, 'database' | 'now'> {
  readonly wakeLanes: (lanes: readonly LaneKey[]) => Promise<void>;
  /** Absent: the oldest import is next. */
  readonly turns?: ImportTurns;
  /** Only imports whose files are here are taken, or only fetches of files. Absent: both, and a fetch goes on to its end. */
  readonly takes?: 'here' | 'remote';
  /** Absent: an account may have any number of fetches. */
  readonly fetchPlaces?: FetchPlaces;
  /** Milliseconds that only go forward. */
  readonly monotonicNow: () => number;
  /** Absent: traces are off. */
  readonly traceImport?: TraceImport;
}

/** Has an import run as a span (`trace-imports.ts`). @returns the state in which it was left. */
export type TraceImport = (
  row: ImportRow,
  run: (trace: ImportTrace) => Promise<ImportState>,
) => Promise<ImportState>;

export interface ImportTrace {
  /** One batch; `write` gets its place in the trace, null if it is not traced. */
  batch(
    rowCount: number,
    write: (traceparent: string | null) => Promise<BatchOutcome>,
  ): Promise<BatchOutcome>;
}

export const UNTRACED: ImportTrace = { batch: (_, write) => write(null) };

/**
 * Part of the lease after which a check of a file renews it. By time, not by bytes: if 32 MiB took longer than the
 * lease, the other loops of the worker took the import one after another, each slowed the others, and no loop came to
 * its end.
 */
const CHECKED_LEASE_PART = 1 / 4;
/**
 * The rows of a large file take hours. After so long the import is given back, so that other workspaces have a turn. If
 * they want no turn, the worker takes it again.
 */
const TURN_MS = 30_000;
const BATCH_ROWS_MAX = 1_000;
const BATCH_SIZE_BYTES_MAX = 1_048_576;
/** An upload is given up after so long without a piece. */
const ABANDONED_AFTER_MS = 3_600_000;

/** This worker has no more to do with the import: another has it, it was cancelled, or the worker stops. */
class ImportLeft extends Error {
  /** The state in which the import is given back; undefined if it is not ours to give. */
  readonly backTo: ImportState | undefined;

  constructor(backTo?: ImportState) {
    super('the import is left');
    this.backTo = backTo;
  }
}

/** Ends uploads without a piece for an hour, and imports that are too old. */
export async function endUnfinishedImports({
  database,
  now,
}: Pick<RunImportDeps, 'database' | 'now'>): Promise<void> {
  await failAbandonedUploads(database, now() - ABANDONED_AFTER_MS, now());
  await failStuckImports(database, UNFINISHED_IMPORT_DAYS_MAX, now());
}

/** Works on one import that waits, if there is one. @returns whether there was. */
export async function runNextImport(deps: RunImportDeps): Promise<boolean> {
  const { database, leaseMs, monotonicNow } = deps;
  const { turns, fetchPlaces, takes: file } = deps;
  const startedAtMs = monotonicNow();
  const claim: ClaimFetch = async (withoutAccountIds) => {
    const servedEnvironmentIds = turns?.servedEnvironmentIds(startedAtMs) ?? [];
    const wanted = { servedEnvironmentIds, withoutAccountIds, ...(file && { file }) };
    return claimImport(database, leaseMs, wanted);
  };
  const taken = await (fetchPlaces?.take(claim) ?? claimWithoutPlace(claim));
  if (taken === undefined) return false;
  const { row } = taken;
  const turn = turns?.took(row.environmentId);
  const run = (trace: ImportTrace) => new ImportRun(deps, row, trace).run();
  let state: ImportState;
  try {
    state = await (deps.traceImport?.(row, run) ?? run(UNTRACED));
  } finally {
    taken.release();
  }
  const endedAtMs = monotonicNow();
  // It found no storage or no way through the egress proxy. A fetch that took longer has had its turn.
  if (state === 'preprocessing' && endedAtMs - startedAtMs < leaseMs)
    turn?.waitsUntil(endedAtMs + FETCH_RETRY_AFTER_MS);
  return true;
}

async function claimWithoutPlace(claim: ClaimFetch): Promise<PlacedFetch | undefined> {
  const row = await claim([]);
  return row && { row, release: () => undefined };
}

class ImportRun {
  readonly #deps: RunImportDeps;
  #row: ImportRow;
  readonly #trace: ImportTrace;
  #state: ImportState;

  constructor(deps: RunImportDeps, row: ImportRow, trace: ImportTrace) {
    this.#deps = deps;
    this.#row = row;
    this.#trace = trace;
    this.#state = row.state;
  }

  /** @returns the last state that it was brought to. */
  async run(): Promise<ImportState> {
    const { state, dataFileUrl } = this.#row;
    try {
      if (state === 'preprocessing' && dataFileUrl !== null) {
        const fetched = await fetchImport(this.#deps, this.#row, dataFileUrl, (step) =>
          this.#advance(step),
        );
        if (fetched === undefined) return this.#state;
        if (this.#deps.takes === 'remote') {
          await this.#advance({ state: 'preprocessed', leaseMs: 0 });
          return this.#state;
        }
        this.#row = fetched;
      }
      const columns = await this.#validate();
      if (columns) await this.#import(columns);
    } catch (error) {
      if (error instanceof ImportLeft) {
        if (error.backTo !== undefined) await this.#advance({ state: error.backTo, leaseMs: 0 });
      } else if (error instanceof CsvFault) {
        await this.#advance({ state: 'failed', error: error.message });
      } else throw error;
    }
    return this.#state;
  }

  /** The columns, from the first line where they are not known yet; undefined if it ended here. */
  async #validate(): Promise<ImportInProgress | undefined> {
    const row = this.#row;
    let names = row.columns;
    let { nextByte } = row;
    let form = row.fileForm ?? undefined;
    if (names === null) {
      if (!(await this.#advance({ state: 'validating' }))) return undefined;
      const checked = await this.#checkForm(row.encoding ?? undefined);
      form = checked.form;
      const { first } = checked;
      if (first === undefined) {
        await this.#advance({ state: 'failed', error: 'the file is empty; send one with rows' });
        return undefined;
      }
      names = first.cells;
      nextByte = first.endByte;
    }
    form ??= formBefore(await this.#file().start());
    const outcome = readColumns(names);
    if (outcome.outcome === 'unusable') {
      await this.#advance({ state: 'failed', error: outcome.message });
      return undefined;
    }
    const { columns } = outcome;
    const batch = { nextByte, rowsRead: 0, rowsImported: 0, rowsFailed: 0, rowsWarned: 0 };
    const step = { state: 'validated', columns: columns.names, fileForm: form, batch } as const;
    if (row.columns === null && !(await this.#advance(step))) return undefined;
    const { rowsRead, rowsFailed, rowsWarned } = row;
    const { leaseMs } = this.#deps;
    // Only the worker that has the import writes its problems, so it counts them from here on.
    const problemsSizeBytesLeft = problemsCapacity(
      await sumImportProblems(this.#deps.database, row),
    );
    const counts = { rowsRead, rowsFailed, rowsWarned, problemsSizeBytesLeft };
    return { row, columns, form, leaseMs, nextByte, ...counts };
  }

  /** A file that begins as UTF-8 and goes on otherwise has the declared encoding, if that is another one. */
  async #checkForm(declared: string | undefined) {
    const start = await this.#file().start();
    const form = findFileForm(start, declared);
    const other = findFileForm(start, declared, true);
    const isSure = other.encoding === form.encoding;
    try {
      return { form, first: await this.#check(form, isSure ? 'weighed' : 'refused') };
    } catch (error) {
      if (!(error instanceof CsvFault) || isSure) throw error;
      return { form: other, first: await this.#check(other, 'refused') };
    }
  }

  /**
   * Reads the whole file before a row of it is written: a file that breaks off in the middle is corrected and sent
   * again, and rows that were imported before would then be there twice. It takes a tenth of the time of the rows.
   *
   * @returns the line of names; undefined if the file is empty.
   * @throws CsvFault
   * @throws ImportLeft
   */
  async #check(form: FileForm, wrongBytes: WrongBytes): Promise<CsvRecord | undefined> {
    let first: CsvRecord | undefined;
    const from = { byte: form.firstByte, row: form.linesBefore + 1 };
    const keepLease = this.#leaseKeeper('validating', 'preprocessed');
    for await (const record of this.#file().records(form, from, wrongBytes, keepLease)) {
      if (first === undefined) {
        first = record;
        if (record.fault !== undefined) throw new CsvFault(record.fault);
        const outcome = readColumns(record.cells);
        // The caller reports the fault, so the rest need not be read.
        if (outcome.outcome === 'unusable') return first;
      }
      const keeping = keepLease();
      if (keeping !== undefined) await keeping;
    }
    return first;
  }

  /**
   * Keeps the lease while the file is read. It is called for each piece too: gigabytes of empty lines are no records.
   * One worker after another took such a file while the others still read it.
   */
  #leaseKeeper(state: ImportState, backTo: ImportState): () => Promise<void> | undefined {
    const { leaseMs, monotonicNow, stopping } = this.#deps;
    let keptAtMs = monotonicNow();
    const keep = async (): Promise<void> => {
      if (!(await this.#advance({ state }))) throw new ImportLeft();
      if (stopping.aborted) throw new ImportLeft(backTo);
    };
    return () => {
      if (monotonicNow() - keptAtMs < leaseMs * CHECKED_LEASE_PART) return undefined;
      keptAtMs = monotonicNow();
      return keep();
    };
  }

  #file(): StoredFile {
    return new StoredFile(this.#deps.database, this.#row);
  }

  async #import(held: ImportInProgress): Promise<void> {
    const { stopping, monotonicNow } = this.#deps;
    const begunAtMs = monotonicNow();
    let batch: CsvRecord[] = [];
    const { nextByte } = held;
    const from = { byte: nextByte, row: spreadsheetRow(held.rowsRead + 1, held.form.linesBefore) };
    // Checked: a wrong byte is its row's.
    const keepLease = this.#leaseKeeper('importing', 'importing');
    for await (const record of this.#file().records(held.form, from, 'marked', keepLease)) {
      batch.push(record);
      const isFull =
        batch.length >= BATCH_ROWS_MAX || record.endByte - held.nextByte >= BATCH_SIZE_BYTES_MAX;
      if (!isFull) continue;
      if (!(await this.#write(held, batch))) return;
      batch = [];
      if (stopping.aborted || monotonicNow() - begunAtMs >= TURN_MS) {
        await this.#advance({ state: 'importing', leaseMs: 0 });
        return;
      }
    }
    if (batch.length > 0 && !(await this.#write(held, batch))) return;
    await this.#advance({ state: 'imported' });
  }

  async #write(held: ImportInProgress, batch: readonly CsvRecord[]): Promise<boolean> {
    const written = await this.#trace.batch(batch.length, (traceparent) =>
      importRows({ ...this.#deps, traceparent }, held, batch),
    );
    if (written.outcome === 'lost') return false;
    // A wake-up that is lost here is made good by the reconcile loop.
    await this.#deps.wakeLanes(written.lanes).catch(() => undefined);
    return true;
  }

  /** False if this worker no longer has the import. */
  async #advance(
    step: Omit<ImportStep, 'leaseMs' | 'nowMs'> & { leaseMs?: number },
  ): Promise<boolean> {
    const { database, leaseMs, now } = this.#deps;
    const isHeld = await advanceImport(database, this.#row, { leaseMs, nowMs: now(), ...step });
    if (isHeld) this.#state = step.state;
    return isHeld;
  }
}
