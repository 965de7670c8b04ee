/**
 * Writes one batch of an import's rows in one transaction.
 *
 * It writes their events through the apply step and the statements of a commit batch, the faults of the other rows, and
 * the progress. Exactly once in effect: the progress is part of the transaction and names the lease. A batch that was
 * cut has no effect, and a worker that lost the import writes no rows. The claim of `envelopes` is made too, of an id
 * with import and row, so that even a wrong cursor could not count a row twice.
 *
 * Commit batches of the shards go on between batches. A batch of rows counts as acknowledged when it commits: calls
 * about its people that were acknowledged before are applied first. Before: `run-import.ts`,
 * `domain/src/imports/import-file.ts`. After: `load-state.ts`, `write-changes.ts`, and `publish-rows.ts` once it is
 * committed.
 */
import type { DatabaseOrTransaction } from '@sluice/database/connection/connection';
import { waitingForEach } from '@sluice/database/connection/pipelined-transaction';
import { claimCommitBatches } from '@sluice/database/events/commit-batches';
import { insertImportProblems } from '@sluice/database/imports/import-problems';
import { advanceImport, lockImport } from '@sluice/database/imports/import-claims';
import { type FileForm, type ImportRow } from '@sluice/database/imports/imports';
import { listIncomingSubscriptions } from '@sluice/database/delivery/incoming-subscriptions';
import { lockIdentifiers } from '@sluice/database/people/person-identifiers';
import {
  isConflict,
  isRefusedData,
  isValuesFault,
} from '@sluice/database/connection/statement-failure';
import { applyOperations } from '@sluice/domain/apply/apply-operations';
import { IncomingSubscriptions } from '@sluice/domain/delivery/incoming-subscription';
import { AppError } from '@sluice/domain/values/errors';
import { readImportRow, type ImportColumns } from '@sluice/domain/imports/import-file';
import type { Issue } from '@sluice/domain/operations/issue';
import type { TrackEvent } from '@sluice/domain/operations/operation';
import type { IdentifierKey, IdentifierRow } from '@sluice/domain/state/loaded-state';
import { identifierText, storedValue } from '@sluice/domain/operations/state-keys';
import { findStateNeeds } from '@sluice/domain/state/find-state-needs';
import type { TailPublisher } from '@sluice/domain/operations/tail';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import {
  waitForAcknowledged,
  type AcknowledgedCalls,
  type WaitBound,
} from '../events/acknowledged-calls.ts';
import { withIncoming } from '../events/apply-in-transaction.ts';
import { loadState, SAFEST } from '../events/state/load-state.ts';
import type { ProcessCommitBatchDeps } from '../events/process-commit-batch.ts';
import type { CsvRecord } from './read-csv.ts';
import { publishRows } from './publish-rows.ts';
import { keepProblems, type JudgedRow } from './row-problems.ts';
import { writeChanges } from '../events/write-changes.ts';

export interface ImportRowsDeps extends Omit<
  ProcessCommitBatchDeps,
  'takenIds' | 'countOperations'
> {
  /** Publishes the rows to the workspace's live tail. */
  readonly tail?: TailPublisher;
  /**
   * Called for the rows of each batch that is committed: the names of the events taken, and how many rows were refused.
   */
  readonly countRows?: (
    environmentId: number,
    names: readonly string[],
    refusedCount: number,
  ) => void;
  /** Calls that rows come after. If absent, the order among rows and calls is the caller's. */
  readonly calls?: AcknowledgedCalls;
  /** A wait for calls ends with it, and the import is given back. */
  readonly stopping: AbortSignal;
  /** The batch's place in a trace; absent if it is not traced. */
  readonly traceparent?: string | null;
}

/** An import in the hands of this worker, and how far it is. */
export interface ImportInProgress {
  readonly row: ImportRow;
  readonly columns: ImportColumns;
  readonly form: FileForm;
  readonly leaseMs: number;
  nextByte: number;
  rowsRead: number;
  rowsFailed: number;
  rowsWarned: number;
  /** Bytes of further problems that it keeps. */
  problemsSizeBytesLeft: number;
}

/** `lost`: another worker has the import, or it was cancelled. The batch was not written. */
export type BatchOutcome =
  | { readonly outcome: 'written'; readonly lanes: LaneKey[] }
  | { readonly outcome: 'lost' };

const TRIES_MAX = 10;
/** A wait of ten leases at most: five minutes as installed. Meanwhile it has one of a worker's four places. */
const RENEWALS_PER_LEASE = 3;
const RENEWALS_MAX = 30;
class Lost extends Error {}

/** Writes the batch, in halves if Postgres refuses a value of it; a row refused alone has failed. */
export async function importRows(
  deps: ImportRowsDeps,
  held: ImportInProgress,
  records: readonly CsvRecord[],
): Promise<BatchOutcome> {
  try {
    return { outcome: 'written', lanes: await writeBatch(deps, held, records, false) };
  } catch (error) {
    if (error instanceof Lost) return { outcome: 'lost' };
    if (!isRefusedData(error)) throw error;
    if (records.length === 1) {
      // If the statement itself may be at fault the row is as good as others: the import waits.
      if (!isValuesFault(error)) throw error;
      return { outcome: 'written', lanes: await writeBatch(deps, held, records, true) };
    }
  }
  const middle = Math.ceil(records.length / 2);
  const one = await importRows(deps, held, records.slice(0, middle));
  if (one.outcome === 'lost') return one;
  const other = await importRows(deps, held, records.slice(middle));
  return other.outcome === 'lost'
    ? other
    : { outcome: 'written', lanes: [...one.lanes, ...other.lanes] };
}

async function writeBatch(
  deps: ImportRowsDeps,
  held: ImportInProgress,
  records: readonly CsvRecord[],
  isRefused: boolean,
): Promise<LaneKey[]> {
  const rows = records.map((record, index) => judgeRow(deps, held, record, index, isRefused));
  const events = rows.flatMap(({ event }) => event ?? []);
  const { database, calls } = deps;
  if (calls && !(await waitForAcknowledged(database, calls, events, waitBoundOf(deps, held))))
    throw new Lost();
  for (let tries = 1; ; tries++) {
    try {
      const written = await deps.database
        .transaction()
        .execute((transaction) => writeOnce(deps, transaction, held, rows, records));
      held.nextByte = written.nextByte;
      held.rowsRead += rows.length;
      held.rowsFailed += written.failed;
      held.rowsWarned += written.warned;
      held.problemsSizeBytesLeft = written.problemsSizeBytesLeft;
      const names = written.present.flatMap(({ event }) => event?.name ?? []);
      deps.countRows?.(held.row.environmentId, names, written.failed);
      publishRows(deps.tail, held.row, held.form, written.present, deps.now());
      return written.lanes;
    } catch (error) {
      if (!isConflict(error) || tries === TRIES_MAX) throw error;
    }
  }
}

/**
 * Keeps the lease while calls are waited for: with 66 calls a second on a busy machine they took longer than half a lease,
 * and imports of three rows 44 s. If the calls do not come to an end, the lease does, and the batch is tried again.
 */
function waitBoundOf(
  { database, stopping, now }: ImportRowsDeps,
  { row, leaseMs }: ImportInProgress,
): WaitBound {
  let renewals = 0;
  return {
    renewIntervalMs: leaseMs / RENEWALS_PER_LEASE,
    async renew() {
      const isStopping = stopping.aborted;
      if (renewals++ === RENEWALS_MAX) return false;
      const step = { state: 'importing', leaseMs: isStopping ? 0 : leaseMs, nowMs: now() } as const;
      return (await advanceImport(database, row, step)) && !isStopping;
    },
  };
}

function judgeRow(
  deps: ImportRowsDeps,
  { row: { environmentId, importId, identifier }, columns, rowsRead }: ImportInProgress,
  { cells, fault }: CsvRecord,
  index: number,
  isRefused: boolean,
): JudgedRow {
  const rowNumber = rowsRead + index + 1;
  const context = { environmentId, importId, identifier, rowNumber, receivedAtMs: deps.now() };
  const { event, issues } = readImportRow(columns, cells, context);
  if (!isRefused && fault === undefined) return { rowNumber, cells, event, issues };
  const message =
    fault ?? 'The database refuses a value of the row. Correct the row, then import it again.';
  return {
    rowNumber,
    cells,
    event: undefined,
    issues: [{ code: 'invalid', field: null, message }],
  };
}

async function writeOnce(
  deps: ImportRowsDeps,
  transaction: DatabaseOrTransaction,
  held: ImportInProgress,
  rows: readonly JudgedRow[],
  records: readonly CsvRecord[],
) {
  const { row, leaseMs } = held;
  // Without it, if a batch takes longer than the lease, the next worker takes it from this one, and so on for ever.
  if (!(await lockImport(transaction, row))) throw new Lost();
  const events = rows.flatMap(({ event }) => event ?? []);
  const claim = `import-${row.environmentId}-${row.importId}-${held.rowsRead + 1}`;
  const claims = [
    { envelopeId: claim, operationCount: rows.length, traceparent: deps.traceparent ?? null },
  ];
  const { numbers, reportingIncoming } = await claimCommitBatches(
    transaction,
    claims,
    [row.environmentId],
    false,
  );
  const [envelopeNumber] = numbers;
  if (envelopeNumber === undefined) throw new Lost();
  const known = await lockPeopleOf(transaction, events);
  const present = rows.map((each) => withPerson(each, known));
  const operations = present.flatMap(({ event }) => (event ? { ...event, envelopeNumber } : []));
  const state = await loadState(waitingForEach(transaction), findStateNeeds(operations), SAFEST);
  const subscriptions = new IncomingSubscriptions(
    await listIncomingSubscriptions(transaction, reportingIncoming),
  );
  const complete = await withIncoming(transaction, state, operations, subscriptions);
  const changes = applyOperations(complete, operations, {
    newPersonId: refuseToMake,
    newObjectNumber: refuseToMake,
    newId: deps.newId,
    nowMs: deps.now(),
  });
  const lanes = await writeChanges(waitingForEach(transaction), changes);
  const failed = present.filter(({ event }) => event === undefined).length;
  const warned = present.filter(({ event, issues }) => event && issues.length > 0).length;
  const problemsSizeBytesLeft = await writeProblems(transaction, held, present);
  const nextByte = records.at(-1)?.endByte ?? held.nextByte;
  const isHeld = await advanceImport(transaction, row, {
    state: 'importing',
    batch: {
      nextByte,
      rowsRead: rows.length,
      rowsImported: operations.length,
      rowsFailed: failed,
      rowsWarned: warned,
    },
    leaseMs,
    nowMs: deps.now(),
  });
  if (!isHeld) throw new Lost();
  return { lanes, nextByte, present, failed, warned, problemsSizeBytesLeft };
}

/** @returns the bytes of problems that the import keeps after these. */
async function writeProblems(
  transaction: DatabaseOrTransaction,
  { row, rowsFailed, rowsWarned, problemsSizeBytesLeft }: ImportInProgress,
  rows: readonly JudgedRow[],
): Promise<number> {
  const kept = keepProblems(rows, { rowsFailed, rowsWarned, sizeBytes: problemsSizeBytesLeft });
  await insertImportProblems(transaction, row, kept.problems);
  return problemsSizeBytesLeft - kept.sizeBytes;
}

/**
 * An event of a file does not create a person: events of unknown people were taken out before operations are applied.
 */
function refuseToMake(): never {
  throw new AppError('BUG', 'an import was about to make a person');
}

async function lockPeopleOf(
  transaction: DatabaseOrTransaction,
  events: readonly TrackEvent[],
): Promise<Map<string, IdentifierRow>> {
  const keys = new Map<string, IdentifierKey>();
  for (const event of events) {
    const key = keyOf(event);
    keys.set(identifierText(key.environmentId, key.kind, key.value), key);
  }
  const found = await lockIdentifiers(transaction, [...keys.values()]);
  return new Map(found.map((row) => [identifierText(row.environmentId, row.kind, row.value), row]));
}

function keyOf({ environmentId, person }: TrackEvent): IdentifierKey {
  const kind = person?.kind === 'email' ? 'email' : 'id';
  return { environmentId, kind, value: storedValue(kind, person?.value ?? '') };
}

/** The row as it is, or with the reason why its event has no person. */
function withPerson(row: JudgedRow, known: ReadonlyMap<string, IdentifierRow>): JudgedRow {
  if (row.event === undefined) return row;
  const key = keyOf(row.event);
  const found = known.get(identifierText(key.environmentId, key.kind, key.value));
  if (found && !found.suppressed && found.personId !== null) return row;
  const issue: Issue = found?.suppressed
    ? {
        code: 'suppressed',
        field: '_svc_customer_id',
        message: `The ${key.kind} is suppressed. This is intended unless the person agreed again; then unsuppress the person and import the row again.`,
      }
    : {
        code: 'person_not_found',
        field: '_svc_customer_id',
        message: `No person has this ${key.kind}; events of a file create no people. Identify the person, then import the row again.`,
      };
  return { ...row, event: undefined, issues: [issue] };
}
