/**
 * Every benchmark: its description, the bars of its ratios, and its short form. The whole suite runs the
 * short forms (`--short` runs one). The full form has the benchmark's own defaults.
 */
import { benchApi } from './api.ts';
import type { Bars } from './bars.ts';
import { benchBacklog } from './backlog.ts';
import { benchBatch } from './batch.ts';
import { benchBilling } from './billing.ts';
import { benchConsole, CONSOLE_BARS } from './console.ts';
import { benchDeliver } from './deliver.ts';
import { benchEndToEnd } from './end-to-end.ts';
import { benchFairness } from './fairness.ts';
import { benchGrowth } from './growth.ts';
import { benchHostile, HOSTILE_BARS } from './hostile.ts';
import { benchIdle } from './idle.ts';
import { benchImports } from './imports.ts';
import { benchIntake } from './intake.ts';
import { benchIntakeSteps } from './intake-steps.ts';
import { benchLone } from './lone.ts';
import { benchMemory } from './memory.ts';
import { benchMerges, MERGES_BARS } from './merges.ts';
import { benchOrdinary, ORDINARY_BARS } from './ordinary.ts';
import { benchPeers } from './peers.ts';
import { benchProcess } from './process.ts';
import { benchPublish } from './publish.ts';
import { benchNeighbour, NEIGHBOUR_BARS } from './neighbour.ts';
import type { Report } from './report.ts';
import { benchSoak } from './soak.ts';
import { benchStream } from './stream.ts';
import { benchTail } from './tail.ts';

export interface Benchmark {
  readonly about: string;
  readonly bars: Bars;
  /** So that all of them together take about a quarter of an hour on two cores. */
  readonly short: readonly string[];
  /** Takes too long for the whole suite, even in its short form. */
  readonly isApart?: boolean;
  readonly run: (arguments_: string[]) => Promise<Report>;
}

/** In the order in which the suite runs them: first the way of an event, then the other parts. */
export const CATALOGUE: Readonly<Record<string, Benchmark>> = {
  intake: {
    about:
      'durable intake against a bare uWebSockets.js handler and against Fastify adding a BullMQ job a request',
    bars: { 'ours/floor': { atLeast: 0.65 }, 'ours/fastify-bullmq': { atLeast: 5 } },
    short: ['--rounds', '6', '--seconds', '2'],
    run: benchIntake,
  },
  'intake-steps': {
    about: 'cost of each step of a call: the floor with the steps added one by one, and ours',
    bars: {},
    short: ['--rounds', '2', '--seconds', '2'],
    isApart: true,
    run: benchIntakeSteps,
  },
  batch: {
    about: 'batches of 100 events against the same events one a request, and against JSON.parse',
    bars: {
      'strict batch/one': { atLeast: 3 },
      'permissive batch/one': { atLeast: 3 },
      'strict batch/JSON.parse': { atLeast: 0.4 },
      'permissive batch/JSON.parse': { atLeast: 0.4 },
    },
    short: ['--rounds', '2', '--seconds', '2'],
    run: benchBatch,
  },
  publish: {
    about:
      'lists of 100 published messages, with and without a schema, against batches of 100 events',
    bars: {
      'publish/batch': { atLeast: 0.5 },
    },
    short: ['--rounds', '2', '--seconds', '2'],
    run: benchPublish,
  },
  stream: {
    about: 'one stream of 1,000,000 lines: lines per second, and constant memory',
    bars: {},
    short: ['--lines', '300000'],
    run: benchStream,
  },
  hostile: {
    about: 'p99 of an honest sender, and memory of intake, beside each attack against without',
    bars: HOSTILE_BARS,
    short: ['--rounds', '2', '--seconds', '2'],
    isApart: true,
    run: benchHostile,
  },
  neighbour: {
    about:
      'time until the calls of a workspace are applied, beside another one that posts as fast as it can against without',
    bars: NEIGHBOUR_BARS,
    short: ['--rounds', '2', '--seconds', '4'],
    isApart: true,
    run: benchNeighbour,
  },
  imports: {
    about: 'one CSV import of 1 GB: rows per second, and constant memory',
    bars: {},
    short: ['--megabytes', '64'],
    run: benchImports,
  },
  tail: {
    about: 'cost of the live tail in intake for each call, while it is read and while it is not',
    bars: {},
    short: ['--rounds', '5'],
    run: benchTail,
  },
  process: {
    about:
      'queued commit batches to rows in Postgres, against COPY of the same rows and graphile-worker',
    bars: {
      'ours/copy': { atLeast: 0.45 },
      'ours/copy, postgres backend': { atLeast: 0.25 },
    },
    short: [],
    run: benchProcess,
  },
  merges: {
    about: 'queued merges and sign-ups, and plain calls beside merges, against plain calls',
    bars: MERGES_BARS,
    short: ['--rounds', '3'],
    isApart: true,
    run: benchMerges,
  },
  deliver: {
    about:
      'log → signed POST → attempt recorded, against an undici dispatch loop that only signs and posts',
    bars: {
      'ours/dispatch, 1 webhook': { atLeast: 0.6 },
      'ours/dispatch, 100 webhooks': { atLeast: 0.6 },
      'ours/dispatch, 1000 webhooks': { atLeast: 0.6 },
    },
    // As in the full form: with half as many deliveries 1,000 lanes have hardly been woken when they end.
    short: [],
    run: benchDeliver,
  },
  fairness: {
    about: 'latency of healthy webhooks while 0 %, 50 % and 90 % of 1,000 hang',
    bars: { 'p99-90/p99-0': { atMost: 2 } },
    short: ['--seconds', '6'],
    run: benchFairness,
  },
  backlog: {
    about:
      'the statements of a delivery queue, and Redis, with 10⁴, 10⁵ and 10⁶ blocked deliveries',
    bars: {},
    short: ['--sizes', '10000,300000'],
    run: benchBacklog,
  },
  e2e: {
    about:
      'the sustained rate and its latency, request → signed delivery received, against Fastify, BullMQ and undici',
    bars: { 'ours/wanted': { atLeast: 1 } },
    short: ['--seconds', '4'],
    run: benchEndToEnd,
  },
  ordinary: {
    about:
      'at 5 to 500 events a second, against a server of two commits an event: request → signed delivery received, CPU and stores an event, memory',
    bars: ORDINARY_BARS,
    short: ['--rates', '20,150,500', '--seconds', '8'],
    run: benchOrdinary,
  },
  lone: {
    about:
      'events one at a time: statements, commits, syncs, Redis commands and CPU of each process an event, and the time of each stage',
    bars: {},
    short: ['--rates', '20', '--seconds', '5'],
    isApart: true,
    run: benchLone,
  },
  peers: {
    about:
      'other systems that you have started (--svix URL --svix-token …, --convoy, --outpost, --rudder, --sluice), with the receiver and the load of ordinary, flat out, twenty receivers, one of them hanging, killed',
    bars: {},
    short: ['--rates', '20', '--seconds', '3'],
    isApart: true,
    run: benchPeers,
  },
  idle: {
    about: 'CPU, broker commands and transactions of an idle fleet',
    bars: {
      'fleet cpu ours/limit': { atMost: 1 },
      'redis commands a process ours/limit': { atMost: 1 },
    },
    // Not shorter: /proc has CPU in hundredths of a second, and in 10 s ten of them are the limit.
    short: [],
    run: benchIdle,
  },
  growth: {
    about:
      'the cost of an event, of a visitor, of a delivery and of reads with 10⁴ and 10⁶ people, visitors and events stored',
    bars: {
      'worst of process, most/least': { atMost: 1.3 },
      'worst of visitors, most/least': { atMost: 1.3 },
      'worst of lane, most/least': { atMost: 1.3 },
      'worst of reads, most/least': { atMost: 1.3 },
    },
    short: ['--sizes', '10000,200000', '--rounds', '10'],
    run: benchGrowth,
  },
  memory: {
    about: 'bytes of a queued event, of a blocked delivery, of an idle webhook',
    bars: {},
    short: ['--events', '5000,20000', '--deliveries', '5000,20000', '--webhooks', '500,2500'],
    run: benchMemory,
  },
  api: {
    about:
      'an account and a page of its audit log, against a bare Fastify route with the same statement',
    bars: {
      'account ours/fastify': { atLeast: 0.7 },
      'page ours/fastify': { atLeast: 0.7 },
      'page p99 many/few entries': { atMost: 1.5 },
    },
    short: ['--rounds', '2', '--seconds', '2', '--entries', '500000'],
    run: benchApi,
  },
  billing: {
    about:
      'run starts and debits over HTTP against the same SQL called directly; a summary of two years of usage',
    bars: {
      'starts ours/sql': { atLeast: 0.4 },
      'debits ours/sql': { atLeast: 0.4 },
      'summary by month p99 full/empty': { atMost: 10 },
      'summary by month and user p99 full/empty': { atMost: 10 },
      'summary by day p99 full/empty': { atMost: 10 },
    },
    short: ['--rounds', '1', '--seconds', '1', '--runs', '1000000'],
    run: benchBilling,
  },
  console: {
    about:
      'the web console in Chromium: times of its screens, frames of 100,000 deliveries, memory, the tail at 2,000 lines/s',
    bars: CONSOLE_BARS,
    short: ['--rounds', '3', '--seconds', '20'],
    isApart: true,
    run: benchConsole,
  },
  soak: {
    about: 'half the sustained rate of e2e for half an hour: every event arrives, no process grows',
    bars: Object.fromEntries(
      ['intake', 'worker', 'api', 'redis', 'postgres'].map((process) => [
        `memory ${process}, end/start`,
        { atMost: 1.1 },
      ]),
    ),
    short: ['--minutes', '1'],
    isApart: true,
    run: benchSoak,
  },
};
