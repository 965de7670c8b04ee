/**
 * `npm run fuzz -- [NAME…]`: tests readers of strangers' bytes with generated inputs. It ends with 1 at the first input
 * that breaks a promise, and prints it. Ten minutes each, or `--minutes N`, or `--runs N`; the same inputs for the same
 * `--seed` and runs. A run begins with the inputs of `fuzzing/kept`; `--keep` writes the shortest there that reach as much.
 *
 * Each target is a file of `fuzzing/targets`: seeds, words of its format, and the promise for every input. An input
 * that reaches a new part of the code is kept, and later ones are made of it (`fuzzing/corpus.ts`,
 * `fuzzing/features.ts`, `fuzzing/instrument.ts`).
 *
 * A small one of our own: Jazzer.js brings libFuzzer as a native program for each platform, for targets that chance and
 * the words of a format reach in seconds. A finding becomes a test of its package.
 */
import { parseArgs } from 'node:util';
import { seededRandom } from '@sluice/domain/values/seeded-random';
import { Corpus } from './fuzzing/corpus.ts';
import type { FuzzTarget } from './fuzzing/fuzz-target.ts';
import { Features } from './fuzzing/features.ts';
import { instrumentOnLoad, reached } from './fuzzing/instrument.ts';
import { choose, readKept, writeKept } from './fuzzing/kept-inputs.ts';

/** By name: the files whose parts are counted. */
const TARGETS: Readonly<Record<string, readonly string[]>> = {
  'http-response': ['worker/src/http/http-response.ts'],
  ndjson: ['intake/src/stream/split-lines.ts', 'intake/src/stream/stream-line.ts'],
  csv: [
    'worker/src/imports/read-csv.ts',
    'worker/src/imports/file-form.ts',
    'worker/src/imports/decode-file.ts',
    'worker/src/imports/row-end.ts',
  ],
  multipart: ['api/src/imports/receive-upload.ts'],
  'fast-track': [
    'intake/src/groups/fast-track-parser.ts',
    'intake/src/calls/read-body.ts',
    'domain/src/pipelines/pipelines.ts',
  ],
  headers: [
    'api/src/publishing/feed-accept.ts',
    'intake/src/auth/authenticate.ts',
    'intake/src/http/request-head.ts',
    'intake/src/calls/read-body.ts',
  ],
};
const USAGE = `usage: npm run fuzz -- [${Object.keys(TARGETS).join('|')}]… [--minutes N] [--runs N] [--seed N] [--keep]`;

const { values, positionals } = readCommandLine();
const names = positionals.length > 0 ? positionals : Object.keys(TARGETS);
instrumentOnLoad(Object.values(TARGETS).flat());
for (const name of names) await fuzz(name);

function readCommandLine() {
  try {
    const parsed = parseArgs({
      allowPositionals: true,
      options: {
        minutes: { type: 'string', default: '10' },
        runs: { type: 'string' },
        seed: { type: 'string', default: '1' },
        keep: { type: 'boolean', default: false },
      },
    });
    if (parsed.positionals.every((name) => Object.hasOwn(TARGETS, name))) return parsed;
    console.error(USAGE);
  } catch (error) {
    console.error(`${(error as Error).message}\n${USAGE}`);
  }
  return process.exit(2);
}

async function fuzz(name: string): Promise<void> {
  const { target } = (await import(`./fuzzing/targets/${name}.ts`)) as { target: FuzzTarget };
  const random = seededRandom(Number(values.seed));
  const kept = readKept(name);
  const corpus = new Corpus(target.seeds, target.words, kept);
  const givenCount = target.seeds.length + kept.length;
  const runsMax = values.runs === undefined ? Infinity : Number(values.runs);
  const endsAtMs =
    values.runs === undefined ? performance.now() + Number(values.minutes) * 60_000 : Infinity;
  reached.fill(0);
  const features = new Features();
  let run = 0;
  for (; run < runsMax && performance.now() < endsAtMs; run++) {
    const input = corpus.inputAt(run, random);
    try {
      await target.run(input, random);
    } catch (error) {
      console.error(
        `${name}: broken by run ${run} of seed ${values.seed}: ${JSON.stringify(input.toString('latin1'))}\n` +
          `base64 ${input.toString('base64')}\n${(error as Error).stack}`,
      );
      process.exit(1);
    }
    if (features.note(target.counts) && run >= givenCount) corpus.keep(input);
  }
  const { inputs } = corpus;
  console.log(
    `${name}: ${run} inputs, ${inputs.length} kept, ${features.count} parts reached, nothing broken`,
  );
  if (values.keep) writeKept(name, await fewest(target, inputs));
}

/** Of these inputs the shortest that together reach as much. */
async function fewest(target: FuzzTarget, inputs: readonly Buffer[]): Promise<Buffer[]> {
  const random = seededRandom(Number(values.seed));
  reached.fill(0);
  const features = new Features();
  return choose(inputs, async (input) => {
    await target.run(input, random);
    return features.note(target.counts);
  });
}
