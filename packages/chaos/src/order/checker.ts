/**
 * Set of model states that a history allows.
 *
 * A call takes effect at one moment between its sending and its answer. Calls in flight together may take either order,
 * with one order for all their effects. The checker decides the order of a call only when its answer arrives: then each
 * candidate applies any of the calls in flight that may come first, and the answered call.
 *
 * A call that was not acknowledged stays in flight to the end: then it may have had its effect, or not.
 */
import { NEVER, type AnsweredCall } from './model/call.ts';
import { applyCall } from './model/model.ts';
import { EVERYONE, namesOfCall, writesOfCall } from './model/read-calls.ts';
import { createKeyOf, EMPTY_STATE, reachOf, type State } from './model/model-state.ts';

export type Verdict =
  | { readonly outcome: 'states'; readonly states: readonly State[] }
  /** More candidates than the bound: the history is not decided. */
  | { readonly outcome: 'too many'; readonly call: AnsweredCall };

/** Applied calls are the calls in flight whose effect this candidate already has. */
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
      ...(call.answeredAt === NEVER ? [] : [{ at: call.answeredAt, call, isAnswer: true }]),
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
  const states = ends(candidates, [...inFlight], keyOf, candidatesMax);
  const [left] = inFlight;
  return left && states.length > candidatesMax
    ? { outcome: 'too many', call: left }
    : { outcome: 'states', states };
}

/** States at the end: of the calls that were not acknowledged, any have taken effect, in any order. */
function ends(
  candidates: readonly Candidate[],
  inDoubt: readonly AnsweredCall[],
  keyOf: (state: State) => string,
  countMax: number,
): readonly State[] {
  const seen = new Set<string>();
  const states: State[] = [];
  const visit = ({ state, applied }: Candidate): void => {
    const key = `${flagsOf(inDoubt, applied)} ${keyOf(state)}`;
    if (seen.has(key) || states.length > countMax) return;
    seen.add(key);
    states.push(state);
    for (const next of inDoubt)
      if (mayApply(next, applied, inDoubt)) visit(withApplied({ state, applied }, next));
  };
  for (const candidate of candidates) visit(candidate);
  return states;
}

const flagsOf = (calls: readonly AnsweredCall[], applied: ReadonlySet<AnsweredCall>): string =>
  calls.map((each) => (applied.has(each) ? 1 : 0)).join('');

const withApplied = ({ state, applied }: Candidate, next: AnsweredCall): Candidate => ({
  state: applyCall(state, next.call),
  applied: new Set([...applied, next]),
});

/** A line of a stream comes after the line before it. */
const mayApply = (
  next: AnsweredCall,
  applied: ReadonlySet<AnsweredCall>,
  inFlight: readonly AnsweredCall[],
): boolean =>
  !applied.has(next) &&
  (next.follows === undefined || applied.has(next.follows) || !inFlight.includes(next.follows));

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
    const key = `${flagsOf(inFlight, applied)} ${keyOf(state)}`;
    if (seen.has(key)) return;
    seen.add(key);
    if (applied.has(call)) {
      done.push({ state, applied: new Set([...applied].filter((each) => each !== call)) });
      return;
    }
    for (const next of [call, ...before])
      if (mayApply(next, applied, inFlight)) visit(withApplied(candidate, next), before);
  };
  for (const candidate of candidates) visit(candidate, connectedTo(call, inFlight, candidate));
  return done;
}

/**
 * Calls in flight whose order against `call` can matter: they share a person with it, directly or through other calls
 * in flight, or write the same thing as a visitor of one of them. Any other call has the same effect after `call` as
 * before it.
 */
function connectedTo(
  call: AnsweredCall,
  inFlight: readonly AnsweredCall[],
  { state, applied }: Candidate,
): readonly AnsweredCall[] {
  const others = inFlight.filter((each) => each !== call && !applied.has(each));
  const ofVisitors = new Set(
    [call, ...others].flatMap((each) => writesOfCall(each.call).ofVisitors),
  );
  const reachOfCall = (each: AnsweredCall): readonly string[] => [
    ...reachOf(state, namesOfCall(each.call)),
    ...writesOfCall(each.call).all.filter((name) => ofVisitors.has(name)),
  ];
  const reached = new Set(reachOfCall(call));
  const found: AnsweredCall[] = [];
  let waiting = others.map((each) => ({ each, reach: reachOfCall(each) }));
  for (;;) {
    const near = waiting.filter(
      ({ reach }) =>
        reached.has(EVERYONE) || reach.some((name) => name === EVERYONE || reached.has(name)),
    );
    if (near.length === 0) return found;
    for (const { each, reach } of near) {
      found.push(each);
      for (const name of reach) reached.add(name);
      if (each.follows) for (const name of namesOfCall(each.follows.call)) reached.add(name);
    }
    waiting = waiting.filter((each) => !near.includes(each));
  }
}
