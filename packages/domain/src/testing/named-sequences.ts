/**
 * Sequences of calls by names that change their owners.
 *
 * Some of the calls are late. A draft has numbers only, for a late call is about a name that had an owner at its receipt.
 */
import type { Operation } from '../operations/operation.ts';
import {
  applyNamed,
  isClear,
  namesAt,
  NO_NAMES,
  operationOf,
  type NamedCall,
  type NamesOverTime,
} from './names-over-time.ts';
import { NOW_MS } from './sample-operations.ts';

/** Numbers choose one of the known names and times. */
export interface CallDraft {
  readonly type: NamedCall['type'];
  readonly isLate: boolean;
  readonly who: number;
  readonly other: number;
  readonly hasOther: boolean;
  readonly time: number;
  /** Of the intake that takes the call. */
  readonly clock: number;
  /** It is applied in one transaction with the next call, if it makes no person. */
  readonly isJoined: boolean;
}

/** A call that is to be applied next, and the model's state after it. */
export interface NextCall {
  readonly operation: Operation;
  /** Takes the call's effect. @param personId - of the person of `who` once the call is applied. */
  readonly after: (personId: number) => NamesOverTime;
  readonly who: string;
  readonly makesPerson: boolean;
}

const IDS = ['id:1', 'id:2', 'id:3'];
const EMAILS = ['email:a@x.example', 'email:b@x.example'];
const ALL = [...IDS, ...EMAILS];
const STEP_MS = 10;

/**
 * Makes the calls of drafts, one after another.
 */
export class NamedSequence {
  state: NamesOverTime = NO_NAMES;
  readonly #clocksApartMs: number;
  #count = 0;

  /** @param clocksApartMs - the most by which the clocks of two intakes differ. */
  constructor(clocksApartMs = 0) {
    this.#clocksApartMs = clocksApartMs;
  }

  /** The next call; undefined if the guarantee leaves its effect open. */
  next(draft: CallDraft): NextCall | undefined {
    const label = `call ${++this.#count}`;
    const nowMs = NOW_MS + this.#count * STEP_MS;
    const { isLate } = draft;
    const sinceMs = STEP_MS * (draft.time % this.#count);
    // Between two calls.
    const receivedAtMs = isLate ? NOW_MS + sinceMs + STEP_MS / 2 : nowMs;
    const call = this.#callOf(draft, receivedAtMs);
    const { state } = this;
    if (!call || (isLate && !isClear(state, call, receivedAtMs, this.#clocksApartMs)))
      return undefined;
    const operation = operationOf(state, call, label);
    if (!operation) return undefined;
    const how = { receivedAtMs, isLate, label };
    const countAfter = applyNamed(state, call, how, () => 0).people.length;
    return {
      operation: {
        ...operation,
        receivedAtMs: receivedAtMs + (draft.clock % (this.#clocksApartMs + 1)),
        ...(isLate && { isReplayed: true }),
      },
      after: (personId) => (this.state = applyNamed(state, call, how, () => personId)),
      who: 'who' in call ? call.who : call.to,
      makesPerson: countAfter > state.people.length,
    };
  }

  #callOf(
    { type, isLate, who: place, other, hasOther }: CallDraft,
    atMs: number,
  ): NamedCall | undefined {
    const known = namesAt(this.state, atMs);
    const names = isLate ? known : [...ALL, ...known.filter((name) => name.startsWith('svc_id:'))];
    if (names.length === 0) return undefined;
    const who = names[place % names.length] as string;
    switch (type) {
      case 'identify': {
        const others = who.startsWith('id:') ? EMAILS : IDS;
        const isBringing = hasOther && !who.startsWith('svc_id:');
        return { type, who, brought: isBringing ? others[other % others.length] : undefined };
      }
      case 'rename': {
        const [kind = '', to = ''] = (ALL[other % ALL.length] as string).split(/:(.*)/s);
        return { type, who, kind, to: hasOther ? to : '' };
      }
      case 'merge':
        return { type, to: who, from: names[other % names.length] as string };
      default:
        return { type, who };
    }
  }
}
