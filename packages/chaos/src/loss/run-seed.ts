/**
 * One seed: load, then faults at its moments, then everything is healed.
 *
 * After that all acknowledged calls must be in Postgres exactly once and in order, and everything must move again. If
 * the fleet delivers, the endpoint must have them too.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { seededRandom } from '@sluice/domain/values/seeded-random';
import { PLANS, type Fault, type FaultPlan } from './fault-plan.ts';
import type { Fleet, ReadinessBody } from './fleet-under-test.ts';
import { startLoad } from './load.ts';
import { findUndelivered } from './delivery-checker.ts';
import type { DeliveryReceiver } from './delivery-receiver.ts';
import { lastApplied, findLosses } from './invariant-checker.ts';

export interface SeedReport {
  readonly seed: number;
  readonly broker: string;
  readonly faults: readonly Fault[];
  /** Acknowledged calls. */
  readonly calls: number;
  /** How often they were sent. */
  readonly sent: number;
  /** From the end of the last fault until everything had moved. */
  readonly recoveryMs: number;
  /** Empty if it held. */
  readonly problems: readonly string[];
}

/**
 * Without an acknowledged or an applied call for so long, the fleet stands. A slow machine is no failure, so there is
 * no other limit. A hung try ends its process after 6 s here, and no other rest is longer.
 */
const STUCK_AFTER_MS = 60_000;
/** A look asks each service, and each worker for the length of all its queues. */
const POLL_INTERVAL_MS = 200;
/** Calls without a fault, after the last one. */
const AFTERWARDS_MS = 200;

/** `lengthMs`: how long faults may begin and last. `receiver`: of the fleet's deliveries. */
export async function runSeed(
  fleet: Fleet,
  seed: number,
  lengthMs: number,
  plan: FaultPlan = 'mixed',
  receiver?: DeliveryReceiver,
): Promise<SeedReport> {
  const random = seededRandom(seed);
  const faults = PLANS[plan](random, fleet.broker, lengthMs);
  const problems: string[] = [];
  const load = startLoad(random, seed, fleet.intakeUrls, (problem) => {
    if (problems.length < 10) problems.push(problem);
  });
  await Promise.all(
    faults.map(async (fault) => {
      await sleep(fault.atMs);
      await fleet.suffer(fault);
    }),
  );
  const healedAtMs = performance.now();
  await sleep(AFTERWARDS_MS);
  let isStopped = false;
  void load.stop().then(() => (isStopped = true));
  let wrong: string[] = [];
  const isDone = async (): Promise<boolean> => {
    wrong = isStopped ? await findUnsettled(fleet) : ['calls are still not acknowledged'];
    if (wrong.length > 0) return false;
    wrong = await findLosses(fleet.database, seed, load.people).catch(said);
    if (receiver && wrong.length === 0)
      wrong = findUndelivered(load.people, load.published, receiver);
    return wrong.length === 0;
  };
  await whileItMoves(isDone, async () =>
    [load.counts.calls, await lastApplied(fleet.database), receiver?.accepted.size].join(),
  );
  problems.push(...wrong);
  return {
    seed,
    broker: fleet.broker,
    faults,
    calls: load.counts.calls,
    sent: load.counts.sent,
    recoveryMs: Math.round(performance.now() - healedAtMs),
    problems,
  };
}

/** Asks until it is done, or until the result of `read` has been the same for `STUCK_AFTER_MS`. */
export async function whileItMoves(
  isDone: () => Promise<boolean>,
  read: () => Promise<string>,
): Promise<void> {
  let last: string | undefined;
  let movedAtMs = performance.now();
  while (!(await isDone())) {
    const now = await read().catch(() => last);
    if (now !== last) movedAtMs = performance.now();
    else if (performance.now() - movedAtMs > STUCK_AFTER_MS) return;
    last = now;
    await sleep(POLL_INTERVAL_MS);
  }
}

const said = (error: unknown): string[] => [String(error)];

/** Parts that do not move or are not empty yet, by the services' own answers. */
export async function findUnsettled(fleet: Fleet): Promise<string[]> {
  const found = await fleet.readiness();
  return found
    .filter(({ body }) => !isSettled(body))
    .map(({ name, body }) => `${name} is not ready, or not done: ${JSON.stringify(body)}`);
}

function isSettled(body: ReadinessBody | undefined): boolean {
  if (!body?.ready) return false;
  const queued = body['queued_envelopes'] as number[] | null | undefined;
  const diskBuffer = body['spill'] as { envelopes: number } | undefined;
  const deadLettered = body['parked_operations'] ?? 0;
  return (
    (queued ?? []).every((count) => count === 0) &&
    (diskBuffer?.envelopes ?? 0) === 0 &&
    (body['staged_flushes'] ?? 0) === 0 &&
    deadLettered === 0
  );
}

export const describeFault = (fault: Fault): string =>
  `${fault.atMs} ms: ${fault.kind} ${fault.target} for ${fault.durationMs} ms`;
