/** `npm run chaos -- --seed N`: runs one of the two oracles and prints the differences. `--help` lists the rest. */
import { positiveInteger } from '@sluice/command-line/input/arguments';
import { seededRandom } from '@sluice/domain/values/seeded-random';
import { Command, Option } from 'commander';
import {
  BROKERS,
  FAULT_PLANS,
  type Broker,
  type FaultPlan,
  type ProcessName,
} from './loss/fault-plan.ts';
import { startDeliveryReceiver } from './loss/delivery-receiver.ts';
import { SMALL_FLEET, startFleet } from './loss/fleet-under-test.ts';
import { judgeKills, LAST_DELIVERY_MS_MAX } from './kills/judge-kills.ts';
import { runKills } from './kills/run-kills.ts';
import { judgeNodeDrill } from './nodes/judge-node-drill.ts';
import { runNodeDrill } from './nodes/run-node-drill.ts';
import { mayLoseOneIntake, OUTAGE_KINDS, type OutageKind } from './order/intake-outages.ts';
import { runOrderOracle } from './order/order-oracle.ts';
import { describeFault, runSeed, type SeedReport } from './loss/run-seed.ts';

const {
  seed: first,
  seeds: count,
  broker: wanted,
  length: lengthMs,
  faults: plan,
  oracle,
  sequences,
  events: eventCount,
  rate,
  database: serverUrl,
  away: awayMs,
  minutes,
  deliveries: delivers = false,
  kills: hasKills = false,
  outages,
  plain: isPlain = false,
  apart: isApart = false,
  shrink: mayShrink = false,
} = new Command('npm run chaos --')
  .description(
    'Posts random load while intake, worker, broker and Postgres are killed, stopped and cut off, then compares stored rows with acknowledged calls. With --oracle order: posts random sequences of calls about a few people, and compares the answers of the API with a reference model.',
  )
  .addOption(
    new Option(
      '--oracle <name>',
      'loss (every acknowledged call is stored), order (calls take effect in order), kills (delay of deliveries after a kill under load) or nodes (a node of Citus is away)',
    )
      .choices(['loss', 'order', 'kills', 'nodes'])
      .default('loss'),
  )
  .option('--seed <n>', 'the first seed; the same faults and calls each time', positiveInteger, 1)
  .option('--seeds <count>', 'how many, from the first on', positiveInteger, 1)
  .addOption(new Option('--broker <name>', 'one broker (default: all)').choices(BROKERS))
  .option(
    '--length <ms>',
    'how long load and faults go on, about 4 s a seed more',
    positiveInteger,
    2_000,
  )
  .addOption(
    new Option(
      '--faults <plan>',
      'one to four of all kinds, or a short one of a way three times a second',
    )
      .choices(FAULT_PLANS)
      .default('mixed'),
  )
  .option(
    '--deliveries',
    'loss: a webhook takes all events and published messages. Each must reach it, in order for each person',
  )
  .option('--sequences <count>', 'order: number of sequences, one a seed', positiveInteger, 200)
  .option('--events <count>', 'kills: number of events', positiveInteger, 5_000)
  .option(
    '--rate <count>',
    'events a second of kills and nodes (1,500 and 40 by default)',
    positiveInteger,
  )
  .option('--database <url>', 'nodes: a database of a superuser, on a coordinator with two nodes')
  .option('--away <ms>', 'nodes: for how long the node is away', positiveInteger, 20_000)
  .option('--minutes <count>', 'order: begins no sequences after this time', positiveInteger)
  .option('--kills', 'order: kills intakes, workers and the broker while calls are sent')
  .addOption(
    new Option(
      '--outages <kind>',
      'order, redis and postgres: one intake alone loses its broker while calls are sent. The other one waits for its calls (short), or they are late (long)',
    )
      .choices(OUTAGE_KINDS)
      .conflicts(['kills', 'plain', 'apart']),
  )
  .option('--plain', 'order: sequences about one person under one id, one call after another')
  .option(
    '--apart',
    'order: sends a call when all earlier calls are applied. Shows wrong effects, not wrong order',
  )
  .option('--shrink', 'order: looks for the shortest calls that show each kind of difference')
  .addHelpText(
    'after',
    `
Examples:
  npm run chaos -- --seed 1 --seeds 100 --broker redis
  npm run chaos -- --seed 1 --seeds 20 --broker postgres --deliveries
  npm run chaos -- --oracle order --sequences 200 --seed 1 --broker redis
  npm run chaos -- --oracle order --sequences 1 --seed 17 --broker redis --shrink
  npm run chaos -- --oracle order --sequences 200 --outages long --broker redis
  npm run chaos -- --oracle kills --seeds 5 --broker redis
  npm run chaos -- --oracle nodes --database postgres://postgres@coordinator:5432/postgres
The exit code is 1 if anything is lost or differs. For kills also if more deliveries come twice than were in flight, or the
last one later than ${LAST_DELIVERY_MS_MAX / 1_000} s after the kill. This limit is for two cores without other work.`,
  )
  .parse()
  .opts<{
    seed: number;
    seeds: number;
    broker?: Broker;
    length: number;
    faults: FaultPlan;
    oracle: 'loss' | 'order' | 'kills' | 'nodes';
    events: number;
    rate?: number;
    database?: string;
    away: number;
    sequences: number;
    minutes?: number;
    deliveries?: boolean;
    kills?: boolean;
    outages?: OutageKind;
    plain?: boolean;
    apart?: boolean;
    shrink?: boolean;
  }>();
const brokers = BROKERS.filter((name) => wanted === undefined || name === wanted);
const say = (line: string) => process.stdout.write(`${line}\n`);

if (oracle === 'order') {
  const tried = outages ? brokers.filter(mayLoseOneIntake) : brokers;
  if (tried.length === 0) throw new Error('--outages needs the broker redis or postgres');
  let isHeld = true;
  for (const name of tried) {
    say(`order of calls, ${name}, seeds ${first} to ${first + sequences - 1}`);
    const kind = outages === 'long' ? 'late' : isPlain ? 'plain' : 'mixed';
    const options = {
      seed: first,
      sequences,
      minutes,
      hasKills,
      outages,
      mayShrink,
      isApart,
      kind,
    } as const;
    isHeld = (await runOrderOracle(name, options, say)) && isHeld;
  }
  process.exit(isHeld ? 0 : 1);
}

if (oracle === 'kills') {
  const host = {
    path: process.env['PATH'],
    kill: (pid: number) => void process.kill(pid, 'SIGKILL'),
    onLog: (text: string) => void process.stderr.write(text),
  } as const;
  let isHeld = true;
  for (const name of ['redis', 'postgres'] as const) {
    if (!brokers.includes(name)) continue;
    for (let seed = first; seed < first + count; seed++) {
      const report = await runKills({ broker: name, eventCount, rate: rate ?? 1_500, seed }, host);
      const problems = judgeKills(report);
      say(JSON.stringify(report));
      say(`seed ${seed}, ${name}: ${problems.length === 0 ? 'held' : 'FAILED'}`);
      for (const problem of problems) say(`  ! ${problem}`);
      isHeld &&= problems.length === 0;
    }
  }
  process.exit(isHeld ? 0 : 1);
}

if (oracle === 'nodes') {
  if (serverUrl === undefined) throw new Error('--oracle nodes needs --database');
  let isHeld = true;
  for (const kind of ['cut', 'hold'] as const) {
    const report = await runNodeDrill({ serverUrl, kind, awayMs, rate: rate ?? 40 });
    const problems = judgeNodeDrill(report);
    say(JSON.stringify(report));
    say(`${kind}: ${problems.length === 0 ? 'held' : 'FAILED'}`);
    for (const problem of problems) say(`  ! ${problem}`);
    isHeld &&= problems.length === 0;
  }
  process.exit(isHeld ? 0 : 1);
}

const reports: SeedReport[] = [];
for (const name of brokers) {
  const receiver = delivers ? await startDeliveryReceiver(seededRandom(first)) : undefined;
  const shape = { ...SMALL_FLEET, ...(receiver && { deliversTo: receiver.url }) };
  const fleet = await startFleet(name, shape);
  try {
    for (let seed = first; seed < first + count; seed++) {
      const report = await runSeed(fleet, seed, lengthMs, plan, receiver);
      reports.push(report);
      const { faults, calls, sent, recoveryMs, problems } = report;
      say(
        `seed ${seed}, ${name}: ${problems.length === 0 ? 'held' : 'FAILED'}. ${calls} calls acknowledged, sent ${sent} times, moving again after ${recoveryMs} ms`,
      );
      for (const fault of faults) say(`  ${describeFault(fault)}`);
      for (const problem of problems) say(`  ! ${problem}`);
      if (problems.length > 0) {
        for (const process of ['intake-0', 'intake-1', 'worker-0', 'worker-1'] as ProcessName[])
          for (const line of fleet.lastLines(process))
            say(`    ${process}: ${line.slice(0, 3_000)}`);
        break;
      }
    }
  } finally {
    await fleet.close();
    receiver?.close();
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
