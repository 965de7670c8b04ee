/**
 * A regular expression as a program for a machine without backtracking (`linear-pattern.ts`): Thompson's construction.
 *
 * The syntax is ECMAScript's with the flag `u`, as JSON Schema recommends, without the parts that no such machine can
 * run: look-ahead, look-behind and references to groups. The engine of the language compiles the text first and reports
 * its errors, so the text that is read here is well-formed. The engine also decides for one character at a time whether
 * a class or an escape matches it: with one character no backtracking is possible.
 */

/** Places are places of the program. `char` goes on to the place after it. */
export type Instruction =
  | { readonly kind: 'char'; readonly test: CharacterTest }
  | { readonly kind: 'either'; readonly places: readonly [number, number] }
  | { readonly kind: 'jump'; readonly place: number }
  | { readonly kind: 'assert'; readonly what: Assertion }
  | { readonly kind: 'match' };

export type Assertion = 'start' | 'end' | 'boundary' | 'no-boundary';
export type CharacterTest = (codePoint: number) => boolean;

export type PatternProgram =
  | { readonly outcome: 'compiled'; readonly program: readonly Instruction[] }
  /** `message` goes on after the name of the pattern. */
  | { readonly outcome: 'refused'; readonly message: string };

const PATTERN_LENGTH_MAX = 500;
/** Each character of a text costs as many steps as there are instructions, at most. */
const INSTRUCTION_COUNT_MAX = 1_000;

type PatternNode =
  | { readonly kind: 'char'; readonly test: CharacterTest }
  | { readonly kind: 'assert'; readonly what: Assertion }
  | { readonly kind: 'all'; readonly parts: readonly PatternNode[] }
  | { readonly kind: 'either'; readonly parts: readonly PatternNode[] }
  | {
      readonly kind: 'repeat';
      readonly part: PatternNode;
      readonly min: number;
      readonly max: number;
    };

/** Thrown and caught in this file. */
class Refused extends Error {}

export function compilePattern(pattern: string): PatternProgram {
  if (pattern.length > PATTERN_LENGTH_MAX)
    return { outcome: 'refused', message: `is longer than ${PATTERN_LENGTH_MAX} characters` };
  try {
    new RegExp(pattern, 'u');
  } catch {
    return { outcome: 'refused', message: 'is not a regular expression' };
  }
  try {
    const program: Instruction[] = [];
    emit(program, new PatternReader(pattern).read());
    add(program, { kind: 'match' });
    return { outcome: 'compiled', program };
  } catch (error) {
    if (error instanceof Refused) return { outcome: 'refused', message: error.message };
    throw error;
  }
}

/** Of a text that the language's engine has compiled. */
class PatternReader {
  readonly #text: string;
  #place = 0;

  constructor(text: string) {
    this.#text = text;
  }

  read(): PatternNode {
    const parts = [this.#readAll()];
    while (this.#text[this.#place] === '|') {
      this.#place++;
      parts.push(this.#readAll());
    }
    return parts.length === 1 ? (parts[0] as PatternNode) : { kind: 'either', parts };
  }

  #readAll(): PatternNode {
    const parts: PatternNode[] = [];
    while (this.#place < this.#text.length && !'|)'.includes(this.#text[this.#place] ?? ''))
      parts.push(this.#readRepeated());
    return { kind: 'all', parts };
  }

  #readRepeated(): PatternNode {
    const part = this.#readAtom();
    const rest = this.#text.slice(this.#place);
    const [whole, min, comma, max] = /^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/.exec(rest) ?? [];
    if (whole === undefined) return part;
    this.#place += whole.length;
    if (min === undefined) {
      const sign = whole.charAt(0);
      return { kind: 'repeat', part, min: sign === '+' ? 1 : 0, max: sign === '?' ? 1 : Infinity };
    }
    const most = max === undefined || max === '' ? Infinity : Number(max);
    return { kind: 'repeat', part, min: Number(min), max: comma === '' ? Number(min) : most };
  }

  #readAtom(): PatternNode {
    const character = String.fromCodePoint(this.#text.codePointAt(this.#place) ?? 0);
    switch (character) {
      case '^':
        this.#place++;
        return { kind: 'assert', what: 'start' };
      case '$':
        this.#place++;
        return { kind: 'assert', what: 'end' };
      case '(':
        return this.#readGroup();
      case '[':
        return this.#readSource(/^\[(?:[^\]\\]|\\.)*\]/su);
      case '.':
        return this.#readSource(/^\./u);
      case '\\':
        return this.#readEscape();
      default: {
        this.#place += character.length;
        const wanted = character.codePointAt(0);
        return { kind: 'char', test: (codePoint) => codePoint === wanted };
      }
    }
  }

  #readGroup(): PatternNode {
    const [opening = ''] =
      /^\((?:\?(?:[:=!]|<[=!]|<[^>]*>|[a-z-]*:))?/u.exec(this.#text.slice(this.#place)) ?? [];
    if (/[=!]$/.test(opening)) throw new Refused('looks ahead or behind, which is not supported');
    if (/^\(\?[a-z-]+:$/.test(opening)) throw new Refused('has flags, which are not supported');
    this.#place += opening.length;
    const inside = this.read();
    this.#place++;
    return inside;
  }

  #readEscape(): PatternNode {
    const next = this.#text.charAt(this.#place + 1);
    if (next === 'b' || next === 'B') {
      this.#place += 2;
      return { kind: 'assert', what: next === 'b' ? 'boundary' : 'no-boundary' };
    }
    if (/[1-9k]/.test(next)) throw new Refused('refers to a group, which is not supported');
    return this.#readSource(
      /^\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[dD][89abAB][\da-fA-F]{2}\\u[dD][c-fC-F][\da-fA-F]{2}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|c[a-zA-Z]|.)/su,
    );
  }

  /** Reads a source that matches one character; the language's engine decides about it. */
  #readSource(form: RegExp): PatternNode {
    const [source = ''] = form.exec(this.#text.slice(this.#place)) ?? [];
    this.#place += source.length;
    const whole = new RegExp(`^${source}$`, 'u');
    return { kind: 'char', test: (codePoint) => whole.test(String.fromCodePoint(codePoint)) };
  }
}

function add(program: Instruction[], instruction: Instruction): number {
  if (program.length >= INSTRUCTION_COUNT_MAX)
    throw new Refused(`is too large; its repetitions count as often as they may come`);
  return program.push(instruction) - 1;
}

function emit(program: Instruction[], node: PatternNode): void {
  switch (node.kind) {
    case 'char':
    case 'assert':
      add(program, node);
      return;
    case 'all':
      for (const part of node.parts) emit(program, part);
      return;
    case 'either':
      emitEither(program, node.parts);
      return;
    case 'repeat':
      emitRepeated(program, node);
  }
}

function emitEither(program: Instruction[], parts: readonly PatternNode[]): void {
  const [first, ...others] = parts;
  if (!first) return;
  if (others.length === 0) {
    emit(program, first);
    return;
  }
  const fork = add(program, { kind: 'jump', place: 0 });
  emit(program, first);
  const exit = add(program, { kind: 'jump', place: 0 });
  program[fork] = { kind: 'either', places: [fork + 1, program.length] };
  emitEither(program, others);
  program[exit] = { kind: 'jump', place: program.length };
}

function emitRepeated(
  program: Instruction[],
  { part, min, max }: { readonly part: PatternNode; readonly min: number; readonly max: number },
): void {
  for (let count = 0; count < min; count++) {
    // A part that matches without a character matches once like a million times, and adds no step that a bound would
    // stop.
    const before = program.length;
    emit(program, part);
    if (program.length === before) break;
  }
  if (max === Infinity) {
    const fork = add(program, { kind: 'jump', place: 0 });
    emit(program, part);
    add(program, { kind: 'jump', place: fork });
    program[fork] = { kind: 'either', places: [fork + 1, program.length] };
    return;
  }
  const forks: number[] = [];
  for (let count = min; count < max; count++) {
    const before = program.length;
    forks.push(add(program, { kind: 'jump', place: 0 }));
    emit(program, part);
    if (program.length === before + 1) break;
  }
  for (const fork of forks) program[fork] = { kind: 'either', places: [fork + 1, program.length] };
}
