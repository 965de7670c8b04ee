/**
 * One cell: a customer buys while the payment provider fails at random.
 *
 * The process is killed at the cell's point and started again. Then the purchase must end like one without a crash.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { FAULT_KINDS } from '@sluice/billing-vendor/simulator/engine/simulator-faults';
import { sql } from 'kysely';
import { setBreakpoint, clearBreakpoint, waitForBreakpoint } from './breakpoints.ts';
import {
  nameOf,
  REQUESTS,
  WORKFLOWS,
  type Cell,
  type CrashPoint,
  type ProviderMoment,
} from './cells.ts';
import { addCustomer, buy, prepare } from './customer.ts';
import type { PurchaseFleet } from './fleet.ts';

export interface CellReport {
  readonly name: string;
  /** From the process's start to the purchase's end. */
  readonly recoveryMs: number;
  /** Empty if it held. */
  readonly problems: readonly string[];
}

/** Of every changing request that the payment provider gets. `slow` outlasts our patience. */
const VENDOR_CHAOS = { probability: 0.15, kinds: FAULT_KINDS, delayMs: 600 };
const BREAKPOINT_DEADLINE_MS = 90_000;
const END_DEADLINE_MS = 150_000;
const POLL_INTERVAL_MS = 20;

export async function crashPurchase(fleet: PurchaseFleet, cell: Cell): Promise<CellReport> {
  const { faults } = fleet.simulator;
  const problems: string[] = [];
  const customer = await addCustomer(fleet, cell.workflow);
  await prepare(fleet, customer, cell.workflow);
  const earlierCount = await countPurchases(fleet, customer.accountId);

  faults.setChaos(VENDOR_CHAOS);
  const giveUp = new AbortController();
  const { reached } = await arm(fleet, cell.point, giveUp.signal);
  const buying = buy(fleet, customer, cell.workflow).then(
    () => undefined,
    (error: Error) => error,
  );
  const isReached = await Promise.race([
    reached.then(() => true),
    expireMeanwhile(fleet, customer.accountId, cell, giveUp.signal).then(() => false),
  ]);
  giveUp.abort();
  if (!isReached) problems.push('the point was never reached');
  await fleet.kill(cell.point.process);
  await clearBreakpoint(fleet.database);
  await fleet.start(cell.point.process);
  const startedAtMs = performance.now();

  const refusal = await buying;
  if (refusal) problems.push(refusal.message);
  const wanted = WORKFLOWS[cell.workflow].ending;
  const status = await waitForEnd(fleet, customer.accountId, cell);
  if (status !== wanted) problems.push(`it is ${status}, not ${wanted}`);
  const count = (await countPurchases(fleet, customer.accountId)) - earlierCount;
  if (count !== 1) problems.push(`one click has begun ${count} purchases`);
  const recoveryMs = Math.round(performance.now() - startedAtMs);
  faults.clear();
  return { name: nameOf(cell), recoveryMs, problems };
}

/** From here on the process will be held at the point. */
async function arm(
  fleet: PurchaseFleet,
  point: CrashPoint,
  signal: AbortSignal,
): Promise<{ readonly reached: Promise<void> }> {
  if ('step' in point && isProviderMoment(point.moment)) {
    const kind = point.moment === 'after-intent' ? 'timeout' : 'timeout_after';
    return { reached: fleet.simulator.faults.meet({ kind, ...REQUESTS[point.step] }) };
  }
  const name = 'step' in point ? `${point.moment}:${point.step}` : point.moment;
  await setBreakpoint(fleet.database, name);
  return { reached: waitForBreakpoint(fleet.database, name, signal) };
}

const isProviderMoment = (moment: string): moment is ProviderMoment =>
  moment === 'after-intent' || moment === 'after-effect';

/** Ends when the time for reaching the point is over. */
async function expireMeanwhile(
  fleet: PurchaseFleet,
  accountId: number,
  { workflow }: Cell,
  signal: AbortSignal,
): Promise<void> {
  const deadlineMs = performance.now() + BREAKPOINT_DEADLINE_MS;
  while (!signal.aborted && performance.now() < deadlineMs) {
    if (workflow === 'card, not paid') await endPaymentTime(fleet, accountId);
    await sleep(POLL_INTERVAL_MS);
  }
}

/** Ends the customer's hour, once there is something that they could pay. */
async function endPaymentTime(fleet: PurchaseFleet, accountId: number): Promise<void> {
  await sql`
    update runs set expires_at = now(), next_at = now()
     where account_id = ${accountId} and status = 'pending'
       and exists (select from run_steps s
                    where s.account_id = runs.account_id and s.run_id = runs.run_id
                      and s.step = 'finalize' and s.state = 'done')
       and (expires_at > now() or next_at > now())`.execute(fleet.database);
}

async function countPurchases(fleet: PurchaseFleet, accountId: number): Promise<number> {
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from runs where account_id = ${accountId}`.execute(
    fleet.database,
  );
  return rows[0]?.count ?? 0;
}

/** The status of the newest purchase, once it has ended, or its last status when the wait is over. */
async function waitForEnd(
  fleet: PurchaseFleet,
  accountId: number,
  { workflow }: Cell,
): Promise<string> {
  for (const deadlineMs = performance.now() + END_DEADLINE_MS; ; await sleep(POLL_INTERVAL_MS)) {
    if (workflow === 'card, not paid') await endPaymentTime(fleet, accountId);
    const { rows } = await sql<{ status: string; review: string | null }>`
      select status, review_reason as review from runs where account_id = ${accountId}
       order by created_at desc, run_id desc limit 1`.execute(fleet.database);
    const [purchaseWorkflow] = rows;
    if (purchaseWorkflow?.review != null) return `in manual review: ${purchaseWorkflow.review}`;
    if (purchaseWorkflow && purchaseWorkflow.status !== 'pending') return purchaseWorkflow.status;
    if (performance.now() > deadlineMs) return purchaseWorkflow?.status ?? 'nowhere';
  }
}
