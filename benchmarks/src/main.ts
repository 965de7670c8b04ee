/**
 * `npm run bench`: the whole suite. `npm run bench -- <name>`: one benchmark. `--compare REV`: this
 * checkout and another revision, alternately.
 */
import { CATALOGUE } from './catalogue.ts';
import { describeBar } from './bars.ts';
import { takeFlag, takeOption } from './command-flags.ts';
import { compareRevisions } from './compare.ts';
import { publish, readSurroundings } from './report.ts';
import { runSuite } from './suite.ts';
import { showMeasuring } from './show-measuring.ts';

// Started programs end with this process, also after a signal.
process.once('SIGINT', () => process.exit(130)).once('SIGTERM', () => process.exit(143));

const arguments_ = process.argv.slice(2);
const isHelp = takeFlag(arguments_, '--help') || takeFlag(arguments_, '-h');
const isShort = takeFlag(arguments_, '--short');
const isKept = !takeFlag(arguments_, '--no-file');
const revision = takeOption(arguments_, '--compare');
const times = Number(takeOption(arguments_, '--times') ?? 1);
const name = arguments_[0]?.startsWith('-') ? undefined : arguments_.shift();
const benchmark = name === undefined ? undefined : CATALOGUE[name];

if (name !== undefined && name !== 'list' && !benchmark) {
  console.error(`there is no benchmark "${name}"; there are ${Object.keys(CATALOGUE).join(', ')}`);
  process.exitCode = 1;
} else if (isHelp || name === 'list') {
  console.log(benchmark ? helpOf(name as string) : help());
} else if (revision !== undefined) {
  const names =
    name === undefined
      ? Object.keys(CATALOGUE).filter((one) => CATALOGUE[one]?.isApart !== true)
      : [name];
  const comparing = compareRevisions({
    revision,
    times,
    benchmarks: names.map((one) => ({
      name: one,
      arguments: [
        ...(isShort || name === undefined ? (CATALOGUE[one]?.short ?? []) : []),
        ...arguments_,
      ],
    })),
  }).catch((error: Error) => {
    console.error(error.message);
    return false;
  });
  process.exitCode = (await comparing) ? 0 : 1;
} else if (benchmark) {
  const surroundings = await readSurroundings();
  const stopShowing = showMeasuring(name as string);
  const report = await benchmark
    .run([...(isShort ? benchmark.short : []), ...arguments_])
    .finally(stopShowing);
  await publish(report, surroundings, isKept);
} else if (arguments_.length > 0) {
  console.error(
    `${arguments_[0]} belongs to one benchmark: npm run bench -- <name> ${arguments_.join(' ')}`,
  );
  process.exitCode = 1;
} else {
  process.exitCode = (await runSuite(CATALOGUE)) ? 0 : 1;
}

function help(): string {
  const names = Object.entries(CATALOGUE).map(
    ([known, { about }]) => `  ${known.padEnd(10)} ${about}`,
  );
  return `npm run bench                   all of them in their short forms, a quarter of an hour, a table at the end
npm run bench -- <name>         one of them in its full form, with options of its own
npm run bench -- <name> --short as the whole suite runs it
npm run bench -- <name> --help  its short form and its targets
npm run bench -- list           this
npm run bench -- <name> --compare REV [--times N]
                                another revision and this checkout in turn (old new new old, N times), and
                                new/old of each number. Without a name all, in their short forms

${names.join('\n')}

Most take --rounds N; those under load --seconds N (a measured round) and --connections N. --no-file
prints the result and keeps no file of it. One at a time, on an idle machine: they share the cores.`;
}

function helpOf(known: string): string {
  const { about, short, bars, isApart } = CATALOGUE[known] as (typeof CATALOGUE)[string];
  const wanted = Object.entries(bars).map(([ratio, bar]) => `  ${ratio} ${describeBar(bar)}`);
  return [
    `${known}: ${about}`,
    `\n${isApart ? 'not in the whole suite; its short form' : 'in the whole suite'}: npm run bench -- ${known} ${short.join(' ')}`,
    ...(wanted.length > 0 ? [`\nwanted:`, ...wanted] : []),
  ].join('\n');
}
