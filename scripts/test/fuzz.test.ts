/** A seeded minute of all fuzz targets (`npm run fuzz`). It finds a broken promise. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { seededRandom } from '@sluice/domain/values/seeded-random';
import { FastTrackParser } from '@sluice/intake/groups/fast-track-parser';
import { Corpus } from '../fuzzing/corpus.ts';
import { Features } from '../fuzzing/features.ts';
import { instrument } from '../fuzzing/instrument.ts';
import { compileInstrumented } from '../fuzzing/instrumented-assembly.ts';
import { choose, readKept } from '../fuzzing/kept-inputs.ts';

const SCRIPTS = fileURLToPath(new URL('..', import.meta.url));

/**
 * Inputs of a run: an idle core takes two to five seconds, so a run has under a minute at a tenth of its speed. The twelve
 * take half a minute of an idle core, and a minute of one that other tests share.
 */
const INPUT_COUNTS = {
  'http-response': 100_000,
  ndjson: 100_000,
  csv: 4_000,
  multipart: 5_000,
  'fast-track': 100_000,
  headers: 100_000,
};

test.each(
  Object.entries(INPUT_COUNTS).flatMap(([name, count]) =>
    [7, 8].map((seed) => [name, count, seed] as const),
  ),
)(
  'no generated input breaks a promise of %s: %i inputs, seed %i',
  { timeout: 300_000 },
  async (name, count, seed) => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      [
        ...['--disable-warning=ExperimentalWarning', 'fuzz.ts', name],
        ...['--runs', String(count), '--seed', String(seed)],
      ],
      { cwd: SCRIPTS },
    );
    expect(stdout).toMatch(new RegExp(`^${name}: ${count} inputs, .*nothing broken`));
    // If no input reached new code, the count would be 0.
    expect(Number(/, (\d+) kept/.exec(stdout)?.[1])).toBeGreaterThan(0);
  },
);

test('each branch of a file sets a flag of its own', () => {
  const flags = new Uint8Array(65_536);
  Object.assign(globalThis, { reachedParts: flags });
  const text = instrument(
    'a.ts',
    'const judge = (n: number) => { if (n > 5) return "large"; return n < 0 && n > -9 ? "negative" : "small"; }; judge(input);',
  );
  const run = (input: number): Set<number> => {
    flags.fill(0);
    // The one annotation of the text above.
    // oxlint-disable-next-line typescript/no-implied-eval -- it is the text of this test
    new Function('input', text.replace(': number', ''))(input);
    return new Set([...flags.keys()].filter((index) => flags[index] === 1));
  };
  const seen = [9, 1, -1].map(run);
  expect(new Set(seen.map((flagsOfRun) => [...flagsOfRun].join())).size).toBe(3);
});

test('inputs are made of seeds and words, and the same for the same seed', () => {
  const inputs = (seed: number): string[] => {
    const corpus = new Corpus(['abc', 'def'], ['WORD']);
    const random = seededRandom(seed);
    return Array.from({ length: 200 }, (_, run) => corpus.inputAt(run, random).toString('latin1'));
  };
  expect(inputs(1)).toEqual(inputs(1));
  expect(inputs(1)).not.toEqual(inputs(2));
  expect(inputs(1).slice(0, 2)).toEqual(['abc', 'def']);
  expect(inputs(1).some((input) => input.includes('WORD'))).toBe(true);
});

test('an input that takes another way through the WebAssembly parser is new, also if it is declined', async () => {
  const { module, countersIn } = await compileInstrumented();
  const parser = new FastTrackParser(module);
  const features = new Features();
  const isNew = (properties: string): boolean => {
    const call = `{"userId":"u","event":"e","properties":${properties}}`;
    parser.parse(Buffer.from(call), false, 1, 0);
    return features.note(countersIn(parser.memory));
  };
  expect(isNew('{"a":1}')).toBe(true);
  // The id of a call is random, and its digits take ways of their own.
  for (let n = 0; n < 2_000; n++) isNew('{"a":1}');
  expect(isNew('{"b":2}')).toBe(false);
  // The parser declines each of these at another place.
  for (const declined of ['{"a":tru}', '{"a":"\\x"}', '{"a":00}', '{"a":"\xff'])
    expect({ declined, isNew: isNew(declined) }).toEqual({ declined, isNew: true });
  expect(isNew('{"a":[[[[1]]]]}')).toBe(true);
});

test('the kept inputs are the shortest that together show as much', async () => {
  const seen = new Set<string>();
  const showsNew = async (input: Buffer): Promise<boolean> => {
    const before = seen.size;
    for (const letter of input.toString()) seen.add(letter);
    return seen.size > before;
  };
  const chosen = await choose(
    ['abcd', 'ab', 'b', 'cab'].map((text) => Buffer.from(text)),
    showsNew,
  );
  expect(chosen.map(String)).toEqual(['b', 'ab', 'cab', 'abcd']);
  const long = ['a', 'b', 'c'].map((letter) => Buffer.alloc(10_000, letter));
  seen.clear();
  expect(await choose(long, showsNew)).toHaveLength(1);
});

test.each(Object.keys(INPUT_COUNTS))('%s has kept inputs, which are not many', (name) => {
  const kept = readKept(name);
  expect(kept.length).toBeGreaterThan(0);
  expect(kept.reduce((sum, input) => sum + input.length, 0)).toBeLessThanOrEqual(16_384);
});
