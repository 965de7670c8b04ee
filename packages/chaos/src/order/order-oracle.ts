/**
 * The order oracle: random sequences of calls, and the API's answers against a reference model.
 *
 * Called by `main.ts` with `--oracle order`.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { pick, seededRandom } from '@sluice/domain/values/seeded-random';
import { FAILOVER_MS, type Broker, type ProcessName } from '../loss/fault-plan.ts';
import { startFleet, type Fleet } from '../loss/fleet-under-test.ts';
import { describeCall } from './model/call.ts';
import { sequenceOf, type SequenceKind } from './generate-calls.ts';
import { IntakeOutages, type OutageKind } from './intake-outages.ts';
import { runSequences, type Judgement, type RunOptions } from './run-sequences.ts';
import { shrink } from './shrink.ts';

export interface OrderOptions {
  readonly seed: number;
  readonly sequences: number;
  readonly minutes: number | undefined;
  readonly hasKills: boolean;
  /** Of one intake alone; not with kills. */
  readonly outages: OutageKind | undefined;
  readonly mayShrink: boolean;
  readonly isApart: boolean;
  readonly kind: SequenceKind;
}

/**
 * With a short deadline, a slow machine alone sends calls through the local disk buffer. Only a run with faults tests that
 * way of a call.
 */
export const orderFleetOf = (hasFaults: boolean) =>
  ({
    workerCount: 4,
    shardCount: 16,
    hasApi: true,
    // Sixteen imports run at a time, four a worker.
    workspaceCount: 16,
    commitDeadlineMs: hasFaults ? 400 : 10_000,
    // As installed. A batch that waits for others on a slow machine has not hung.
    hungAfterMs: 60_000,
    hasFaults,
  }) as const;
/** A round waits until all its calls are applied: the fleet idles at its end. */
const ROUND_SIZE = 200;
const PROGRESS_INTERVAL_MS = 3_000;
const KILL_INTERVAL_MS_MAX = 1_500;
const KILL_DURATION_MS_MAX = 500;
/**
 * Share of kills. Each leaves calls without an answer, and each such call in a sequence doubles the possible states.
 */
const INTAKE_SHARE = 0.1;
const LISTED_MAX = 5;

/** @returns false if a sequence differs or cannot be decided. */
export async function runOrderOracle(
  broker: Broker,
  options: OrderOptions,
  say: (line: string) => void,
): Promise<boolean> {
  const { hasKills, outages: kind, mayShrink, isApart, seed } = options;
  const fleet = await startFleet(broker, orderFleetOf(hasKills || kind !== undefined));
  try {
    const startedAtMs = performance.now();
    const outages = kind && new IntakeOutages(fleet, kind, seed);
    const failed = await runRounds(fleet, options, outages, say);
    summarize(failed, say);
    if (outages)
      say(`${outages.count} outages of one intake, ${outages.lateCount} with late calls`);
    say(`${seconds(startedAtMs)} s`);
    if (mayShrink) await showSmallest(fleet, failed, { isApart, ...whileOf(outages) }, say);
    return failed.length === 0;
  } finally {
    await fleet.close();
  }
}

const whileOf = (outages: IntakeOutages | undefined): Pick<RunOptions, 'whileSending'> =>
  outages ? { whileSending: outages.whileSending } : {};

async function runRounds(
  fleet: Fleet,
  { seed: first, sequences, minutes, hasKills, kind, isApart }: OrderOptions,
  outages: IntakeOutages | undefined,
  say: (line: string) => void,
): Promise<readonly Judgement[]> {
  const startedAtMs = performance.now();
  const failed: Judgement[] = [];
  let done = 0;
  let calls = 0;
  let saidAtMs = startedAtMs;
  for (let start = 0; start < sequences; start += ROUND_SIZE) {
    if (minutes !== undefined && performance.now() - startedAtMs > minutes * 60_000) break;
    const seeds = Array.from(
      { length: Math.min(ROUND_SIZE, sequences - start) },
      (_, index) => first + start + index,
    );
    const runs = seeds.map((seed) => ({ seed, run: 0, calls: sequenceOf(seed, kind) }));
    calls += runs.reduce((sum, run) => sum + run.calls.length, 0);
    const onJudged = (): void => {
      done++;
      if (performance.now() - saidAtMs < PROGRESS_INTERVAL_MS) return;
      saidAtMs = performance.now();
      say(`${done} of ${sequences} sequences after ${seconds(startedAtMs)} s`);
    };
    const judged = await runSequences(fleet, runs, {
      ...(hasKills && { whileSending: killWhile(fleet, first + start) }),
      ...whileOf(outages),
      onSent: () => say(`sent after ${seconds(startedAtMs)} s`),
      onApplied: () => say(`applied after ${seconds(startedAtMs)} s`),
      onJudged,
      isApart,
    });
    const different = judged.filter(({ differences }) => differences.length > 0);
    failed.push(...different);
    for (const { seed, differences } of different) say(`seed ${seed}: ${differences[0]?.words}`);
    saidAtMs = performance.now();
    say(
      `${done} of ${sequences} sequences, ${calls} calls, ${failed.length} differ, after ${seconds(startedAtMs)} s`,
    );
  }
  return failed;
}

/** Kills an intake, a worker or the broker, one after another, until all calls are sent. */
const killWhile =
  (fleet: Fleet, seed: number) =>
  async (sent: Promise<unknown>): Promise<void> => {
    const random = seededRandom(seed);
    const broker = fleet.broker === 'postgres' ? 'postgres' : 'redis';
    const others: readonly ProcessName[] = ['worker-0', 'worker-1', 'worker-2', 'worker-3', broker];
    const intakes: readonly ProcessName[] = ['intake-0', 'intake-1'];
    const hasFailover = fleet.broker === 'cluster' || fleet.broker === 'sentinels';
    let isSending = true;
    const end = () => (isSending = false);
    void sent.then(end, end);
    while (isSending) {
      await sleep(random() * KILL_INTERVAL_MS_MAX);
      const target = pick(random, random() < INTAKE_SHARE ? intakes : others);
      const durationMs =
        Math.floor(random() * KILL_DURATION_MS_MAX) +
        (hasFailover && target === broker ? FAILOVER_MS : 0);
      if (isSending)
        await fleet.suffer({ of: 'process', kind: 'kill', target, atMs: 0, durationMs });
    }
  };

const seconds = (sinceMs: number): string => ((performance.now() - sinceMs) / 1000).toFixed(1);

/** Kind → the sequences that show it, the most frequent first. */
function byKind(failed: readonly Judgement[]): readonly [string, readonly Judgement[]][] {
  const kinds = new Map<string, Judgement[]>();
  for (const judgement of failed)
    for (const kind of new Set(judgement.differences.map((each) => each.kind)))
      kinds.set(kind, [...(kinds.get(kind) ?? []), judgement]);
  return [...kinds].toSorted(([, one], [, other]) => other.length - one.length);
}

function summarize(failed: readonly Judgement[], say: (line: string) => void): void {
  if (failed.length === 0) say('no sequence differs');
  for (const [kind, sequences] of byKind(failed)) {
    const shortest = shortestOf(sequences);
    const example = shortest.differences.find((each) => each.kind === kind);
    say(
      `${kind}: ${sequences.length} sequences, such as seed ${shortest.seed} (${example?.words})`,
    );
  }
}

const shortestOf = (sequences: readonly Judgement[]): Judgement =>
  sequences.toSorted((one, other) => one.calls.length - other.calls.length)[0] as Judgement;

async function showSmallest(
  fleet: Fleet,
  failed: readonly Judgement[],
  options: RunOptions,
  say: (line: string) => void,
): Promise<void> {
  for (const [kind, sequences] of byKind(failed)) {
    const smallest = await shrink(shortestOf(sequences), kind, (runs) =>
      runSequences(fleet, runs, options),
    );
    say(`smallest example of "${kind}", from seed ${smallest.seed}:`);
    for (const { call, sender, intake, sentAt, answeredAt } of smallest.history)
      say(
        `  sender ${sender}, intake ${intake}, ${sentAt} to ${answeredAt}: ${describeCall(call)}`,
      );
    for (const { words } of smallest.differences.slice(0, LISTED_MAX)) say(`  ! ${words}`);
  }
}
