/** A short, seeded run of every fuzz target (`npm run fuzz`). It finds a broken promise. */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { seededRandom } from '@sluice/domain/values/seeded-random';
import { Corpus } from '../fuzzing/corpus.ts';
import { instrument } from '../fuzzing/instrument.ts';

const SCRIPTS = fileURLToPath(new URL('..', import.meta.url));

test.each(['http-response', 'ndjson', 'csv', 'multipart', 'fast-track', 'headers'])(
  'no input of a thousand breaks a promise of %s',
  { timeout: 300_000 },
  async (name) => {
    const { stdout } = await promisify(execFile)(
      process.execPath,
      ['--disable-warning=ExperimentalWarning', 'fuzz.ts', name, '--runs', '1000', '--seed', '7'],
      { cwd: SCRIPTS },
    );
    expect(stdout).toMatch(new RegExp(`^${name}: 1000 inputs, .*nothing broken`));
    // If no input reached new code, the count would be 0.
    expect(Number(/, (\d+) kept/.exec(stdout)?.[1])).toBeGreaterThan(3);
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
