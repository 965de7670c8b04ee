/**
 * Refused authentications, counted in memory and recorded once a second.
 *
 * Anybody can cause them, so they must not each cost a row: a flood of a million becomes one issue with a count. The
 * price: a crash forgets at most a second of them.
 */
import { DEMO_ELSEWHERE_MESSAGE } from '@sluice/domain/accounts/demo-calls';
import type { Operation } from '@sluice/domain/operations/operation';

/** Issues of credentials that name no workspace at all. */
const NO_ENVIRONMENT_ID = 0;

/** The reason of a refusal of credentials. */
export type RefusalReason =
  /** The call had no credentials. */
  | 'missing'
  /** Mistyped, revoked, or of another installation. */
  | 'not_in_force'
  /** A Pipelines key that no identify call has tested yet: it is refused for all other calls. */
  | 'untested_key'
  /** The demo's, through a proxy or for a host that is not this machine. */
  | 'demo_elsewhere';

/** One refused authentication, as far as it may be logged. */
export interface Refusal {
  readonly reason: RefusalReason;
  /** The last characters of the key, or of the site id. */
  readonly hint: string | undefined;
}

/** Refusals since the last line of the log. */
export interface RefusalSummary {
  readonly count: number;
  readonly countsByReason: Readonly<Partial<Record<RefusalReason, number>>>;
  /** The last one with a hint, by which its sender can be found; if all lack a hint, the last one. */
  readonly last: Refusal & { readonly source: string };
}

interface CountedRefusals {
  readonly environmentId: number;
  readonly source: string;
  readonly message: string;
  /** Of the last call with a key. */
  hint: string | undefined;
  count: number;
}

const MESSAGE = 'the credentials of the call are missing or not in force';
const UNTESTED_MESSAGE =
  'the key is new: it takes identify calls only until one of them succeeds, so this call was not accepted';

const MESSAGES: ReadonlyMap<RefusalReason, string> = new Map([
  ['untested_key', UNTESTED_MESSAGE],
  ['demo_elsewhere', DEMO_ELSEWHERE_MESSAGE],
]);

export class UnauthorizedRecorder {
  /** Since the start, for `/metrics`. Permissive calls among them were answered 200, and not taken. */
  readonly reasonCounts = new Map<RefusalReason, number>([
    ['missing', 0],
    ['not_in_force', 0],
    ['untested_key', 0],
    ['demo_elsewhere', 0],
  ]);
  #summary: RefusalSummary | undefined;
  #counts = new Map<string, CountedRefusals>();

  /** `environmentId` is set if the site id was one of ours. */
  record(source: string, environmentId = NO_ENVIRONMENT_ID, refusal?: Refusal): void {
    if (refusal !== undefined) {
      const { reason } = refusal;
      this.reasonCounts.set(reason, (this.reasonCounts.get(reason) ?? 0) + 1);
      this.#summarize(refusal, source);
    }
    const message = (refusal && MESSAGES.get(refusal.reason)) ?? MESSAGE;
    const key = `${environmentId} ${source} ${message}`;
    const hint = refusal?.hint;
    const counted = this.#counts.get(key);
    if (counted) {
      counted.count++;
      counted.hint = hint ?? counted.hint;
    } else this.#counts.set(key, { environmentId, source, message, hint, count: 1 });
  }

  #summarize(refusal: Refusal, source: string): void {
    const { count = 0, countsByReason = {}, last } = this.#summary ?? {};
    const isFindable = refusal.hint !== undefined || last?.hint === undefined;
    this.#summary = {
      count: count + 1,
      countsByReason: {
        ...countsByReason,
        [refusal.reason]: (countsByReason[refusal.reason] ?? 0) + 1,
      },
      last: isFindable ? { ...refusal, source } : last,
    };
  }

  /** Takes the counts that the log does not have yet. */
  takeSummary(): RefusalSummary | undefined {
    const summary = this.#summary;
    this.#summary = undefined;
    return summary;
  }

  /** Takes the counts since the last call. */
  take(receivedAtMs: number): Operation[] {
    const counted = [...this.#counts.values()];
    this.#counts.clear();
    return counted.map(({ environmentId, source, message, hint, count }) => ({
      type: 'issue.record',
      environmentId,
      receivedAtMs,
      issue: {
        code: 'authentication_failed',
        field: null,
        message,
        // The issue of a workspace is without it: there the hint is the site id, or the end of a key in force.
        ...(environmentId === NO_ENVIRONMENT_ID && hint !== undefined && { sample: hint }),
      },
      source,
      count,
    }));
  }
}
