/**
 * Other systems that you have started, under the same load. They run one after another with the same receiver: events at
 * ordinary rates, at full speed, to twenty receivers, with one of the twenty hanging, and killed in the middle.
 * `peer-adapters.ts` has their APIs.
 */
import { exec } from 'node:child_process';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs, promisify } from 'node:util';
import { HANGING_PATH, PacedDeliveries, type Target } from './paced-deliveries.ts';
import { PEERS, type Peer, type PeerPlace } from './peer-adapters.ts';
import { familyCpuSeconds, familyMemoryBytes } from './process-costs.ts';
import type { Report } from './report.ts';

const FAN_OUT = 20;
const PEOPLE_COUNT = 1_000;
const WARM_UP_RATE = 50;
const WARM_UP_SECONDS = 3;
/** When it is killed, of the time of the run. */
const KILLED_AFTER = 0.4;

interface Named {
  readonly name: string;
  readonly peer: Peer;
  readonly place: PeerPlace;
  /** Of its processes and its stores: for CPU and memory. */
  readonly pids: readonly number[];
  /** A command line that kills it and starts it again. */
  readonly kill: string | undefined;
}

interface Shape {
  readonly peers: readonly Named[];
  readonly rates: readonly number[];
  readonly seconds: number;
  readonly connectionCount: number;
  readonly receiver: string;
  readonly port: number;
}

export async function benchPeers(arguments_: string[]): Promise<Report> {
  const shape = shapeOf(arguments_);
  const deliveries = await PacedDeliveries.listen(shape.port, PEOPLE_COUNT);
  const [rates, latencyMs, details]: [
    Record<string, number>,
    Record<string, number>,
    Record<string, unknown>,
  ] = [{}, {}, {}];
  try {
    for (const named of shape.peers) {
      const found = await measurePeer(named, deliveries, shape);
      Object.assign(rates, found.rates);
      Object.assign(latencyMs, found.latencyMs);
      Object.assign(details, found.details);
    }
  } finally {
    deliveries.close();
  }
  return { bench: 'peers', ratios: {}, rates, latencyMs, details };
}

type Found = Required<Pick<Report, 'rates' | 'latencyMs' | 'details'>>;

async function measurePeer(
  named: Named,
  deliveries: PacedDeliveries,
  { rates: askedRates, seconds, connectionCount, receiver, port }: Shape,
): Promise<Found> {
  const { name, peer, place, pids } = named;
  const run = `bench-${Date.now()}`;
  const urlOf = (path: string): string => `http://${receiver}:${port}${path}`;
  const found: Found = { rates: {}, latencyMs: {}, details: {} };
  const say = (what: string, text: string): void => {
    console.log(`${name.padEnd(8)} ${what.padEnd(16)} ${text}`);
  };
  const flood = async (what: string, target: Target, arrivalCount: number): Promise<number> => {
    const flooded = await deliveries.flood(target, connectionCount, seconds, arrivalCount);
    found.details[`${name} ${what}`] = flooded;
    found.rates[`${name} ${what}, taken`] = flooded.takenPerSecond;
    if (arrivalCount > 0) found.rates[`${name} ${what}, delivered`] = flooded.deliveredPerSecond;
    say(
      what,
      `${flooded.takenPerSecond.toFixed(0)} taken a second, ${arrivalCount > 0 ? `${flooded.deliveredPerSecond.toFixed(0)} delivered a second, ${flooded.lostCount} not delivered, ` : ''}${flooded.refusedCount} refused`,
    );
    return flooded.deliveredPerSecond;
  };

  if (!peer.hasWebhooks) {
    const { target } = await peer.register(place, [], run);
    await flood('flat out', target, 0);
    return found;
  }
  const one = await peer.register(place, [urlOf('/one')], `${run}-one`);
  await deliveries.send(one.target, WARM_UP_RATE, WARM_UP_SECONDS, 1);
  for (const rate of askedRates) {
    const cpuBefore = await familyCpuSeconds(pids);
    const { latenciesMs, eventCount } = await deliveries.send(one.target, rate, seconds, 1);
    const [p50, p99] = quantiles(latenciesMs);
    found.latencyMs[`${name} p50 ${rate}/s`] = p50;
    found.latencyMs[`${name} p99 ${rate}/s`] = p99;
    let costs = '';
    if (pids.length > 0) {
      const cpuMsPerEvent = (((await familyCpuSeconds(pids)) - cpuBefore) * 1_000) / eventCount;
      const memoryBytes = await familyMemoryBytes(pids);
      found.details[`${name} ${rate}/s`] = { cpuMsPerEvent, memoryBytes };
      costs = `, CPU ${cpuMsPerEvent.toFixed(2)} ms an event, ${Math.round(memoryBytes / 2 ** 20)} MB`;
    }
    say(`${rate}/s`, `p50 ${p50.toFixed(1)} p99 ${p99.toFixed(1)} ms${costs}`);
  }
  await flood('flat out', one.target, 1);
  if (named.kill !== undefined) {
    const killed = sleep(seconds * 1_000 * KILLED_AFTER, named.kill).then(promisify(exec));
    await flood('killed', one.target, 1);
    await killed;
  }
  await one.remove();

  const paths = Array.from({ length: FAN_OUT }, (_, index) => `/of-twenty/${index}`);
  const twenty = await peer.register(place, paths.map(urlOf), `${run}-twenty`);
  const whole = await flood('twenty', twenty.target, FAN_OUT);
  await twenty.remove();
  const withHanging = [...paths.slice(1), HANGING_PATH].map(urlOf);
  const hanging = await peer.register(place, withHanging, `${run}-hanging`);
  const kept = await flood('one of 20 hangs', hanging.target, FAN_OUT - 1);
  await hanging.remove();
  // Of twenty receivers in both: the nineteen get the same share of the whole.
  found.details[`${name} kept with one of 20 hanging`] = kept / (whole * ((FAN_OUT - 1) / FAN_OUT));
  return found;
}

function quantiles(latenciesMs: readonly number[]): [p50: number, p99: number] {
  const sorted = latenciesMs.toSorted((a, b) => a - b);
  const at = (part: number): number => sorted[Math.floor(sorted.length * part)] ?? NaN;
  return [at(0.5), at(0.99)];
}

function shapeOf(arguments_: string[]): Shape {
  const text = { type: 'string' } as const;
  const named = Object.fromEntries(
    Object.keys(PEERS).flatMap((name) =>
      ['', '-token', '-extra', '-pids', '-kill'].map((end) => [`${name}${end}`, text] as const),
    ),
  );
  const { values } = parseArgs({
    args: arguments_,
    options: {
      ...named,
      rates: { type: 'string', default: '20,150,500' },
      seconds: { type: 'string', default: '20' },
      connections: { type: 'string', default: '64' },
      receiver: { type: 'string', default: '127.0.0.1' },
      port: { type: 'string', default: '18144' },
    },
  });
  const given = values as Readonly<Record<string, string | undefined>>;
  const peers = Object.entries(PEERS).flatMap(([name, peer]): Named[] => {
    const url = given[name];
    if (url === undefined) return [];
    const [token, extra] = [given[`${name}-token`], given[`${name}-extra`]];
    if (token === undefined) throw new Error(`--${name}-token is missing: ${peer.token}`);
    if (peer.extra !== undefined && extra === undefined)
      throw new Error(`--${name}-extra is missing: ${peer.extra}`);
    return [
      {
        name,
        peer,
        place: { url: url.replace(/\/+$/, ''), token, extra: (extra ?? '').replace(/\/+$/, '') },
        pids: (given[`${name}-pids`] ?? '')
          .split(',')
          .map(Number)
          .filter((pid) => pid > 0),
        kill: given[`${name}-kill`],
      },
    ];
  });
  if (peers.length === 0)
    throw new Error(
      `name one that runs: ${Object.keys(PEERS)
        .map((name) => `--${name} URL --${name}-token …`)
        .join(', ')}`,
    );
  return {
    peers,
    rates: values.rates.split(',').map(Number),
    seconds: Number(values.seconds),
    connectionCount: Number(values.connections),
    receiver: values.receiver,
    port: Number(values.port),
  };
}
