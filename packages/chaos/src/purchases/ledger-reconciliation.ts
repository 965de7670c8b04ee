/**
 * Compares the payment provider's takings with our grants, at the end.
 *
 * It lists the differences.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  collectEverything,
  listCharges,
} from '@sluice/billing-vendor/simulator/simulator-controls';
import { listCreditDifferences } from '@sluice/database/verify/verify-credits';
import { runProgramUnderTest } from '@sluice/platform/testing/service-under-test';
import { sql } from 'kysely';
import type { PurchaseFleet } from './fleet.ts';

const QUIET_DEADLINE_MS = 60_000;
const POLL_INTERVAL_MS = 50;

interface PurchaseRow {
  readonly runId: string;
  readonly status: string;
  readonly kind: string;
  readonly review: string | null;
  readonly invoiceId: string | null;
  readonly chargedAmount: number | null;
}

/** @returns the differences, an entry each; waits until the payment provider has sent all events. */
export async function findLedgerDifferences(fleet: PurchaseFleet): Promise<string[]> {
  const { database, simulator } = fleet;
  const wrong: string[] = [];
  if (!(await isQuiet(fleet))) wrong.push('events of the payment provider are still not settled');

  const { rows: workflows } = await sql<PurchaseRow>`
    select run_id as "runId", status, kind, review_reason as review, invoice_id as "invoiceId",
           (result -> 'charged' ->> 'amount')::int as "chargedAmount" from runs`.execute(database);
  for (const workflow of workflows)
    if (workflow.status === 'pending' || workflow.review !== null)
      wrong.push(`${workflow.runId} is ${workflow.status} ${workflow.review ?? ''}`);

  const taken = new Map<string, number[]>();
  for (const charge of listCharges(simulator.state)) {
    if (charge.status !== 'succeeded') continue;
    const runId = charge.runId ?? 'no purchase';
    taken.set(runId, [...(taken.get(runId) ?? []), charge.amount]);
  }
  for (const workflow of workflows) {
    const amounts = (taken.get(workflow.runId) ?? []).join(' + ');
    const owed =
      workflow.status === 'success' && workflow.chargedAmount ? String(workflow.chargedAmount) : '';
    if (amounts !== owed)
      wrong.push(
        `${workflow.runId} (${workflow.kind}, ${workflow.status}): charged ${amounts}, not ${owed}`,
      );
    taken.delete(workflow.runId);
  }
  for (const [runId, amounts] of taken) wrong.push(`${runId}: ${amounts.join(' + ')} charged`);

  const { rows: grants } = await sql<{ key: string }>`
    select transaction_key as key from credit_transactions
     where transaction_key like 'grant:invoice:%' order by 1`.execute(database);
  const granted = grants.map(({ key }) => key).join();
  const bought = workflows
    .filter((workflow) => workflow.kind === 'inbox_previews' && workflow.status === 'success')
    .map((workflow) => `grant:invoice:${workflow.invoiceId}`)
    .toSorted()
    .join();
  if (granted !== bought) wrong.push(`granted ${granted}, bought ${bought}`);

  for (const difference of await listCreditDifferences(database))
    wrong.push(`credits differ: ${JSON.stringify(difference)}`);
  const collected = collectEverything(simulator.state);
  if (collected.length > 0) wrong.push(`could still be collected: ${collected.join(', ')}`);
  for (const account of twice(simulator.state.list('customer').map(accountOf)))
    wrong.push(`account ${account} is two customers`);
  for (const customer of twice(
    simulator.state.list('subscription').map((each) => String(each['customer'])),
  ))
    wrong.push(`${customer} has two subscriptions`);
  wrong.push(...listCreditFromNothing(simulator));
  const verified = await verify(fleet);
  if (verified !== undefined) wrong.push(verified);
  return wrong;
}

/**
 * The payment provider's debt to a customer is at most the sum that it has taken from them and not refunded. `verify`
 * compares line by line; this needs only the record of charges.
 */
function listCreditFromNothing({ state }: PurchaseFleet['simulator']): string[] {
  const charges = listCharges(state).filter(({ status }) => status === 'succeeded');
  const refunded = (chargeId: string): number =>
    Number(state.get('charge', chargeId)?.['amount_refunded'] ?? 0);
  return state.list('customer').flatMap((customer) => {
    const owed = -Number(customer['balance']);
    const paid = charges
      .filter((charge) => charge.customer === customer.id)
      .reduce((sum, { id, amount }) => sum + amount - refunded(id), 0);
    return owed > paid ? [`${customer.id} has ${owed} in credit, and has paid ${paid}`] : [];
  });
}

/** Runs `npm run verify`; returns its findings. */
async function verify({ settings }: PurchaseFleet): Promise<string | undefined> {
  const file = fileURLToPath(new URL('../../../../scripts/verify.ts', import.meta.url));
  const { code, output } = await runProgramUnderTest(file, settings);
  return code === 0 ? undefined : `verify: ${output}`;
}

async function isQuiet({ database, simulator }: PurchaseFleet): Promise<boolean> {
  for (const deadlineMs = performance.now() + QUIET_DEADLINE_MS; ; await sleep(POLL_INTERVAL_MS)) {
    const { rows } = await sql`
      select from vendor_events where settled_at is null limit 1`.execute(database);
    if (rows.length === 0 && simulator.state.list('event').length === 0) return true;
    if (performance.now() > deadlineMs) return false;
  }
}

const accountOf = (customer: Record<string, unknown>): string =>
  String((customer['metadata'] as Record<string, string>)['account_id']);

const twice = (names: readonly string[]): string[] => [
  ...new Set(names.filter((name, index) => names.indexOf(name) !== index)),
];
