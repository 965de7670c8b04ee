/**
 * Set of model states that a history allows.
 *
 * A call takes effect at one moment between its sending and its answer. Calls in flight together may take either order,
 * with one order for all their effects. The checker decides the order of a call only when its answer arrives: then each
 * candidate applies any of the calls in flight that may come first, and the answered call.
 */
import type { AnsweredCall } from './call.ts';
import { applyCall } from './model.ts';
import { EVERYONE, namesOfCall } from './read-calls.ts';
import { createKeyOf, EMPTY_STATE, reachOf, type State } from './model-state.ts';

export type Verdict =
  | { readonly outcome: 'states'; readonly states: readonly State[] }
  /** More candidates than the bound: the history is not decided. */
  | { readonly outcome: 'too many'; readonly call: AnsweredCall };

/** Applied calls are those in flight whose effect this candidate already has. */
interface Candidate {
  readonly state: State;
  readonly applied: ReadonlySet<AnsweredCall>;
}

const CANDIDATES_MAX = 20_000;

export function possibleStates(
  history: readonly AnsweredCall[],
  candidatesMax = CANDIDATES_MAX,
): Verdict {
  const moments = history
    .flatMap((call) => [
      { at: call.sentAt, call, isAnswer: false },
      { at: call.answeredAt, call, isAnswer: true },
    ])
    .toSorted((one, other) => one.at - other.at);
  const keyOf = createKeyOf();
  const inFlight = new Set<AnsweredCall>();
  let candidates: readonly Candidate[] = [{ state: EMPTY_STATE, applied: new Set() }];
  for (const { call, isAnswer } of moments) {
    if (!isAnswer) {
      inFlight.add(call);
      continue;
    }
    candidates = answer(candidates, call, [...inFlight], keyOf);
    inFlight.delete(call);
    if (candidates.length > candidatesMax) return { outcome: 'too many', call };
  }
  return { outcome: 'states', states: candidates.map(({ state }) => state) };
}

/** Candidates in which the answered call has taken effect, equal ones once. */
function answer(
  candidates: readonly Candidate[],
  call: AnsweredCall,
  inFlight: readonly AnsweredCall[],
  keyOf: (state: State) => string,
): readonly Candidate[] {
  const seen = new Set<string>();
  const done: Candidate[] = [];
  const visit = (candidate: Candidate, before: readonly AnsweredCall[]): void => {
    const { state, applied } = candidate;
    const key = `${inFlight.map((each) => (applied.has(each) ? 1 : 0)).join('')} ${keyOf(state)}`;
    if (seen.has(key)) return;
    seen.add(key);
    if (applied.has(call)) {
      done.push({ state, applied: new Set([...applied].filter((each) => each !== call)) });
      return;
    }
    for (const next of [call, ...before])
      if (!applied.has(next))
        visit({ state: applyCall(state, next.call), applied: new Set([...applied, next]) }, before);
  };
  for (const candidate of candidates) visit(candidate, connectedTo(call, inFlight, candidate));
  return done;
}

/**
 * Calls in flight whose order against `call` can matter: they share a person with it, directly or through other calls
 * in flight. Any other call has the same effect after `call` as before it.
 */
function connectedTo(
  call: AnsweredCall,
  inFlight: readonly AnsweredCall[],
  { state, applied }: Candidate,
): readonly AnsweredCall[] {
  const reached = new Set(reachOf(state, namesOfCall(call.call)));
  const found: AnsweredCall[] = [];
  let waiting = inFlight
    .filter((each) => each !== call && !applied.has(each))
    .map((each) => ({ each, reach: reachOf(state, namesOfCall(each.call)) }));
  for (;;) {
    const near = waiting.filter(
      ({ reach }) =>
        reached.has(EVERYONE) || reach.some((name) => name === EVERYONE || reached.has(name)),
    );
    if (near.length === 0) return found;
    for (const { each, reach } of near) {
      found.push(each);
      for (const name of reach) reached.add(name);
    }
    waiting = waiting.filter((each) => !near.includes(each));
  }
}
