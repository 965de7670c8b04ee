/** The use case of intake, without sockets. */
import { createHash } from 'node:crypto';
import type { Operation, RecordIssue } from '@sluice/domain/operations/operation';
import type { TailPublisher } from '@sluice/domain/operations/tail';
import { KeyRing } from '../../src/auth/authenticate.ts';
import { RateLimiter } from '../../src/auth/rate-limit.ts';
import { UnauthorizedRecorder } from '../../src/auth/unauthorized-recorder.ts';
import { acceptCall, type AcceptDependencies, type Submission } from '../../src/calls/accept.ts';
import { routes, type Call } from '../../src/calls/calls.ts';
import type { Outcome } from '../../src/calls/outcome.ts';
import { readBody } from '../../src/calls/read-body.ts';
import { RefusalRecorder } from '../../src/calls/refusal-recorder.ts';
import { Batcher } from '../../src/commit/batcher.ts';
import { capacityOfOne } from './capacity-of-one.ts';
import { operationsIn } from './operations-in.ts';

export const PIPELINES = `Basic ${Buffer.from('key:').toString('base64')}`;
export const TRACK = `Basic ${Buffer.from('site:secret').toString('base64')}`;
const hashed = (secret: string) => createHash('sha256').update(secret).digest();

function callNamed(name: string): Call {
  const route = routes.find(({ call }) => call.name === name);
  if (!route) throw new Error(`no call ${name}`);
  return route.call;
}

/** A use case with a broker that confirms, or not. */
export function createIntake(
  options: {
    isBrokerAway?: boolean;
    pendingSizeBytesMax?: number;
    tail?: TailPublisher;
    eventTypes?: AcceptDependencies['eventTypes'];
    /** Calls that publish, in a second. */
    publishedPerSecond?: number;
  } = {},
) {
  const committed: Operation[] = [];
  const keys = new KeyRing();
  const workspace = { accountId: '1', phoneIdentifies: false };
  keys.replace([
    {
      kind: 'pipelines',
      siteId: null,
      secretHash: hashed('key'),
      environmentId: 1,
      credentialId: '11',
      ...workspace,
    },
    {
      kind: 'track',
      siteId: 'site',
      secretHash: hashed('secret'),
      environmentId: 2,
      credentialId: '12',
      ...workspace,
    },
  ]);
  let id = 0;
  const batcher = new Batcher({
    shardCount: 1,
    commit: (commitBatches) => {
      if (options.isBrokerAway) return Promise.reject(new Error('away'));
      committed.push(...operationsIn(commitBatches));
      return Promise.resolve('broker');
    },
    newId: () => `envelope-${id++}`,
    pending: capacityOfOne(options.pendingSizeBytesMax ?? 1_000_000),
    onCommitFailure: () => undefined,
  });
  const unauthorized = new UnauthorizedRecorder();
  const refusals = new RefusalRecorder();
  const { publishedPerSecond: perSecond } = options;
  const publishRateLimiter =
    perSecond === undefined ? undefined : new RateLimiter({ perSecond, windowSeconds: 1 }, () => 0);
  const submit = (
    name: string,
    body: unknown,
    overrides: Partial<Submission> = {},
  ): Promise<Outcome> => {
    const call = callNamed(name);
    const submission: Submission = {
      call,
      authorization: call.api === 'pipelines' ? PIPELINES : TRACK,
      isStrict: false,
      mayUseDemo: () => false,
      body: readBody(new Uint8Array(Buffer.from(JSON.stringify(body))), call.itemsKey),
      parameters: ['person-1'],
      ...overrides,
    };
    return new Promise((resolve) => {
      void acceptCall(
        {
          keys,
          batcher,
          ...(options.tail && { tail: options.tail }),
          ...(options.eventTypes && { eventTypes: options.eventTypes }),
          rateLimiter: undefined,
          publishRateLimiter,
          recordUnauthorized: (source, environmentId) => unauthorized.record(source, environmentId),
          recordRefusal: refusals.record.bind(refusals),
          retryAfterSeconds: () => 7,
          now: () => 1_000,
          newId: () => `event-${id++}`,
        },
        submission,
        resolve,
      );
    });
  };
  return { submit, committed, unauthorized, refusals };
}

export const issuesOf = (operations: readonly Operation[]) =>
  operations.filter((operation): operation is RecordIssue => operation.type === 'issue.record');
