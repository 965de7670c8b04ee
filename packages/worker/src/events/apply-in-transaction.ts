/**
 * Applies operations in a transaction: loads the rows they touch, applies them, writes the changes. If an operation
 * fails for a reason of its own, the others are applied without it.
 *
 * Part of step 9 of the walk, called by `process-commit-batch.ts` after the claim.
 */
import type { Database, DatabaseOrTransaction } from '@sluice/database/connection/connection';
import {
  waitingForEach,
  type PipelinedTransaction,
} from '@sluice/database/connection/pipelined-transaction';
import type { LaneTaking, LoggedLane } from '@sluice/database/delivery/logged-lanes';
import { nameOf } from '@sluice/database/delivery/lanes';
import type { NumberStock } from '@sluice/database/people/numbers';
import { insertDeadLetteredOperation } from '@sluice/database/events/dead-lettered-operations';
import { inSavepoint } from '@sluice/database/connection/savepoint';
import { readPeople } from '@sluice/database/people/people';
import { isRefusedData, isValuesFault } from '@sluice/database/connection/statement-failure';
import { applyOperations } from '@sluice/domain/apply/apply-operations';
import {
  NO_SUBSCRIPTIONS,
  type IncomingSubscriptions,
} from '@sluice/domain/delivery/incoming-subscription';
import { AppError } from '@sluice/domain/values/errors';
import type { Operation, RecordIssue } from '@sluice/domain/operations/operation';
import { peopleToReport } from '@sluice/domain/reports/people-to-report';
import { findStateNeeds } from '@sluice/domain/state/find-state-needs';
import type { LoadedState } from '@sluice/domain/state/loaded-state';
import type { StateNeeds } from '@sluice/domain/state/state-needs';
import { toStorableText } from '@sluice/domain/values/storable-text';
import { loadState, SAFEST, type LoadOptions } from './state/load-state.ts';
import type { TakenIdWatch } from './taken-id-watch.ts';
import { writeChanges } from './write-changes.ts';

export interface ProcessCommitBatchDeps {
  readonly database: Database;
  /** One a process. */
  readonly numbers: NumberStock;
  /** One a process. */
  readonly takenIds: TakenIdWatch;
  /** Makes ULIDs. */
  readonly newId: () => string;
  /** Unix milliseconds. */
  readonly now: () => number;
  /** Time for which a batch waits for batches of other shards before it applies them itself; 3 s if absent. */
  readonly waitMsMax?: number;
  /**
   * Time for which a batch that is in the log and not in its queue is waited for. Absent it is 5 s, as long as an
   * intake waits for the broker.
   */
  readonly unqueuedMsMax?: number;
  /** If absent, only the caller learns of the logged deliveries. */
  readonly lanes?: LaneHandOver;
  /** Called with the operations of each transaction that is committed. */
  readonly countOperations?: (operations: readonly Operation[]) => void;
}

/** Whom the lanes that a transaction has logged for are handed to. */
export interface LaneHandOver {
  /** Leases that a transaction may take for them; undefined if it may take no lease now. */
  readonly taking: () => LaneTaking | undefined;
  /**
   * Called after each commit, before anything else is done: leases that were taken run.
   *
   * @param askedAtMs - before the transaction, by `monotonicNow`.
   */
  readonly wake: (lanes: readonly LoggedLane[], askedAtMs: number) => Promise<void>;
  readonly monotonicNow: () => number;
}

/** Counts of one commit batch. */
export interface CommitBatchCounts {
  /** Rows of events, activities included. */
  readonly events: number;
  readonly reports: number;
  readonly issues: number;
  /** Operations that could not be applied; each is an issue too. */
  readonly parked: number;
}

/** Result of a transaction, or of a part of one. */
export interface Applied {
  readonly lanes: readonly LoggedLane[];
  readonly counts: CommitBatchCounts;
}

export const NOTHING: Applied = {
  lanes: [],
  counts: { events: 0, reports: 0, issues: 0, parked: 0 },
};

/**
 * Adds the webhooks that want the incoming events of operations, and the people whom the operations name, to the state.
 * If no webhook wants them the state stays as it is, without a statement.
 */
export async function withIncoming(
  transaction: DatabaseOrTransaction,
  state: LoadedState,
  operations: readonly Operation[],
  subscriptions: IncomingSubscriptions,
): Promise<LoadedState> {
  if (subscriptions.isEmpty) return state;
  const people = await readPeople(transaction, peopleToReport(operations, subscriptions, state));
  const incoming = { subscriptions, people: new Map(people.map((row) => [row.personId, row])) };
  return { ...state, incoming };
}

/** Known facts about the operations, and the leases that may be taken for their lanes. */
interface Applying {
  /** Absent: it is found. */
  readonly needs?: StateNeeds | undefined;
  readonly options: LoadOptions;
  readonly taking?: LaneTaking | undefined;
}

/** Applies operations in order. */
export async function applyTogether(
  deps: ProcessCommitBatchDeps,
  pipelined: PipelinedTransaction,
  operations: readonly Operation[],
  subscriptions: IncomingSubscriptions,
  { needs = findStateNeeds(operations), options, taking }: Applying = { options: SAFEST },
): Promise<Applied> {
  const { transaction } = pipelined;
  const state = await loadState(pipelined, needs, options);
  if (state.takenEvents.length > 0) deps.takenIds.proved(deps.now());
  await deps.numbers.reserve(transaction, needs.newNumbersMax);
  const takeNumber = () => deps.numbers.take();
  const complete = await withIncoming(transaction, state, operations, subscriptions);
  const changes = applyOperations(complete, operations, {
    newPersonId: takeNumber,
    newObjectNumber: takeNumber,
    newId: deps.newId,
    nowMs: deps.now(),
  });
  const lanes = await writeChanges(pipelined, changes, taking);
  const { events, reports, issues } = changes;
  return {
    lanes,
    counts: { events: events.length, reports: reports.length, issues: issues.length, parked: 0 },
  };
}

/**
 * True for a failure that one operation causes and the others can be spared: a value that no row can hold, a fault of
 * our own code.
 */
export function isContained(error: unknown): error is Error {
  return (
    isRefusedData(error) ||
    error instanceof TypeError ||
    error instanceof ReferenceError ||
    error instanceof SyntaxError ||
    (error instanceof AppError && error.code === 'BUG')
  );
}

/**
 * Keeps operations that fail from taking their neighbours along. Order is kept.
 *
 * @param waitingVisitorsOf - as in `LoadOptions`.
 */
export async function applyIsolated(
  deps: ProcessCommitBatchDeps,
  transaction: DatabaseOrTransaction,
  envelopeIds: ReadonlyMap<number | undefined, string>,
  operations: readonly Operation[],
  subscriptions: IncomingSubscriptions,
  waitingVisitorsOf: ReadonlySet<number>,
): Promise<Applied> {
  try {
    return await inSavepoint(transaction, isContained, () =>
      applyTogether(deps, waitingForEach(transaction), operations, subscriptions, {
        options: { ...SAFEST, waitingVisitorsOf },
      }),
    );
  } catch (error) {
    if (!isContained(error)) throw error;
    const [operation] = operations;
    if (operation && operations.length === 1) {
      // If the statement itself may be at fault, as on a damaged index, it waits: others would fail like it.
      if (isRefusedData(error) && !isValuesFault(error)) throw error;
      return deadLetter(
        deps,
        transaction,
        envelopeIds.get(operation.envelopeNumber) ?? '',
        operation,
        error,
      );
    }
  }
  const middle = Math.ceil(operations.length / 2);
  const applyPart = (part: readonly Operation[]) =>
    applyIsolated(deps, transaction, envelopeIds, part, subscriptions, waitingVisitorsOf);
  const first = await applyPart(operations.slice(0, middle));
  return both(first, await applyPart(operations.slice(middle)));
}

async function deadLetter(
  deps: ProcessCommitBatchDeps,
  transaction: DatabaseOrTransaction,
  envelopeId: string,
  operation: Operation,
  error: Error,
): Promise<Applied> {
  await insertDeadLetteredOperation(transaction, {
    environmentId: operation.environmentId,
    parkedId: deps.newId(),
    envelopeId,
    operation: JSON.stringify({
      ...operation,
      envelopeNumber: undefined,
      place: undefined,
      flushIndex: undefined,
      isReplayed: undefined,
    }),
    error: toStorableText(error.stack ?? error.message),
  });
  const record: RecordIssue = {
    type: 'issue.record',
    environmentId: operation.environmentId,
    receivedAtMs: operation.receivedAtMs,
    source: operation.type,
    count: 1,
    issue: {
      code: isRefusedData(error) ? 'invalid' : 'parked',
      field: null,
      message: isRefusedData(error)
        ? `The call was accepted and could not be stored: ${error.message}. Correct the value, then send the call again.`
        : 'The call was accepted and met a fault of this service; it is kept, and applied once that is mended.',
      sample: JSON.stringify(operation).slice(0, 200),
    },
  };
  const { lanes, counts } = await applyTogether(
    deps,
    waitingForEach(transaction),
    [record],
    NO_SUBSCRIPTIONS,
  );
  return { lanes, counts: { ...counts, parked: 1 } };
}

/** The results of two steps together. */
export function both(first: Applied, second: Applied): Applied {
  return {
    lanes: [...first.lanes, ...second.lanes],
    counts: {
      events: first.counts.events + second.counts.events,
      reports: first.counts.reports + second.counts.reports,
      issues: first.counts.issues + second.counts.issues,
      parked: first.counts.parked + second.counts.parked,
    },
  };
}

/** Each lane once, with the later of its ends. */
export function eachOnce(lanes: readonly LoggedLane[]): LoggedLane[] {
  return [...new Map(lanes.map((lane) => [nameOf(lane), lane])).values()];
}
