/** `npm run chaos -- --seed N [--seeds COUNT] [--broker redis|postgres|cluster|sentinels] [--length MS]`: what each seed did and whether it held. */
import { parseArgs } from 'node:util';
import { BROKERS, type ProcessName } from './fault-plan.ts';
import { startFleet } from './fleet-under-test.ts';
import { describeFault, runSeed, type SeedReport } from './run-seed.ts';

const { values } = parseArgs({
  options: {
    seed: { type: 'string', default: '1' },
    seeds: { type: 'string', default: '1' },
    broker: { type: 'string' },
    length: { type: 'string', default: '2000' },
  },
});
const first = Number(values.seed);
const count = Number(values.seeds);
const brokers = BROKERS.filter((name) => values.broker === undefined || name === values.broker);
const say = (line: string) => process.stdout.write(`${line}\n`);

const reports: SeedReport[] = [];
for (const broker of brokers) {
  const fleet = await startFleet(broker);
  try {
    for (let seed = first; seed < first + count; seed++) {
      const report = await runSeed(fleet, seed, Number(values.length));
      reports.push(report);
      const { faults, calls, sent, recoveryMs, problems } = report;
      say(
        `seed ${seed}, ${broker}: ${problems.length === 0 ? 'held' : 'FAILED'}; ${calls} calls acknowledged, sent ${sent} times, moving again after ${recoveryMs} ms`,
      );
      for (const fault of faults) say(`  ${describeFault(fault)}`);
      for (const problem of problems) say(`  ! ${problem}`);
      if (problems.length > 0) {
        for (const name of ['intake-0', 'intake-1', 'worker-0', 'worker-1'] as ProcessName[])
          for (const line of fleet.lastLines(name)) say(`    ${name}: ${line.slice(0, 3_000)}`);
        break;
      }
    }
  } finally {
    await fleet.close();
  }
}
const failed = reports.filter(({ problems }) => problems.length > 0);
const recoveries = reports.map(({ recoveryMs }) => recoveryMs).toSorted((a, b) => a - b);
say(
  JSON.stringify({
    seeds: reports.length,
    failed: failed.map(({ seed, broker }) => `${broker} ${seed}`),
    calls: reports.reduce((sum, { calls }) => sum + calls, 0),
    faults: reports.reduce((sum, { faults }) => sum + faults.length, 0),
    recovery_ms_median: recoveries[Math.floor(recoveries.length / 2)] ?? null,
    recovery_ms_max: recoveries.at(-1) ?? null,
  }),
);
process.exit(failed.length === 0 ? 0 : 1);
