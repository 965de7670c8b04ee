/**
 * Every workflow × every step × every moment at which a worker can die.
 *
 * The payment provider fails at random, and sends its events late, twice and out of order. After each crash its takings
 * and our grants are one to one, and every purchase workflow ends. A failed one leaves no invoice that can be
 * collected.
 *
 * The worker is one function here, and dies by an exception, which is quick. `npm run chaos:billing -- --seed N` kills
 * real processes.
 */
import { collectEverything } from '@sluice/billing-vendor/simulator/simulator-controls';
import { FAULT_KINDS } from '@sluice/billing-vendor/simulator/engine/simulator-faults';
import { listCreditDifferences } from '@sluice/database/verify/verify-credits';
import type { PurchaseWorkflow } from '@sluice/database/billing/purchase-workflows';
import { refundCharge } from '@sluice/billing-vendor/simulator/objects/simulator-reversals';
import type { StepName } from '@sluice/domain/billing/workflow-steps';
import { seededRandom, type Random } from '@sluice/domain/values/seeded-random';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import type { CrashPoint } from '../../../src/purchases/advance-purchase-workflow.ts';
import { startSubscriptions, type Subscriptions } from '../support/subscription-world.ts';

const SEED = 1;
const COUNT = 30;

const MOMENTS = ['before-intent', 'after-intent', 'after-vendor', 'after-record'] as const;
const INVOICE_STEPS: StepName[] = ['customer', 'invoice', 'line', 'finalize'];

type Workflow =
  | 'invoiced'
  | 'invoiced declined'
  | 'card paid'
  | 'card unpaid'
  | 'add-ons'
  | 'checkout'
  | 'plan left again'
  /** Its price was refunded before: it gives back no credit. */
  | 'refunded plan left';
const WORKFLOWS: Record<Workflow, StepName[]> = {
  invoiced: [...INVOICE_STEPS, 'pay'],
  'invoiced declined': [...INVOICE_STEPS, 'pay', 'void'],
  'card paid': INVOICE_STEPS,
  'card unpaid': [...INVOICE_STEPS, 'void'],
  'add-ons': ['customer', 'inspect', 'apply'],
  checkout: ['customer', 'subscribe'],
  'plan left again': ['customer', 'subscribe'],
  'refunded plan left': ['customer', 'subscribe'],
};

/** A crash cannot meet a slow answer. */
const FAULTS = FAULT_KINDS.filter((kind) => kind !== 'slow');

const cells = Object.entries(WORKFLOWS).flatMap(([workflow, steps]) =>
  steps.flatMap((step) =>
    MOMENTS.map((moment): { workflow: Workflow; point: CrashPoint } => ({
      workflow: workflow as Workflow,
      point: `${moment}:${step}`,
    })),
  ),
);

/** @returns a purchase workflow of the workflow, on an account that is ready for it. */
async function begin(world: Subscriptions, workflow: Workflow): Promise<PurchaseWorkflow> {
  const card = workflow === 'invoiced declined' ? 'pm_card_chargeCustomerFail' : 'pm_card_visa';
  const rail = workflow.startsWith('card') || workflow === 'add-ons' ? 'card' : 'invoiced';
  const accountId = await world.addAccount(card, rail);
  if (workflow === 'checkout') return world.checkout(accountId, 'premium_month');
  if (workflow === 'plan left again') {
    // It gives back the amount that was paid, not its price.
    await world.finish(await world.checkout(accountId, 'premium_month', { couponCode: 'FIFTY' }));
    return world.checkout(accountId, 'builder');
  }
  if (workflow === 'refunded plan left') {
    const { runId } = await world.finish(await world.checkout(accountId, 'premium_month'));
    const { id } = world.succeeded().find((charge) => charge.runId === runId)!;
    refundCharge(world.simulator.state, id, undefined);
    return world.checkout(accountId, 'builder');
  }
  if (workflow !== 'add-ons') return world.buyPack(accountId, rail);
  await world.finish(await world.checkout(accountId, 'premium_month'));
  return world.start(accountId, 'card', 'addons', {
    type: 'addons',
    skus: ['price_addon_ip_month'],
  } as never);
}

/** All waiting events of the payment provider, in any order, twice. */
const tellEvents = (world: Subscriptions, random: Random) =>
  world.tellEvents((events) =>
    [...events, ...events]
      .map((event) => ({ event, at: random() }))
      .toSorted((one, other) => one.at - other.at)
      .map(({ event }) => event),
  );

test(
  `I2: the books match after crashes and faults (seed ${SEED}, ${COUNT} of ${cells.length} crashes)`,
  { timeout: 480_000 },
  async () => {
    const random = seededRandom(SEED);
    const world = await startSubscriptions({ random, providerTimeoutMs: 150 });
    const chosen = cells
      .map((cell) => ({ cell, at: random() }))
      .toSorted((one, other) => one.at - other.at)
      .slice(0, COUNT)
      .map(({ cell }) => cell);
    for (const { workflow, point } of chosen) {
      const purchaseWorkflow = await begin(world, workflow);
      world.simulator.faults.setChaos({ probability: 0.2, kinds: FAULTS });
      if (workflow.startsWith('card')) {
        await world.wait(purchaseWorkflow, point);
        if (workflow === 'card paid') {
          // The customer's own call; they would try again.
          world.simulator.faults.clear();
          await world.confirm(purchaseWorkflow);
          world.simulator.faults.setChaos({ probability: 0.2, kinds: FAULTS });
        } else world.clock.aheadMs += 3_700_000;
        // The customer's payment is known by an event or by looking: each is right.
        if (random() < 0.5) await tellEvents(world, random);
      }
      const ended = await world.finish(purchaseWorkflow, point);
      world.simulator.faults.clear();
      await tellEvents(world, random);
      const wanted = {
        invoiced: 'success',
        'invoiced declined': 'declined',
        'card paid': 'success',
        'card unpaid': 'failed',
        'add-ons': 'success',
        checkout: 'success',
        'plan left again': 'success',
        'refunded plan left': 'success',
      }[workflow];
      expect({ workflow, point, status: ended.status }).toEqual({
        workflow,
        point,
        status: wanted,
      });
    }
    await expectLedgersToMatch(world);
  },
);

async function expectLedgersToMatch(world: Subscriptions): Promise<void> {
  const { rows: workflows } = await sql<{
    runId: string;
    status: string;
    review: string | null;
    charged: number;
  }>`
    select run_id as "runId", status, review_reason as review,
           coalesce((result #>> '{charged,amount}')::int, 0) as charged
      from runs`.execute(world.database);
  expect(
    workflows.filter(
      (purchaseWorkflow) =>
        purchaseWorkflow.status === 'pending' || purchaseWorkflow.review !== null,
    ),
  ).toEqual([]);
  const paid = world.succeeded();
  const succeeded = workflows
    .filter(({ status, charged }) => status === 'success' && charged > 0)
    .map((purchaseWorkflow) => purchaseWorkflow.runId);
  // One charge for each purchase that succeeded with a price, and for no other.
  expect(new Set(paid.map((charge) => charge.runId))).toEqual(new Set(succeeded));
  expect(paid).toHaveLength(succeeded.length);
  const { rows: grants } = await sql<{ key: string }>`
    select transaction_key as key from credit_transactions
     where reason = 'grant' and transaction_key not like 'allowance:%'`.execute(world.database);
  const { rows: packs } = await sql<{ invoiceId: string }>`
    select invoice_id as "invoiceId" from runs where kind = 'inbox_previews' and status = 'success'`.execute(
    world.database,
  );
  expect(new Set(grants.map((grant) => grant.key))).toEqual(
    new Set(packs.map((pack) => `grant:invoice:${pack.invoiceId}`)),
  );
  expect(grants).toHaveLength(packs.length);
  expect(await listCreditDifferences(world.database)).toEqual([]);
  expect(collectEverything(world.simulator.state)).toEqual([]);
  expect(await world.prorationDifferences()).toEqual([]);
}
