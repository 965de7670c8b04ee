/**
 * The use case of `POST /unsubscribe/{delivery_id}`, the link in a message.
 *
 * It needs no credentials, so the delivery has to identify the workspace. The workspace is never guessed. Delivery ids
 * are the senders' own and may be the same in two workspaces. Then the call is refused with 400 and each of the
 * workspaces finds an `identifier_conflict` in its issues: a click on one tenant's message must not change another
 * tenant's person. A caller with Track credentials (the clients send them) asks in that workspace alone, so another
 * workspace with the same ids does not matter.
 *
 * The only call that asks Postgres. No other call waits for it: few are under way at a time, each has a deadline, and
 * beyond either bound it gets 503. A delivery is known after its first metric was processed.
 *
 * Stands beside `accept.ts`, between `exchange.ts` and `batcher.ts`.
 */
import { isError, type Issue } from '@sluice/domain/operations/issue';
import type { ParseContext } from '@sluice/domain/parsing/parse';
import type { AnswerCall, Outcome } from './outcome.ts';
import { acceptCall, commit, type AcceptDependencies, type Submission } from './accept.ts';
import { bodyIssue } from './call-issues.ts';
import { sizeBytesMaxOf } from './strict-mode.ts';
import { publishingToo, TailedCall } from './tailed-call.ts';

export interface DeliveryLookup {
  /** At least two of them, if there are two. */
  readonly listWorkspacesOfDelivery: (deliveryId: string) => Promise<readonly number[]>;
  readonly hasDelivery: (environmentId: number, deliveryId: string) => Promise<boolean>;
  /** Milliseconds. */
  readonly pause: (durationMs: number) => Promise<unknown>;
}

/** At a millisecond each they keep the pool busy for a tenth of a second; past that it is a flood. */
const LOOKUP_COUNT_MAX = 100;
const LOOKUP_DURATION_MS_MAX = 5_000;
/** The first metric may have been acknowledged a moment ago. A worker that keeps up processes it within milliseconds. */
const LOOKS_AGAIN_AFTER_MS = [20, 80, 200, 700];
/** A flood of unknown deliveries is answered at once. */
const WAITING_COUNT_MAX = 100;
const OVERLOADED: Outcome = { outcome: 'overloaded', retryAfterSeconds: 1 };

/** Makes the entrance of all calls: this one finds its workspace by the delivery, the others go to `acceptCall`. */
export function createAccept(
  deps: AcceptDependencies,
  lookup: DeliveryLookup,
): (submission: Submission, answer: AnswerCall) => void | Promise<void> {
  let lookupCount = 0;
  let waitingCount = 0;
  const lookUp = (submission: Submission): Promise<readonly number[]> => {
    lookupCount++;
    // Counted until Postgres lets go of it, not until the caller has: it holds its place in the pool.
    return workspacesOf(deps, lookup, submission).finally(() => lookupCount--);
  };
  const lookUpUntilKnown = async (
    submission: Submission,
    isOver: () => boolean,
  ): Promise<readonly number[]> => {
    let found = await lookUp(submission);
    if (found.length > 0 || waitingCount >= WAITING_COUNT_MAX) return found;
    waitingCount++;
    try {
      for (const afterMs of LOOKS_AGAIN_AFTER_MS) {
        await lookup.pause(afterMs);
        if (isOver()) break;
        // Without a look the delivery is not known to be unknown.
        if (lookupCount >= LOOKUP_COUNT_MAX) throw new Error('too many look-ups');
        found = await lookUp(submission);
        if (found.length > 0) break;
      }
      return found;
    } finally {
      waitingCount--;
    }
  };
  return (submission, answer) => {
    if (submission.call.workspaceFrom === 'credentials') {
      return acceptCall(deps, submission, answer);
    }
    // The issues are the same for any workspace: the body is judged before Postgres is asked.
    const issues = parse(deps, submission, 0).issues.filter(isError);
    if (issues.length > 0) {
      const caller = deps.keys.authenticateTrack(submission.authorization);
      if (caller.outcome === 'known')
        deps.recordRefusal?.(caller.workspace, submission.call.name, issues);
      answer({ outcome: 'rejected', issues });
      return;
    }
    if (lookupCount >= LOOKUP_COUNT_MAX) {
      answer(OVERLOADED);
      return;
    }
    withinDeadline((isOver) => lookUpUntilKnown(submission, isOver))
      .then((environmentIds) => settle(deps, submission, environmentIds, answer))
      .catch(() => answer(OVERLOADED));
  };
}

async function workspacesOf(
  { keys }: AcceptDependencies,
  { hasDelivery, listWorkspacesOfDelivery }: DeliveryLookup,
  { authorization, mayUseDemo, parameters: [deliveryId = ''] }: Submission,
): Promise<readonly number[]> {
  // Refused credentials are ignored, since the call needs no credentials.
  const caller = keys.authenticateTrack(authorization);
  if (caller.outcome === 'unknown' || (caller.workspace.isDemo && !mayUseDemo()))
    return listWorkspacesOfDelivery(deliveryId);
  const { environmentId } = caller.workspace;
  return (await hasDelivery(environmentId, deliveryId)) ? [environmentId] : [];
}

function settle(
  deps: AcceptDependencies,
  submission: Submission,
  environmentIds: readonly number[],
  answer: (outcome: Outcome) => void,
): void {
  const { body, call } = submission;
  const [environmentId] = environmentIds;
  if (environmentId !== undefined && environmentIds.length === 1) {
    const { operations } = parse(deps, submission, environmentId);
    const sizeBytes = body.outcome === 'read' ? body.sizeBytes : 0;
    if (deps.tail?.isTailed(environmentId)) {
      const tailed = new TailedCall(call.name, deps.now());
      tailed.found(operations, []);
      answer = publishingToo(deps.tail, environmentId, tailed, answer);
    }
    commit(deps, operations, sizeBytes, { outcome: 'accepted' }, answer);
    return;
  }
  const issue =
    environmentId === undefined ? unknownDelivery(submission) : sharedDelivery(submission);
  const recorded = environmentIds.map((id) => ({
    type: 'issue.record' as const,
    environmentId: id,
    receivedAtMs: deps.now(),
    issue,
    source: call.name,
    count: 1,
  }));
  commit(deps, recorded, 0, { outcome: 'rejected', issues: [issue] }, answer);
}

function parse(deps: AcceptDependencies, submission: Submission, environmentId: number) {
  const { body, call, isStrict, parameters } = submission;
  if (body.outcome !== 'read') {
    return { operations: [], issues: [bodyIssue(body, sizeBytesMaxOf(call, isStrict))] };
  }
  const context: ParseContext = {
    environmentId,
    receivedAtMs: deps.now(),
    newId: deps.newId,
    phoneIdentifies: false,
    bodySizeBytes: body.sizeBytes,
    hasEscapes: body.hasEscapes,
    isStrict,
    ...(body.faults && { faults: body.faults }),
  };
  return call.parse(body.value, context, parameters);
}

const unknownDelivery = ({ parameters: [deliveryId = ''] }: Submission): Issue => ({
  code: 'invalid',
  field: 'delivery_id',
  message: 'bad delivery id: the delivery is unknown. Use the link of the message',
  sample: deliveryId.slice(0, 200),
});

const sharedDelivery = ({ parameters: [deliveryId = ''] }: Submission): Issue => ({
  code: 'identifier_conflict',
  field: 'delivery_id',
  message:
    'bad delivery id: several workspaces have such a delivery, so no person was unsubscribed. Send the Track credentials of the right workspace',
  sample: deliveryId.slice(0, 200),
});

/** @param work - gets a function that returns true once the deadline is over. */
function withinDeadline<Value>(work: (isOver: () => boolean) => Promise<Value>): Promise<Value> {
  return new Promise((resolve, reject) => {
    let isOver = false;
    const timer = setTimeout(() => {
      isOver = true;
      reject(new Error('too slow'));
    }, LOOKUP_DURATION_MS_MAX);
    work(() => isOver)
      .then(resolve, reject)
      .finally(() => clearTimeout(timer));
  });
}
