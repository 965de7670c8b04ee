/**
 * `npm run chaos:billing`: every crash of every purchase, and the findings of ledger reconciliation. `--help` lists the
 * rest.
 */
import { availableParallelism } from 'node:os';
import { positiveInteger } from '@sluice/command-line/input/arguments';
import { Command } from 'commander';
import { runCrashes } from './run-crashes.ts';

const {
  seed,
  cells: count,
  only,
  fleets: fleetCount,
} = new Command('npm run chaos:billing --')
  .description(
    'Kills the worker or the API at every step of every purchase while the payment provider fails at random, then reconciles the ledgers.',
  )
  .option(
    '--seed <n>',
    'order of the crashes and dice of the faults',
    positiveInteger,
    Date.now() % 2 ** 31,
  )
  .option('--cells <count>', 'number of crashes (default: all)', positiveInteger)
  .option('--only <text>', 'only crashes whose name contains this text', '')
  .option(
    '--fleets <count>',
    'number of concurrent fleets (default: one per core)',
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
