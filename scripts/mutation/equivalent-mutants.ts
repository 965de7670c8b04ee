/** Mutants without a visible effect, each with its reason. Kept in `equivalent-mutants.json`. */
import { readFileSync } from 'node:fs';
import { mutate, type Mutant } from './mutants.ts';

export interface EquivalentMutant {
  /** From the root of the repository. */
  readonly file: string;
  /** The changed lines without the white space around them; line numbers move, so they are not kept. */
  readonly from: string;
  readonly to: string;
  readonly reason: string;
}

export const readEquivalentMutants = (path: URL): EquivalentMutant[] =>
  JSON.parse(readFileSync(path, 'utf8')) as EquivalentMutant[];

export interface ChangedLines {
  /** Of the first changed line, from 1. */
  readonly line: number;
  readonly from: string;
  readonly to: string;
}

/** The whole lines that a mutant changes. */
export function changedLines(text: string, mutant: Mutant): ChangedLines {
  const lineStart = text.lastIndexOf('\n', mutant.start - 1) + 1;
  const next = text.indexOf('\n', mutant.end);
  const lineEnd = next === -1 ? text.length : next;
  const mutated = mutate(text, mutant);
  return {
    line: text.slice(0, mutant.start).split('\n').length,
    from: text.slice(lineStart, lineEnd).trim(),
    to: mutated.slice(lineStart, lineEnd + mutated.length - text.length).trim(),
  };
}
