/** Shortens a sequence that shows a difference, by leaving out calls. */
import type { PlannedCall } from './model/call.ts';
import type { Judgement, Run } from './run-sequences.ts';

/** A race does not show each time, so each candidate runs this often. */
const COPIES = 8;
const CANDIDATES_MAX = 16;
const ROUNDS_MAX = 40;

/** Judges a round of runs; the fleet gives each its own names. */
type RunAll = (runs: readonly Run[]) => Promise<readonly Judgement[]>;

/** @param kind - the kind of difference that a shorter sequence must show too. */
export async function shrink(failed: Judgement, kind: string, runAll: RunAll): Promise<Judgement> {
  let best = failed;
  // The runs of the oracle itself have number 0.
  let nextRun = 1;
  let part = Math.ceil(best.calls.length / 2);
  for (let round = 0; round < ROUNDS_MAX && part >= 1; round++) {
    const candidates = withoutParts(best.calls, part).slice(0, CANDIDATES_MAX);
    const runs = candidates.flatMap((calls) =>
      Array.from({ length: COPIES }, () => ({ seed: failed.seed, run: nextRun++, calls })),
    );
    const judged = await runAll(runs);
    const shorter = judged
      .filter(({ differences }) => differences.some((each) => each.kind === kind))
      .toSorted((one, other) => one.calls.length - other.calls.length)[0];
    if (shorter) best = shorter;
    if (!shorter && part === 1 && best.calls.length <= CANDIDATES_MAX) break;
    part = Math.min(shorter ? part : Math.floor(part / 2), Math.ceil(best.calls.length / 2));
    if (part < 1 && best.calls.length > CANDIDATES_MAX) break;
  }
  return best;
}

/** The calls without their first part, without their second part, and so on; then batches with one item less. */
export function withoutParts(
  calls: readonly PlannedCall[],
  part: number,
): readonly (readonly PlannedCall[])[] {
  const starts = Array.from({ length: Math.ceil(calls.length / part) }, (_, index) => index * part);
  const shorter = starts
    .map((start) => [...calls.slice(0, start), ...calls.slice(start + part)])
    .filter((each) => each.length > 0);
  if (part > 1) return shorter;
  const smaller = calls.flatMap((planned, index) =>
    smallerBatches(planned).map((each) => calls.with(index, each)),
  );
  return [...shorter, ...smaller];
}

function smallerBatches(planned: PlannedCall): readonly PlannedCall[] {
  const { call } = planned;
  if (call.api === 'stream' && call.lines.length > 1)
    return call.lines.map((_, index) => ({
      ...planned,
      call: { ...call, lines: call.lines.toSpliced(index, 1) },
    }));
  if (call.api !== 'pipelines' && call.api !== 'v2') return [];
  const items = call.body['batch'];
  if (!Array.isArray(items) || items.length < 2) return [];
  return items.map((_, index) => ({
    ...planned,
    call: { ...call, body: { batch: items.toSpliced(index, 1) } } as PlannedCall['call'],
  }));
}
