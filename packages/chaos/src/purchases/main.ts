/**
 * `npm run chaos:billing -- [--seed N] [--cells COUNT] [--only TEXT] [--fleets COUNT]`: every crash of every
 * purchase, and what the books say. As many fleets side by side as there are cores.
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { runCrashes } from './run-crashes.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    cells: { type: 'string' },
    only: { type: 'string', default: '' },
    fleets: { type: 'string', default: String(availableParallelism()) },
  },
});
const seed = Number(values.seed);
const count = values.cells === undefined ? undefined : Number(values.cells);
const fleetCount = Number(values.fleets);
if (![seed, count ?? 0, fleetCount].every(Number.isSafeInteger) || fleetCount < 1) {
  process.stderr.write(
    'npm run chaos:billing -- --seed N [--cells COUNT] [--only TEXT] [--fleets COUNT]\n',
  );
  process.exit(2);
}
const startedAtMs = performance.now();
const say = (line: string) => void process.stdout.write(`${line}\n`);

const { reports, wrong } = await runCrashes(seed, { count, only: values.only, fleetCount }, say);
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
    seconds: Math.round((performance.now() - startedAtMs) / 1_000),
    recovery_ms_median: recoveries[Math.floor(recoveries.length / 2)] ?? null,
    recovery_ms_max: recoveries.at(-1) ?? null,
  }),
);
process.exit(failed.length + wrong.length === 0 ? 0 : 1);
