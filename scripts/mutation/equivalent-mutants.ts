/** Mutants without a visible effect, each with its reason. Kept in `equivalent-mutants.json`. */
import { readFileSync } from 'node:fs';
import { mutate, type Mutant } from './mutants.ts';

export interface EquivalentMutant {
  /** From the root of the repository. */
  readonly file: string;
  /** Of `from` among the equal lines of the file, from 1. Absent if the lines are unique. */
  readonly occurrence?: number;
  /** The changed lines without the white space around them; line numbers move, so they are not kept. */
  readonly from: string;
  readonly to: string;
  readonly reason: string;
}

export const readEquivalentMutants = (path: URL): EquivalentMutant[] =>
  JSON.parse(readFileSync(path, 'utf8')) as EquivalentMutant[];

/**
 * @param text - of the file.
 * @throws Error if the lines stand more than once in the file and the entry has no occurrence: another place has another
 *   effect.
 */
export function isKeptAsEquivalent(
  { from, to, occurrence }: ChangedLines,
  text: string,
  kept: readonly EquivalentMutant[],
): boolean {
  const found = kept.filter((each) => each.from === from && each.to === to);
  const isUnique = text.split(from).length === 2;
  if (!isUnique && found.some((each) => each.occurrence === undefined))
    throw new Error(`${from} stands more than once; its entry needs an occurrence`);
  return found.some((each) => each.occurrence === undefined || each.occurrence === occurrence);
}

export interface ChangedLines {
  /** Of the first changed line, from 1. */
  readonly line: number;
  /** Among the equal lines of the file, from 1. */
  readonly occurrence: number;
  readonly from: string;
  readonly to: string;
}

/** The whole lines that a mutant changes. */
export function changedLines(text: string, mutant: Mutant): ChangedLines {
  const lineStart = text.lastIndexOf('\n', mutant.start - 1) + 1;
  const next = text.indexOf('\n', mutant.end);
  const lineEnd = next === -1 ? text.length : next;
  const mutated = mutate(text, mutant);
  const from = text.slice(lineStart, lineEnd).trim();
  return {
    line: text.slice(0, mutant.start).split('\n').length,
    occurrence: text.slice(0, lineEnd).split(from).length - 1,
    from,
    to: mutated.slice(lineStart, lineEnd + mutated.length - text.length).trim(),
  };
}
