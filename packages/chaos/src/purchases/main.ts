/**
 * `npm run chaos:billing`: every crash of every purchase, and what ledger reconciliation finds. `--help` lists the
 * rest.
 */
import { availableParallelism } from 'node:os';
import { positiveInteger } from '@sluice/command-line/arguments';
import { Command } from 'commander';
import { runCrashes } from './run-crashes.ts';

const {
  seed,
  cells: count,
  only,
  fleets: fleetCount,
} = new Command('npm run chaos:billing --')
  .description(
    'Kills the worker or the API at every moment of every purchase while the vendor fails at random, then compares the books.',
  )
  .option(
    '--seed <n>',
    'order of the crashes and dice of the faults',
    positiveInteger,
    Date.now() % 2 ** 31,
  )
  .option('--cells <count>', 'so many crashes; all unless told', positiveInteger)
  .option('--only <text>', 'crashes whose name has this in it', '')
  .option(
    '--fleets <count>',
    'side by side; one a core unless told',
    positiveInteger,
    availableParallelism(),
  )
  .parse()
  .opts<{ seed: number; cells?: number; only: string; fleets: number }>();
const startedAtMs = performance.now();
const say = (line: string) => void process.stdout.write(`${line}\n`);

const { reports, wrong } = await runCrashes(seed, { count, only, fleetCount }, say);
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
