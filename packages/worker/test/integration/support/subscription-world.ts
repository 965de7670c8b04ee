/** Purchases that begin and change a subscription, with its renewals. */
import {
  settleLatePayments,
  SETTLING_SECONDS,
} from '@sluice/billing-vendor/simulator/objects/simulator-late-payments';
import { renewSubscriptions } from '@sluice/billing-vendor/simulator/objects/simulator-renewals';
import { compareProrations } from '@sluice/domain/billing/unused-time';
import {
  findPurchaseWorkflow,
  type PurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import { findReceipt } from '@sluice/database/billing/receipts';
import { debitCredits } from '@sluice/database/credits/credits';
import type { PurchaseContent } from '@sluice/domain/billing/purchase-content';
import { renewCredits } from '../../../src/purchases/renew-credits.ts';
import { CATALOGUE, startPurchases } from './purchase-world.ts';

type Checkout = Extract<PurchaseContent, { readonly type: 'checkout' }>;

export async function startSubscriptions(options: Parameters<typeof startPurchases>[0] = {}) {
  const world = await startPurchases(options);
  /** The payment provider's and ours; due work at the payment provider is done. */
  const moveClocks = (byMs: number): void => {
    world.simulator.state.advanceClock(byMs);
    settleLatePayments(world.simulator.state);
    renewSubscriptions(world.simulator.state);
    world.clock.aheadMs += byMs;
  };
  return {
    ...world,
    moveClocks,
    /** After the days that a bank takes. */
    bankDecides: () => moveClocks(SETTLING_SECONDS * 1_000),

    look: async ({ accountId, runId }: PurchaseWorkflow) =>
      (await findPurchaseWorkflow(world.database, accountId, runId))!,
    receiptOf: ({ accountId, runId }: PurchaseWorkflow) =>
      findReceipt(world.database, accountId, runId),
    renew: () => renewCredits({ ...world.deps, catalogue: CATALOGUE }),

    checkout: (
      accountId: number,
      planId: string,
      changes: Partial<Pick<Checkout, 'couponCode' | 'paymentMethodId' | 'expectedAmount'>> = {},
    ) =>
      world.start(accountId, 'invoiced', 'checkout', {
        type: 'checkout',
        plan: CATALOGUE.plans.find((plan) => plan.id === planId)!,
        quantity: 1,
        couponCode: null,
        paymentMethodId: null,
        expectedAmount: null,
        ...changes,
      } as never),

    addons: (accountId: number, ...skus: string[]) =>
      world.start(accountId, 'card', 'addons', {
        type: 'addons',
        skus,
        prices: CATALOGUE.addons.filter(({ sku }) => skus.includes(sku)),
      } as never),

    /** For inbox previews. */
    spend: (accountId: number, amount: number, key = 'job_1') =>
      world.database
        .transaction()
        .execute((transaction) =>
          debitCredits(
            transaction,
            { accountId, kind: 'inbox_previews' },
            { amount, key, hasAllowance: true },
            world.deps.now(),
          ),
        ),

    /** Credit of more than was paid, as `verify` looks for it. */
    async prorationDifferences(): Promise<string[]> {
      const differences: string[] = [];
      for (const { id, customer } of world.simulator.state.list('subscription')) {
        const invoices = await world.provider.listInvoicesOfSubscription(String(customer), id);
        const takenBack = await world.provider.readCreditTakenBack(String(customer), id);
        if (invoices.outcome !== 'ok' || takenBack.outcome !== 'ok')
          throw new Error('the payment provider does not answer');
        differences.push(...compareProrations(invoices.value, new Map([[id, takenBack.value]])));
      }
      return differences;
    },
  };
}

export type Subscriptions = Awaited<ReturnType<typeof startSubscriptions>>;
