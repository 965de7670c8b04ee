/** `npm run chaos:billing -- [--seed N] [--cells COUNT] [--only TEXT]`: every crash of every purchase, and what the books say. */
import { parseArgs } from 'node:util';
import { runCrashes } from './run-crashes.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    cells: { type: 'string' },
    only: { type: 'string', default: '' },
  },
});
const seed = Number(values.seed);
const count = values.cells === undefined ? undefined : Number(values.cells);
if (!Number.isSafeInteger(seed) || (count !== undefined && !Number.isSafeInteger(count))) {
  process.stderr.write('npm run chaos:billing -- --seed N [--cells COUNT] [--only TEXT]\n');
  process.exit(2);
}
const say = (line: string) => void process.stdout.write(`${line}\n`);

const { reports, wrong } = await runCrashes(seed, { count, only: values.only }, say);
const failed = reports.filter(({ problems }) => problems.length > 0);
const recoveries = reports
  .map(({ recoveryMs }) => recoveryMs)
  .toSorted((one, other) => one - other);
say(
  JSON.stringify({
    seed,
    crashes: reports.length,
    failed: failed.map(({ name }) => name),
    wrong_in_books: wrong.length,
    recovery_ms_median: recoveries[Math.floor(recoveries.length / 2)] ?? null,
    recovery_ms_max: recoveries.at(-1) ?? null,
  }),
);
process.exit(failed.length + wrong.length === 0 ? 0 : 1);
