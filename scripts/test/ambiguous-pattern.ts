/**
 * Finds regular expressions that need more than linear time.
 *
 * It only reads them. A backtracking engine tries one way after the other, so its time is the number of ways on one text. That number has no linear bound
 * if and only if two places `p` and `q` of the automaton share a text that leads from `p` to `p`, from `p` to `q` and from
 * `q` to `q` (Weber and Seidl, 1991), or if a repetition holds another one. It does no harm if `q` completes the match,
 * since the engine then stops.
 *
 * The automaton has more ways than the pattern: `$`, `\b` and look-arounds always hold, and `{2,1000}` has no upper bound.
 * So a pattern that is found may be harmless, and one that is not found is linear.
 */
import { type Automaton, readAutomaton } from './pattern-automaton.ts';

/** @returns undefined for a linear pattern, else the parts that share a text. */
export function findAmbiguity(source: string, flags: string): string | undefined {
  const automaton = readAutomaton(source, flags);
  const { next, complete, sources } = automaton;
  const reach = next.map((ways) => {
    const found = new Set<number>(ways.keys());
    for (const place of found) for (const each of next[place]?.keys() ?? []) found.add(each);
    return found;
  });
  const looped = [...next.keys()].filter((place) => reach[place]?.has(place));
  for (const p of looped) {
    if (complete.has(p)) continue;
    for (const [to, count] of next[p] ?? [])
      if (count > 1 && reach[to]?.has(p)) return `${sources[to]}, repeated in a repetition`;
    for (const q of looped)
      if (q !== p && !complete.has(q) && reach[p]?.has(q) && shareText(automaton, reach, p, q))
        return `${sources[p]} and ${sources[q]}`;
  }
  return undefined;
}

/** True if one text leads from p to p, from p to q, and from q to q. */
function shareText(
  { next, reads }: Automaton,
  reach: readonly ReadonlySet<number>[],
  p: number,
  q: number,
): boolean {
  const seen = new Set<string>();
  const open: [number, number, number][] = [[p, p, q]];
  const on = (from: number, to: number): number[] =>
    [...(next[from]?.keys() ?? [])].filter((each) => each === to || reach[each]?.has(to));
  for (let triple = open.pop(); triple; triple = open.pop()) {
    const [ofFirst, ofSecond, ofThird] = [on(triple[0], p), on(triple[1], q), on(triple[2], q)];
    for (const first of ofFirst)
      for (const second of ofSecond)
        for (const third of ofThird) {
          const shared = (reads[first] ?? 0n) & (reads[second] ?? 0n) & (reads[third] ?? 0n);
          const name = `${first} ${second} ${third}`;
          if (shared === 0n || seen.has(name)) continue;
          if (first === p && second === q && third === q) return true;
          seen.add(name);
          open.push([first, second, third]);
        }
  }
  return false;
}
