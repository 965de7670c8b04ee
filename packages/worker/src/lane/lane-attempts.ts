/**
 * The attempts of one drain.
 *
 * It sends a delivery that the rules have started, and passes the result to the rules, to a live tail, and to the
 * lease, which stores it.
 *
 * Part of `lane-drain.ts`, which decides when one is made. After: `http-client.ts` (step 13), and the answer comes
 * back.
 */
import type { LoggedDelivery } from '@sluice/database/delivery/logged-deliveries';
import type { AttemptRecord } from '@sluice/database/delivery/lane-progress';
import type { LaneRun } from '@sluice/domain/delivery/lane';
import { retryAfterMs } from '@sluice/domain/delivery/retry-after';
import { lineOfAttempt, type TailPublisher } from '@sluice/domain/operations/tail';
import type { Json } from '@sluice/domain/values/json';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import { outcomeOf, type HttpOutcome } from '../http/http-outcome.ts';
import type { LaneDrainDeps } from './lane-drain-deps.ts';
import type { LaneEndpoint } from './lane-endpoint.ts';
import type { LaneLease } from './lane-lease.ts';
import { busyConcurrencyLimit } from './lane-log.ts';
import { maskSecrets } from './mask-secrets.ts';

export interface LaneAttemptsOptions {
  readonly deps: LaneDrainDeps;
  readonly lane: LaneKey;
  readonly run: LaneRun<LoggedDelivery>;
  readonly endpoint: LaneEndpoint;
  readonly lease: LaneLease;
}

export class LaneAttempts {
  readonly #options: LaneAttemptsOptions;
  #lastEndedAtIdleTimeMs: number;

  constructor(options: LaneAttemptsOptions) {
    this.#options = options;
    this.#lastEndedAtIdleTimeMs = options.deps.idleTime.totalMs();
  }

  /** Idle time of the process in milliseconds, since the last attempt ended, or since the drain began. */
  get idleTimeMsSinceEnding(): number {
    return this.#options.deps.idleTime.totalMs() - this.#lastEndedAtIdleTimeMs;
  }

  /**
   * @param onEnd - called as soon as the rules know the result: the next delivery may start before the caller hears of
   * another attempt's end.
   * @throws if the attempt has no outcome at all, not even a failure.
   */
  async make(delivery: LoggedDelivery, onEnd: () => void): Promise<void> {
    const { deps, endpoint } = this.#options;
    const startedAtMs = deps.now();
    const { version, secrets } = endpoint;
    const answer = await deps.post(endpoint.request(delivery, startedAtMs), delivery);
    const outcome = maskSecrets(answer, secrets);
    this.#end(delivery, startedAtMs, version, outcome);
    onEnd();
  }

  #end(
    delivery: LoggedDelivery,
    startedAtMs: number,
    endpointVersion: number,
    outcome: HttpOutcome,
  ): void {
    const { deps, lane, run, endpoint, lease } = this.#options;
    this.#lastEndedAtIdleTimeMs = deps.idleTime.totalMs();
    const { sequence } = delivery;
    const { status, durationMs } = outcome;
    const attempt = run.attempts(sequence) + 1;
    const result = outcomeOf(outcome);
    let verdict: AttemptRecord['outcome'] = 'delivered';
    if (result === 'delivered') {
      const mayGrow =
        !deps.idleTime.isShort() || run.concurrencyLimit < busyConcurrencyLimit(deps.laneCount());
      run.succeed(sequence, mayGrow);
    } else {
      const endedAtMs = startedAtMs + durationMs;
      const failure = {
        startedAtMs,
        status,
        failure: result,
        retryAfterMs: retryAfterMs(outcome.head, endedAtMs),
      };
      verdict = run.fail(sequence, failure, endedAtMs, deps.random());
      // It went to the endpoint from before a change, so it is no sign about the present one.
      if (endpointVersion !== endpoint.version) run.probeAtOnce(deps.now());
    }
    const failure = result === 'delivered' ? null : result;
    const judged = { outcome: verdict, failure };
    const ended = recordOf({ sequence, attempt, startedAtMs }, outcome, judged);
    lease.add(ended);
    publishAttempt(deps.tail, lane, delivery, ended);
    deps.countAttempt?.(lane, ended);
  }
}

/**
 * The stored record of one attempt.
 *
 * @param judged - the verdict of the lane's rules about the answer, with the reason if it is no success.
 */
function recordOf(
  { sequence, attempt, startedAtMs }: Pick<AttemptRecord, 'sequence' | 'attempt' | 'startedAtMs'>,
  answer: HttpOutcome,
  { outcome, failure }: Pick<AttemptRecord, 'outcome' | 'failure'>,
): AttemptRecord {
  return {
    sequence,
    attempt,
    startedAtMs,
    durationMs: answer.durationMs,
    status: answer.status,
    outcome,
    failure,
    failureMessage: answer.outcome === 'failure' ? answer.message : null,
    responseHead: answer.head || null,
    responseBody: answer.body || null,
  };
}

/** One line for readers of the workspace's live tail (`GET /v1/stream` of the API); costs no time without a reader. */
function publishAttempt(
  tail: TailPublisher | undefined,
  lane: LaneKey,
  { eventType, body }: LoggedDelivery,
  ended: AttemptRecord,
): void {
  if (!tail?.isTailed(lane.environmentId)) return;
  const attempt = { ...ended, ...lane, eventType, body: JSON.parse(body) as Json };
  const atMs = ended.startedAtMs + Math.round(ended.durationMs);
  tail.publish(lane.environmentId, [lineOfAttempt(attempt, atMs)]);
}
