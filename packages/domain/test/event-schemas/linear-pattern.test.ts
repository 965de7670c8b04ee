/**
 * Patterns, compared with the language's own engine.
 *
 * Their cost is at most their length times the length of the text.
 */
import { createContext, Script } from 'node:vm';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { matchesPattern, readPattern } from '../../src/event-schemas/linear-pattern.ts';
import { StepBudget } from '../../src/event-schemas/step-budget.ts';

function match(source: string, text: string, budget = new StepBudget(1_000_000)) {
  const read = readPattern(source);
  if (read.outcome === 'refused') throw new Error(read.message);
  return matchesPattern(read.pattern, text, budget);
}

const SEARCH_MS_MAX = 500;

const ATOMS = [
  'a',
  'b',
  'é',
  '𝒳',
  '.',
  '\\d',
  '\\w',
  '\\s',
  '\\p{L}',
  '[a-c]',
  '[^ab]',
  '[\\]\\d-]',
  '\\.',
  '\\u0061',
  '\\u{1d4b3}',
  '\\ud835\\udcb3',
  '\\x41',
  '\\cA',
  '\\t',
  '^',
  '$',
  '\\b',
  '\\B',
];
const QUANTIFIERS = ['', '', '', '*', '+', '?', '{2}', '{1,}', '{0,3}', '{0}', '*?', '+?'];

const { pattern } = fc.letrec<{ pattern: string; piece: string }>((tie) => ({
  piece: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(...ATOMS),
    tie('pattern').map((inside) => `(${inside})`),
    tie('pattern').map((inside) => `(?:${inside})`),
    tie('pattern').map((inside) => `(?<n${inside.length}>x)`),
  ),
  pattern: fc
    .array(
      fc.array(
        fc
          .tuple(tie('piece'), fc.constantFrom(...QUANTIFIERS))
          .map(([piece, quantifier]) =>
            /^(?:\^|\$|\\b|\\B)$/.test(piece) ? piece : piece + quantifier,
          ),
        { maxLength: 3 },
      ),
      { minLength: 1, maxLength: 3 },
    )
    .map((ways) => ways.map((way) => way.join('')).join('|')),
}));
const text = fc
  .array(
    fc.constantFrom('a', 'b', 'A', 'é', '𝒳', '1', ' ', '.', ']', '-', '\n', '\t', 'x', '\u0001'),
    { maxLength: 8 },
  )
  .map((characters) => characters.join(''));

test('a pattern matches exactly if the engine of the language matches', () => {
  fc.assert(
    fc.property(pattern, text, (source, given) => {
      fc.pre(isNative(source) && readPattern(source).outcome === 'compiled');
      const found = searchInTime(source, given);
      fc.pre(found !== undefined);
      expect(match(source, given)).toBe(found);
    }),
    { numRuns: 2_000 },
  );
});

/**
 * The search of the language (ECMA-262, RegExpBuiltinExec) begins at whole code points alone. V8 without the sticky flag
 * finds `\B` between the two halves of a pair also, so each begin is tried by itself.
 */
function isFoundAtSomeCodePoint(source: string, given: string): boolean {
  const sticky = new RegExp(source, 'uy');
  for (let begin = 0; begin <= given.length;) {
    sticky.lastIndex = begin;
    if (sticky.test(given)) return true;
    begin += (given.codePointAt(begin) ?? 0) > 0xff_ff ? 2 : 1;
  }
  return false;
}

const searched = { search: isFoundAtSomeCodePoint, source: '', given: '' };
const search = new Script('search(source, given)');
const context = createContext(searched);

/** @returns undefined if the engine takes too long: it tries each way, and nested repetitions have billions of them. */
function searchInTime(source: string, given: string): boolean | undefined {
  Object.assign(searched, { source, given });
  try {
    return search.runInContext(context, { timeout: SEARCH_MS_MAX }) as boolean;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_SCRIPT_EXECUTION_TIMEOUT') return undefined;
    throw error;
  }
}

test('the comparison leaves out a pattern that the engine of the language cannot search in time', () => {
  expect(searchInTime('(?:(?:a|a)*|(?:a|a)*)*x', 'a'.repeat(30))).toBeUndefined();
});

/** Two groups of a name, for one, are not. */
function isNative(source: string): boolean {
  try {
    return new RegExp(source, 'u') instanceof RegExp;
  } catch {
    return false;
  }
}

test('no pattern matches between the two halves of one character', () => {
  expect(match('\\B', 'a𝒳a')).toBe(false);
});

test.each(['^(a+)+$', '^(a|a)*$', '^(a|aa)+$', '(.*a){12}$', '^(([a-z])+.)+[A-Z]([a-z])+$'])(
  '%s of a long text costs its length times the pattern’s at most',
  (source) => {
    const budget = new StepBudget(100_000);
    expect(match(source, `${'a'.repeat(5_000)}!`, budget)).toBe(false);
    expect(budget.isSpent).toBe(false);
  },
);

test('a match that is too much work ends with the budget', () => {
  const budget = new StepBudget(1_000);
  match(`^(?:a{0,200}){2}$`, 'a'.repeat(60_000), budget);
  expect(budget.isSpent).toBe(true);
});

describe('refuses with the reason', () => {
  test.each([
    ['(', 'is not a regular expression'],
    ['a**', 'is not a regular expression'],
    ['\\-', 'is not a regular expression'],
    ['(?=a)', 'looks ahead or behind'],
    ['(?!a)', 'looks ahead or behind'],
    ['(?<=a)b', 'looks ahead or behind'],
    ['(?<!a)b', 'looks ahead or behind'],
    ['(a)\\1', 'refers to a group'],
    ['(?<n>a)\\k<n>', 'refers to a group'],
    ['a{1001}', 'is too large'],
    ['((a{99}){99}){99}', 'is too large'],
    ['(?:a{0,40}){40}', 'is too large'],
    ['x'.repeat(501), 'is longer than 500'],
  ])('%s', (source, message) => {
    expect(readPattern(source)).toMatchObject({
      outcome: 'refused',
      message: expect.stringContaining(message) as string,
    });
  });
});

test.each(['(?:){1000000}', '(?:a{0}){0,99999999}', '(?:(?:){99999}){99999}'])(
  '%s, which repeats the empty text, is read at once',
  (source) => {
    expect(readPattern(source).outcome).toBe('compiled');
  },
);
