/**
 * Cost of each step of a call. It shows the highest possible rate of intake. It adds one step after the other to the floor
 * of `intake`, each as short as possible (`intake-steps-server.ts`). The last program is durable and has no credentials and
 * no rules. Beside them runs ours, which does all of it, on the fast path and on the normal path.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { INTAKE_ARGUMENTS, startChildServer, type ChildServer } from './child-server.ts';
import { bodies, pinApart, trackLoad } from './intake-load.ts';
import { loadWithWrk, requireWrk } from './load.ts';
import { emptyQueues } from './queued-events.ts';
import { median, type Report } from './report.ts';
import { withWorld } from './world.ts';

/** `durable`: answered after a Redis with `appendfsync always` has the body. `heads`: the credentials are read. `stringify`: an operation is written instead of the body. */
const STEPS = ['durable', 'heads', 'parse', 'stringify'];

const LONG_WAY = 'ours, not skimmed';
/** Intake's fast path declines them, because a name must be trimmed. */
const declinedBodies = bodies.map((body) => body.replace('Order Placed', 'Order Placed '));

export async function benchIntakeSteps(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      seconds: { type: 'string', default: '3' },
      rounds: { type: 'string', default: '5' },
      connections: { type: 'string', default: '512' },
    },
  });
  const durationSeconds = Number(values.seconds);
  const connections = Number(values.connections);
  await requireWrk();

  return withWorld('none', async (world) => {
    const { redis, redisServer } = world;
    let port = 18_081;
    const start = async (file: string, environment: Record<string, string>) => {
      port++;
      const server = await startChildServer({
        file: join(import.meta.dirname, file),
        environment: { PORT: String(port), REDIS_URL: redisServer.url, ...environment },
        url: `http://127.0.0.1:${port}`,
        readyPath: '/',
        nodeArguments: INTAKE_ARGUMENTS,
      });
      world.onClose(() => server.stop());
      return server;
    };
    const contenders = new Map<string, ChildServer>();
    contenders.set('floor', await start('intake-floor-server.ts', {}));
    for (const [index, step] of STEPS.entries()) {
      const upTo = { STEPS: STEPS.slice(0, index + 1).join(' ') };
      contenders.set(`+ ${step}`, await start('intake-steps-server.ts', upTo));
    }
    const settings = { REDIS_URL: redisServer.url, SHARD_COUNT: '4' };
    const intake = await world.startService('intake', 18_080, settings);
    contenders.set('ours', intake);
    contenders.set(LONG_WAY, intake);
    const isPinned = await pinApart(world, [...contenders.values()]);

    const rates = new Map<string, number[]>();
    const cpu = new Map<string, number[]>();
    // The first round warms up.
    for (let round = 0; round <= Number(values.rounds); round++) {
      for (const [name, server] of contenders) {
        await emptyQueues(redis);
        const cpuBefore = await server.cpuSeconds();
        const load = trackLoad(
          server.url,
          connections,
          durationSeconds,
          name === LONG_WAY ? declinedBodies : bodies,
        );
        const { requests, requestsPerSecond, failures } = await loadWithWrk(load);
        if (failures > 0) throw new Error(`${name}: ${failures} failed requests`);
        if (round === 0) continue;
        const cpuMicroseconds = (((await server.cpuSeconds()) - cpuBefore) / requests) * 1e6;
        rates.set(name, [...(rates.get(name) ?? []), requestsPerSecond]);
        cpu.set(name, [...(cpu.get(name) ?? []), cpuMicroseconds]);
        console.log(
          `${round}/${values.rounds} ${name.padEnd(17)} ${Math.round(requestsPerSecond).toLocaleString('en').padStart(8)} req/s  ${cpuMicroseconds.toFixed(1)} µs of CPU a call`,
        );
      }
    }
    const floor = rates.get('floor') ?? [];
    const overAll = <Value>(of: (name: string) => Value) =>
      Object.fromEntries([...rates.keys()].map((name) => [name, of(name)]));
    return {
      bench: 'intake-steps',
      ratios: Object.fromEntries(
        [...rates]
          .filter(([name]) => name !== 'floor')
          .map(([name, each]) => [
            `${name}/floor`,
            median(each.map((rate, round) => rate / (floor[round] ?? NaN))),
          ]),
      ),
      rates: overAll((name) => median(rates.get(name) ?? [])),
      latencyMs: {},
      details: {
        cpu_us_a_call: overAll((name) => median(cpu.get(name) ?? [])),
        pinned: isPinned,
        connections,
      },
      versions: world.versions,
    };
  });
}
