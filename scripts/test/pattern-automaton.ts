/** A regular expression as an automaton, for `ambiguous-pattern.ts`. Its places are the parts that read a character. */

export interface Automaton {
  /** For each place, the characters that it reads, one bit for each of the alphabet. */
  readonly reads: readonly bigint[];
  /** For each place, the text of the part. */
  readonly sources: readonly string[];
  /** Place → a place after it → the number of ways between them. */
  readonly next: readonly ReadonlyMap<number, number>[];
  /** Places after which the match is complete without another condition. */
  readonly complete: ReadonlySet<number>;
}

/** `start`: only at the beginning of the text, or of a line. `condition`: always, but it may fail in the engine. */
type Passage = 'free' | 'start' | 'condition';

interface Knot {
  readonly ways: { readonly to: Knot; readonly by: Passage }[];
  /** The place that reads a character between this knot and the next one. */
  place?: number;
}

interface Fragment {
  readonly from: Knot;
  readonly to: Knot;
}

const ASCII = Array.from({ length: 128 }, (_, code) => String.fromCodePoint(code));
const BEYOND = ['\u0085', '\u00ad', 'é', 'ж', '中', '\u0301', '\u2028', '\ufeff', '😀'];
/** Repetitions up to these numbers are written out. */
const EXACT_MAX = 64;
const OPTIONAL_MAX = 3;

const CLASS = /^\[(?:[^\]\\]|\\.)*\]/su;
const ESCAPE = /^\\(?:[pP]\{[^}]*\}|u\{[^}]*\}|u[\da-fA-F]{4}|x[\da-fA-F]{2}|.)/su;
const GROUP = /^\((?:\?(?:[:=!]|<[=!]|<\w+>))?/;

/** @param source - of a pattern that the language's engine compiles. */
export function readAutomaton(source: string, flags: string): Automaton {
  return new PatternReader(source, flags).read();
}

class PatternReader {
  readonly #text: string;
  readonly #flags: string;
  readonly #alphabet: readonly string[];
  readonly #reads: bigint[] = [];
  readonly #sources: string[] = [];
  readonly #after: Knot[] = [];
  #at = 0;

  constructor(text: string, flags: string) {
    this.#text = text;
    this.#flags = flags;
    const named = [...text.matchAll(/\\u([\da-fA-F]{4})/g)].map(([, code = '']) =>
      String.fromCharCode(Number.parseInt(code, 16)),
    );
    this.#alphabet = [...new Set([...ASCII, ...BEYOND, ...named, ...Array.from(text)])];
  }

  read(): Automaton {
    const whole = this.#readEither();
    const end = whole.to;
    if (!this.#flags.includes('y')) {
      // The engine begins anew at each character; a line begins after the end of another.
      const before = this.#readPlace('.', 'the text before');
      const line = this.#readPlace('[\\n\\r\\u2028\\u2029]', 'the lines before');
      for (const each of [before, line])
        each.to.ways.push(
          { to: before.from, by: 'free' },
          { to: line.from, by: 'free' },
          { to: whole.from, by: 'free' },
        );
    }
    const next = this.#after.map((knot, place) => this.#waysFrom(knot, this.#endsLine(place)));
    const complete = this.#after.flatMap((knot, place) => (leadsTo(knot, end) ? [place] : []));
    return { reads: this.#reads, sources: this.#sources, next, complete: new Set(complete) };
  }

  /** The places after a knot that no character has to be read for, with the number of ways. */
  #waysFrom(start: Knot, isAtLine: boolean): Map<number, number> {
    const found = new Map<number, number>();
    const passed = new Map<Knot, number>();
    const go = (knot: Knot): void => {
      const times = passed.get(knot) ?? 0;
      // Twice shows that a repetition in a repetition has two ways to go on.
      if (times === 2) return;
      passed.set(knot, times + 1);
      if (knot.place !== undefined) found.set(knot.place, (found.get(knot.place) ?? 0) + 1);
      for (const { to, by } of knot.ways) if (by !== 'start' || isAtLine) go(to);
      passed.set(knot, times);
    };
    go(start);
    return found;
  }

  /** True if a line may begin after the place. */
  #endsLine(place: number): boolean {
    const newline = 1n << BigInt(this.#alphabet.indexOf('\n'));
    return this.#flags.includes('m') && ((this.#reads[place] ?? 0n) & newline) !== 0n;
  }

  #readEither(): Fragment {
    const parts = [this.#readAll()];
    while (this.#text[this.#at] === '|') {
      this.#at++;
      parts.push(this.#readAll());
    }
    const [from, to] = [newKnot(), newKnot()];
    for (const part of parts) {
      from.ways.push({ to: part.from, by: 'free' });
      part.to.ways.push({ to, by: 'free' });
    }
    return { from, to };
  }

  #readAll(): Fragment {
    const from = newKnot();
    let to = from;
    while (this.#at < this.#text.length && !'|)'.includes(this.#text.charAt(this.#at)))
      to = this.#readRepeated(to);
    return { from, to };
  }

  /** Reads one part and appends it as often as it may come. @returns the end. */
  #readRepeated(before: Knot): Knot {
    const begin = this.#at;
    const first = this.#readAtom();
    const end = this.#at;
    const [whole, least, comma, most] =
      /^(?:[*+?]|\{(\d+)(,?)(\d*)\})\??/.exec(this.#text.slice(end)) ?? [];
    const again = (): Fragment => {
      this.#at = begin;
      const part = this.#readAtom();
      this.#at = end + (whole?.length ?? 0);
      return part;
    };
    this.#at = end + (whole?.length ?? 0);
    const min = least === undefined ? (whole?.startsWith('+') ? 1 : 0) : Number(least);
    const max = comma === '' ? min : most ? Number(most) : whole?.startsWith('?') ? 1 : Infinity;
    if (whole === undefined) return append(before, first);
    let at = before;
    let isFirst = true;
    const part = (): Fragment => {
      const made = isFirst ? first : again();
      isFirst = false;
      return made;
    };
    for (let count = 0; count < Math.min(min, EXACT_MAX); count++) at = append(at, part());
    if (max === min && min <= EXACT_MAX) return at;
    if (max - min <= OPTIONAL_MAX) {
      const exit = newKnot();
      for (let count = min; count < max; count++) {
        at.ways.push({ to: exit, by: 'free' });
        at = append(at, part());
      }
      at.ways.push({ to: exit, by: 'free' });
      return exit;
    }
    const [loop, exit] = [newKnot(), newKnot()];
    at.ways.push({ to: loop, by: 'free' });
    loop.ways.push({ to: exit, by: 'free' });
    append(loop, part()).ways.push({ to: loop, by: 'free' });
    return exit;
  }

  #readAtom(): Fragment {
    const rest = this.#text.slice(this.#at);
    const character = String.fromCodePoint(rest.codePointAt(0) ?? 0);
    if (character === '(') return this.#readGroup(rest);
    const source =
      (character === '[' && CLASS.exec(rest)?.[0]) ||
      (character === '\\' && ESCAPE.exec(rest)?.[0]) ||
      character;
    this.#at += source.length;
    if (source === '^') return passage('start');
    if (source === '$' || source === '\\b' || source === '\\B') return passage('condition');
    return this.#readPlace(source);
  }

  #readGroup(rest: string): Fragment {
    const [opening = ''] = GROUP.exec(rest) ?? [];
    this.#at += opening.length;
    const inside = this.#readEither();
    this.#at++;
    if (!/[=!]$/.test(opening)) return inside;
    // It reads characters that the pattern reads again, so it is a way that leads nowhere.
    const around = passage('condition');
    around.from.ways.push({ to: inside.from, by: 'condition' });
    return around;
  }

  #readPlace(source: string, name = source): Fragment {
    const literal = source.length === 1 && /[/\]{}]/.test(source) ? `\\${source}` : source;
    const flags = name === source ? this.#flags.replaceAll(/[^ius]/g, '') : '';
    const test = new RegExp(`^${literal}$`, flags);
    let bits = 0n;
    for (const [index, character] of this.#alphabet.entries())
      if (test.test(character)) bits |= 1n << BigInt(index);
    const [from, to] = [newKnot(), newKnot()];
    from.place = this.#reads.push(bits) - 1;
    this.#sources.push(name);
    this.#after.push(to);
    return { from, to };
  }
}

const newKnot = (): Knot => ({ ways: [] });

function passage(by: Passage): Fragment {
  const [from, to] = [newKnot(), newKnot()];
  from.ways.push({ to, by });
  return { from, to };
}

function append(before: Knot, { from, to }: Fragment): Knot {
  before.ways.push({ to: from, by: 'free' });
  return to;
}

function leadsTo(start: Knot, end: Knot): boolean {
  const found = new Set([start]);
  for (const knot of found) for (const { to, by } of knot.ways) if (by === 'free') found.add(to);
  return found.has(end);
}
