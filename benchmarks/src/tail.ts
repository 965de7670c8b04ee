/**
 * Cost of the live tail in intake per call: without a tail, without a reader, with a reader of another
 * workspace, and with a reader of this one.
 *
 * In one process, without sockets or a broker, which would hide a difference of nanoseconds: from the
 * body's bytes to the answer, with a group commit that ends at once.
 */
import { createHash } from 'node:crypto';
import { acceptCall, type AcceptDependencies } from '@sluice/intake/calls/accept';
import { KeyRing } from '@sluice/intake/auth/authenticate';
import { Batcher } from '@sluice/intake/commit/batcher';
import { routes, type Call } from '@sluice/intake/calls/calls';
import { readBody } from '@sluice/intake/calls/read-body';
import { SharedCapacity } from '@sluice/platform/process/shared-capacity';
import { createIdGenerator } from '@sluice/platform/process/new-id';
import type { TailChannel } from '@sluice/platform/tail/tail-channel';
import { ANNOUNCEMENT_TOPIC } from '@sluice/platform/tail/tail-messages';
import { TailSource } from '@sluice/platform/tail/tail-source';
import { parseArgs } from 'node:util';
import { median, type Report } from './report.ts';

const CONTENDERS = ['no tail', 'nobody reads', 'another is read', 'this one is read'] as const;
type Contender = (typeof CONTENDERS)[number];
const CALLS_A_FLUSH = 64;

type Dependencies = AcceptDependencies & { readonly tail?: TailSource };

const authorization = `Basic ${Buffer.from('key:').toString('base64')}`;
const body = Buffer.from(
  JSON.stringify({
    userId: 'user-1',
    event: 'Order Placed',
    properties: { plan: 'pro', amount: 42.5, currency: 'EUR', items: ['sku-1', 'sku-2'] },
    timestamp: '2026-11-20T10:00:00.123Z',
    context: { library: { name: 'bench', version: '1.0.0' } },
  }),
);

export async function benchTail(arguments_: string[]): Promise<Report> {
  const { values } = parseArgs({
    args: arguments_,
    options: {
      rounds: { type: 'string', default: '9' },
      calls: { type: 'string', default: '100000' },
    },
  });
  const rounds = Number(values.rounds);
  const callCount = Number(values.calls);
  const dependencies = Object.fromEntries(
    CONTENDERS.map((contender) => [contender, dependenciesOf(contender)]),
  ) as Record<Contender, Dependencies>;
  const times: Record<Contender, number[]> = {
    'no tail': [],
    'nobody reads': [],
    'another is read': [],
    'this one is read': [],
  };
  for (const contender of CONTENDERS) await callMicroseconds(dependencies[contender], callCount);
  for (let round = 1; round <= rounds; round++) {
    for (const contender of CONTENDERS)
      times[contender].push(await callMicroseconds(dependencies[contender], callCount));
  }
  // A timer watches each reader.
  for (const { tail } of Object.values(dependencies)) tail?.stop();
  const cost = (contender: Contender): number => median(times[contender]);
  for (const contender of CONTENDERS)
    console.log(`${contender.padEnd(17)} ${cost(contender).toFixed(2)} µs a call`);
  return {
    bench: 'tail',
    ratios: Object.fromEntries(
      CONTENDERS.slice(1).map((contender) => [
        `${contender}/no tail`,
        median(times[contender].map((time, i) => time / (times['no tail'][i] ?? NaN))),
      ]),
    ),
    rates: Object.fromEntries(CONTENDERS.map((contender) => [contender, 1e6 / cost(contender)])),
    latencyMs: {},
    details: { calls: callCount, rounds, unit: 'calls per CPU second' },
  };
}

function dependenciesOf(contender: Contender): Dependencies {
  const keys = new KeyRing();
  keys.replace([
    {
      kind: 'pipelines',
      siteId: null,
      secretHash: createHash('sha256').update('key').digest(),
      environmentId: 1,
      accountId: '1',
      phoneIdentifies: false,
    },
  ]);
  const newId = createIdGenerator(Date.now);
  const batcher = new Batcher({
    shardCount: 4,
    commit: () => Promise.resolve('broker'),
    newId,
    pending: new SharedCapacity({
      capacity: 2 ** 30,
      sharePercent: 100,
      isAlone: () => true,
      monotonicNow: () => performance.now(),
    }),
    onCommitFailure: (error) => console.error(error),
  });
  return {
    keys,
    batcher,
    rateLimiter: undefined,
    recordUnauthorized: () => undefined,
    retryAfterSeconds: () => 1,
    now: Date.now,
    newId,
    ...(contender === 'no tail' ? {} : { tail: sourceOf(contender) }),
  };
}

function sourceOf(contender: Contender): TailSource {
  let announce: (text: string) => void = () => undefined;
  const channel: TailChannel = {
    messageSizeBytesMax: 65_536,
    burstSizeBytesMax: 524_288,
    publish: () => Promise.resolve(),
    listen: (topic, onText) => {
      if (topic === ANNOUNCEMENT_TOPIC) announce = onText;
      return Promise.resolve();
    },
    unlisten: () => Promise.resolve(),
    close: () => Promise.resolve(),
  };
  const source = new TailSource(channel, { warn: () => undefined });
  source.start();
  const environmentId = contender === 'this one is read' ? 1 : 2;
  if (contender !== 'nobody reads')
    announce(JSON.stringify({ hub: 'a', environmentId, filters: [{}], forMs: 3_600_000 }));
  return source;
}

/** CPU of this process, of one call among many. */
async function callMicroseconds(deps: AcceptDependencies, count: number): Promise<number> {
  const call = routes.find((route) => route.call.name === 'pipelines.track')?.call as Call;
  const before = process.cpuUsage();
  for (let done = 0; done < count; done += CALLS_A_FLUSH) {
    await new Promise<void>((resolve) => {
      let answered = 0;
      for (let index = 0; index < CALLS_A_FLUSH; index++) {
        const submission = {
          call,
          authorization,
          isStrict: false,
          mayUseDemo: () => false,
          body: readBody(body, undefined),
          parameters: [],
        };
        void acceptCall(deps, submission, ({ outcome }) => {
          if (outcome !== 'accepted') throw new Error(`a valid call was ${outcome}`);
          if (++answered === CALLS_A_FLUSH) resolve();
        });
      }
    });
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / count;
}
