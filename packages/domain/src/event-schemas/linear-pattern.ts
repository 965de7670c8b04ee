/**
 * Regular expressions of clients, matched without backtracking: all ways of a pattern at once, so that a text costs at most
 * its length times the length of the program. The engine of the language takes hours for `(a+)+$` and thirty letters.
 */
import { compilePattern, type Instruction } from './pattern-program.ts';
import type { StepBudget } from './step-budget.ts';

export interface LinearPattern {
  readonly source: string;
  readonly program: readonly Instruction[];
}

export type PatternOutcome =
  | { readonly outcome: 'compiled'; readonly pattern: LinearPattern }
  | { readonly outcome: 'refused'; readonly message: string };

export function readPattern(source: string): PatternOutcome {
  const compiled = compilePattern(source);
  return compiled.outcome === 'refused'
    ? compiled
    : { outcome: 'compiled', pattern: { source, program: compiled.program } };
}

/** An instruction takes some 0.1 µs, a schema that is asked of a value 0.5. */
const INSTRUCTIONS_A_STEP = 5;
/** To read a text as characters takes some 10 ns each, also if the first of them decides. */
const CHARACTERS_A_STEP = 50;

/** True if the pattern matches anywhere in the text. False too if the budget ends before that is known. */
export function matchesPattern(
  { program }: LinearPattern,
  text: string,
  budget: StepBudget,
): boolean {
  if (!budget.take(1 + text.length / CHARACTERS_A_STEP)) return false;
  const characters = charactersOf(text);
  let current: number[] = [];
  const visitedAt = new Int32Array(program.length).fill(-1);
  for (let at = 0; at <= characters.length; at++) {
    // A match may begin at each character.
    const open = [...current, 0];
    const waiting: number[] = [];
    let visitedCount = 0;
    while (open.length > 0) {
      const place = open.pop() as number;
      if (visitedAt[place] === at) continue;
      visitedAt[place] = at;
      visitedCount++;
      const instruction = program[place] as Instruction;
      switch (instruction.kind) {
        case 'match':
          return true;
        case 'char':
          waiting.push(place);
          break;
        case 'jump':
          open.push(instruction.place);
          break;
        case 'either':
          open.push(...instruction.places);
          break;
        case 'assert':
          if (holds(instruction.what, characters, at)) open.push(place + 1);
      }
    }
    if (!budget.take(visitedCount / INSTRUCTIONS_A_STEP)) return false;
    const character = characters[at];
    current = [];
    if (character === undefined) break;
    for (const place of waiting) {
      const instruction = program[place];
      if (instruction?.kind === 'char' && instruction.test(character)) current.push(place + 1);
    }
  }
  return false;
}

/** Without an iterator, which takes four times as long. */
function charactersOf(text: string): number[] {
  const characters: number[] = [];
  for (let at = 0; at < text.length; at++) {
    const character = text.codePointAt(at) as number;
    characters.push(character);
    // Two units.
    if (character > 0xffff) at++;
  }
  return characters;
}

function holds(
  what: Extract<Instruction, { kind: 'assert' }>['what'],
  characters: readonly number[],
  at: number,
): boolean {
  switch (what) {
    case 'start':
      return at === 0;
    case 'end':
      return at === characters.length;
    case 'boundary':
      return isWord(characters[at - 1]) !== isWord(characters[at]);
    case 'no-boundary':
      return isWord(characters[at - 1]) === isWord(characters[at]);
  }
}

const isWord = (codePoint: number | undefined): boolean =>
  codePoint !== undefined && /^\w$/.test(String.fromCodePoint(codePoint));
