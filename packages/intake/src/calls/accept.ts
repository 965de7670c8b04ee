/**
 * The use case of intake (step 5): one call in, one outcome out.
 *
 * authenticate (2) → rate (3) → parse (4) → group commit (6). It is independent of HTTP: `answer.ts` (8) maps the
 * outcome to a status, after the flush has been made durable.
 *
 * Permissive mode (Pipelines without `X-Strict-Mode`) answers `accepted` to a faulty call too, and records the faults.
 * The records travel in the same commit batch as the accepted operations, so they are as durable.
 *
 * Callback instead of a promise: at 100,000 calls/s the promise alone would cost 5 % of the core.
 *
 * Before: `exchange.ts`, with a body that has been read. After: `batcher.ts`, then `answer.ts`.
 */
import { DEMO_ELSEWHERE_MESSAGE } from '@sluice/domain/accounts/demo-calls';
import { isError, type Issue } from '@sluice/domain/operations/issue';
import type { Operation } from '@sluice/domain/operations/operation';
import type { BatchSteps } from '@sluice/domain/parsing/batch';
import type { ParseContext } from '@sluice/domain/parsing/parse';
import type { TailPublisher } from '@sluice/domain/operations/tail';
import type { TestKey } from '@sluice/database/accounts/workspace-keys';
import { hintOf, type Authentication, type KeyRing, type Workspace } from '../auth/authenticate.ts';
import { findShown, refusalOf, type ShownCredentials } from '../auth/shown-credentials.ts';
import type { Refusal } from '../auth/unauthorized-recorder.ts';
import type { Batcher, CommitOutcome } from '../commit/batcher.ts';
import type { EventTypeCache } from '../event-types/event-type-cache.ts';
import { OperationWriter } from '../groups/operation-writer.ts';
import { bodyIssue, recordIssues, withinSize } from './call-issues.ts';
import type { Call } from './calls.ts';
import type { RateLimiter } from '../auth/rate-limit.ts';
import { ACCEPTED, acceptedOutcome, type AnswerCall, type Outcome } from './outcome.ts';
import type { Body, ItemsInTurns } from './read-body.ts';
import { isPermissive, sizeBytesMaxOf } from './strict-mode.ts';
import { publishingToo, TailedCall } from './tailed-call.ts';

export interface Submission {
  readonly call: Call;
  /** The `Authorization` header; empty if the call has no such header. */
  readonly authorization: string;
  readonly isStrict: boolean;
  /** True if the demo's credentials may be used for the call. */
  readonly mayUseDemo: () => boolean;
  readonly body: Body;
  /** From the path, percent-decoded. */
  readonly parameters: readonly string[];
}

export interface AcceptDependencies {
  readonly keys: KeyRing;
  /** Undefined: no workspace has a limit. */
  readonly rateLimiter: RateLimiter | undefined;
  /** As `rateLimiter`, of calls that publish; those are not counted among the others. */
  readonly publishRateLimiter?: RateLimiter | undefined;
  readonly batcher: Batcher;
  /** Absent: no workspace has one with a schema. */
  readonly eventTypes?: Pick<EventTypeCache, 'ofWorkspace'>;
  /** Counts a refused authentication; the recorder writes it with others like it. */
  readonly recordUnauthorized: (
    source: string,
    environmentId: number | undefined,
    refusal?: Refusal,
  ) => void;
  /** Counts refusals that were reported to their sender; the recorder writes each with others like it. */
  readonly recordRefusal?: (workspace: Workspace, source: string, issues: readonly Issue[]) => void;
  /** Readers of the workspace's live tail get the result of the call. */
  readonly tail?: TailPublisher;
  /** Saves a key that is made to be tested: an identify call with it was taken. */
  readonly saveTestedKey?: (key: TestKey) => void;
  /** When a call that found no capacity should be sent again. */
  readonly retryAfterSeconds: () => number;
  readonly now: () => number;
  /** ULID. */
  readonly newId: () => string;
}

/** Size of one recorded issue for the memory bound: about its real one. */
const RECORD_SIZE_BYTES = 1_024;

const UNAUTHORIZED: Outcome = { outcome: 'unauthorized' };
export const RATE_LIMITED: Outcome = { outcome: 'rate-limited' };

/**
 * Takes one call. `answer` is called exactly once, now or after the commit.
 *
 * @returns a promise if its items are read one by one: the body is needed until it resolves.
 */
export function acceptCall(
  deps: AcceptDependencies,
  submission: Submission,
  answerCall: AnswerCall,
): void | Promise<void> {
  const authentication = authenticate(deps.keys, submission);
  if (authentication.outcome === 'unknown') {
    refuseUnknown(deps, submission, authentication.siteEnvironmentId, answerCall);
    return;
  }
  const { workspace } = authentication;
  if (workspace.isDemo && !submission.mayUseDemo()) {
    refuseDemo(deps, submission, workspace, answerCall);
    return;
  }
  const receivedAtMs = deps.now();

  let answer: (outcome: Outcome) => void = answerCall;
  let tailed: TailedCall | undefined;
  if (deps.tail?.isTailed(workspace.environmentId)) {
    tailed = new TailedCall(submission.call.name, receivedAtMs);
    answerCall = publishingToo(deps.tail, workspace.environmentId, tailed, answerCall);
    answer = answerCall;
  }
  const { call, isStrict } = submission;
  const rateLimiter = call.success === 'results' ? deps.publishRateLimiter : deps.rateLimiter;
  if (rateLimiter !== undefined) {
    const standing = rateLimiter.take(workspace.environmentId);
    answer = (outcome) => answerCall(outcome, standing);
    if (!standing.isTaken) {
      answer(RATE_LIMITED);
      return;
    }
  }

  const sizeBytesMax = sizeBytesMaxOf(call, isStrict);
  const body = withinSize(submission.body, sizeBytesMax);
  if (body.outcome !== 'read') {
    const issues = [bodyIssue(body, sizeBytesMax)];
    tailed?.found([], issues);
    refuse(deps, submission, workspace, receivedAtMs, issues, answer);
    return;
  }

  const eventTypes =
    call.success === 'results' ? deps.eventTypes?.ofWorkspace(workspace.environmentId) : undefined;
  const context: ParseContext = {
    environmentId: workspace.environmentId,
    receivedAtMs,
    newId: deps.newId,
    phoneIdentifies: workspace.phoneIdentifies,
    isStrict,
    source: call.name,
    bodySizeBytes: body.sizeBytes,
    hasEscapes: body.hasEscapes,
    ...(body.faults && { faults: body.faults }),
    ...(eventTypes && { eventTypes }),
  };
  const { inTurns } = body;
  const taking = { submission, workspace, receivedAtMs, sizeBytes: body.sizeBytes, tailed, answer };
  if (inTurns !== undefined && call.parseInSteps !== undefined) {
    const steps = call.parseInSteps(body.value, inTurns.items, context);
    return acceptInSteps(deps, taking, steps, inTurns);
  }
  const { operations, issues } = call.parse(body.value, context, submission.parameters);
  tailed?.found(operations, issues);
  conclude(deps, taking, operations, issues);
}

/** A call whose body has been read and whose sender may make it. */
interface Taking {
  readonly submission: Submission;
  readonly workspace: Workspace;
  readonly receivedAtMs: number;
  readonly sizeBytes: number;
  readonly tailed: TailedCall | undefined;
  readonly answer: (outcome: Outcome) => void;
}

/** As `acceptCall`, an item after another, in as many turns as that takes. A sender who leaves meanwhile is not answered. */
async function acceptInSteps(
  deps: AcceptDependencies,
  taking: Taking,
  steps: BatchSteps,
  { nextTurn }: ItemsInTurns,
): Promise<void> {
  const { tailed } = taking;
  const operations = new OperationWriter(deps.batcher.isTraced || tailed !== undefined);
  let turn = await nextTurn();
  while (turn !== undefined) {
    const step = steps.next();
    if (step.done) {
      tailed?.found(operations.operations, step.value);
      conclude(deps, taking, operations, step.value);
      return;
    }
    for (const operation of step.value) operations.add(operation);
    if (turn.isOver()) turn = await nextTurn();
  }
}

/** Commits or refuses the parsed operations. */
function conclude(
  deps: AcceptDependencies,
  { submission, workspace, receivedAtMs, sizeBytes, answer: answerCall }: Taking,
  operations: Operation[] | OperationWriter,
  issues: readonly Issue[],
): void {
  const { call, isStrict } = submission;
  const answer =
    workspace.testKey !== undefined && !issues.some(isError)
      ? savingToo(deps, workspace.testKey, answerCall)
      : answerCall;
  const accepted = acceptedOutcome(call, operations, issues);
  if (issues.length === 0) {
    commit(deps, operations, sizeBytes, accepted, answer);
    return;
  }
  const isForgiven = isPermissive(call, isStrict);
  const hasErrors = issues.some(isError);
  if (hasErrors && !isForgiven && !(call.hasItems && countOf(operations) > 0)) {
    refuse(deps, submission, workspace, receivedAtMs, issues, answer);
    return;
  }
  const outcome: Outcome =
    hasErrors && !isForgiven
      ? { ...accepted, outcome: 'partly-accepted', issues: issues.filter(isError) }
      : accepted;
  if (outcome.outcome === 'partly-accepted')
    deps.recordRefusal?.(workspace, call.name, outcome.issues);
  const recorded = recordIssues(
    call,
    workspace,
    receivedAtMs,
    isForgiven ? issues : issues.filter((issue) => !isError(issue)),
  );
  commit(deps, withRecords(operations, recorded), sizeBytes, outcome, answer);
}

const countOf = (operations: readonly Operation[] | OperationWriter): number =>
  operations instanceof OperationWriter ? operations.count : operations.length;

function withRecords(
  operations: Operation[] | OperationWriter,
  recorded: readonly Operation[],
): Operation[] | OperationWriter {
  if (!(operations instanceof OperationWriter)) return [...operations, ...recorded];
  for (const operation of recorded) operations.add(operation);
  return operations;
}

/** A key that is not saved yet opens identify calls only (`ingestion-webhooks.md` §5). */
function authenticate(keys: KeyRing, submission: Submission): Authentication {
  const found = findCredentials(keys, submission);
  const isRefused =
    found.outcome === 'known' &&
    found.workspace.testKey !== undefined &&
    submission.call.name !== 'pipelines.identify';
  return isRefused
    ? { outcome: 'unknown', siteEnvironmentId: found.workspace.environmentId }
    : found;
}

function savingToo(
  deps: AcceptDependencies,
  key: TestKey,
  answer: (outcome: Outcome) => void,
): (outcome: Outcome) => void {
  return (outcome) => {
    if (outcome.outcome === 'accepted') deps.saveTestedKey?.(key);
    answer(outcome);
  };
}

const findCredentials = (keys: KeyRing, submission: Submission): Authentication =>
  findShown(keys, shownBy(submission));

const shownBy = ({ call, authorization, body }: Submission): ShownCredentials => ({
  api: call.api,
  authorization,
  body: body.outcome === 'read' ? body.value : undefined,
});

/** In permissive mode too: after a 200 a person who tries the demo would believe that it works. */
function refuseDemo(
  { recordUnauthorized }: AcceptDependencies,
  { call, authorization }: Submission,
  { environmentId }: Workspace,
  answer: AnswerCall,
): void {
  const refusal = { reason: 'demo_elsewhere', hint: hintOf(authorization) } as const;
  recordUnauthorized(call.name, environmentId, refusal);
  answer({ outcome: 'unauthorized', message: DEMO_ELSEWHERE_MESSAGE });
}

function refuseUnknown(
  deps: AcceptDependencies,
  submission: Submission,
  siteEnvironmentId: number | undefined,
  answer: AnswerCall,
): void {
  const { call, authorization, body, isStrict } = submission;
  // The key may be in a body that cannot be read: the fault of the body is more use than 401.
  if (call.api === 'pipelines' && isStrict && authorization === '' && body.outcome !== 'read') {
    const issue = bodyIssue(body, sizeBytesMaxOf(call, isStrict));
    answer({ outcome: 'rejected', issues: [issue] });
    return;
  }
  deps.recordUnauthorized(call.name, siteEnvironmentId, refusalOf(deps.keys, shownBy(submission)));
  answer(isPermissive(call, isStrict) ? ACCEPTED : UNAUTHORIZED);
}

/**
 * In strict mode and on the Track API the call is refused, and the caller gets the reason. In permissive mode it is
 * recorded and the caller gets "accepted".
 */
function refuse(
  deps: AcceptDependencies,
  { call, isStrict }: Submission,
  workspace: Workspace,
  receivedAtMs: number,
  issues: readonly Issue[],
  answer: (outcome: Outcome) => void,
): void {
  if (!isPermissive(call, isStrict)) {
    const errors = issues.filter(isError);
    deps.recordRefusal?.(workspace, call.name, errors);
    answer({ outcome: 'rejected', issues: errors });
  } else {
    const recorded = recordIssues(call, workspace, receivedAtMs, issues);
    commit(deps, recorded, recorded.length * RECORD_SIZE_BYTES, ACCEPTED, answer);
  }
}

/** Answers `outcome` once the operations are durable, or `overloaded` if they cannot be made so. */
export function commit(
  deps: AcceptDependencies,
  operations: readonly Operation[] | OperationWriter,
  sizeBytes: number,
  outcome: Outcome,
  answer: (outcome: Outcome) => void,
): void {
  if (countOf(operations) === 0) {
    answer(outcome);
    return;
  }
  const { batcher } = deps;
  const done = (committed: CommitOutcome): void =>
    answer(committed === 'committed' ? outcome : overloaded(deps));
  const isTaken =
    operations instanceof OperationWriter
      ? batcher.addWritten(operations, sizeBytes, done)
      : batcher.add(operations, sizeBytes, done);
  if (!isTaken) answer(overloaded(deps));
}

/** Neither broker nor disk buffer took it, or too much waits in memory. */
export const overloaded = (deps: AcceptDependencies): Outcome => ({
  outcome: 'overloaded',
  retryAfterSeconds: deps.retryAfterSeconds(),
});
