/**
 * Work of a worker about purchases: jobs of the queue, findings of the reconciliation loop, and work by the clock.
 */
import { countProviderCalls } from '@sluice/billing-vendor/count-provider-calls';
import { openPaymentProvider } from '@sluice/billing-vendor/open-payment-provider';
import { readCatalogue } from '@sluice/billing-vendor/catalogue/read-catalogue';
import {
  listDuePurchases,
  listPurchasesWithPaymentDue,
} from '@sluice/database/billing/purchase-workflows';
import type { Database } from '@sluice/database/connection/connection';
import type { Logger } from '@sluice/platform/process/logger';
import type { Producer } from '@sluice/platform/queue/queue';
import type { PurchaseProcessors } from '@sluice/platform/consumers/queue-processors';
import { repeat, type Repetition } from '@sluice/platform/process/repeat';
import type { z } from 'zod';
import { advancePurchaseWorkflow } from './advance-purchase-workflow.ts';
import { endClosedSubscriptions } from './end-closed-subscriptions.ts';
import { renewCredits } from './renew-credits.ts';
import { eachAsked } from '../process/each-alone.ts';
import type { workerSettings } from '../process/settings.ts';
import {
  lookAtInvoice,
  settleProviderEvents,
  type SettleProviderEventsDeps,
} from '../settlement/settle-provider-events.ts';
import type { ReconcileLoop } from '../process/reconcile-loops.ts';

export interface PurchasesDeps {
  readonly database: Database;
  readonly producer: Pick<Producer, 'wakePurchaseWorkflow'>;
  readonly settings: z.infer<typeof workerSettings>;
  readonly now: () => number;
  readonly logger: Logger;
}

export interface Purchases {
  /** Calls of the payment provider so far, by outcome. */
  readonly providerCalls: ReadonlyMap<string, number>;
  readonly processors: PurchaseProcessors;
  /** Find work that the queue has lost. */
  readonly reconcileLoops: readonly ReconcileLoop[];
  /** Starts the periodic work: it renews credits, and looks at the payment provider. */
  startByTheClock(): readonly Repetition[];
}

/**
 * Purchases worked on at the same time. A call of the payment provider takes about 0.2 s, so these are 80 a second;
 * Stripe takes 100.
 */
const PURCHASE_CONCURRENCY = 16;
const RENEW_INTERVAL_MS = 60_000;
const CLOSED_INTERVAL_MS = 60_000;
/** Needed only if the payment provider's event was lost. */
const DUE_PAYMENTS_INTERVAL_MS = 3_600_000;
/** Of one reconcile loop, and of one look at due payments; the rest waits for the next time. */
const PURCHASES_MAX = 1_000;

export async function createPurchases(deps: PurchasesDeps): Promise<Purchases> {
  const { database, settings, now, logger } = deps;
  const catalogue = readCatalogue(settings.BILLING_CATALOGUE_FILE);
  const providerCalls = new Map<string, number>();
  const provider = countProviderCalls(await openPaymentProvider(settings), providerCalls);
  // As long as the broker waits for a silent process, which has its job until then.
  const leaseMs = settings.QUEUE_STALLED_AFTER_MS;
  const settle = () => settleProviderEvents({ database, provider, now, logger });
  return {
    providerCalls,
    processors: {
      concurrency: PURCHASE_CONCURRENCY,
      async advancePurchaseWorkflow(workflow) {
        await advancePurchaseWorkflow(
          { database, provider, catalogue, leaseMs, now, logger },
          workflow,
        );
      },
      async settleProviderEvents() {
        await settle();
      },
    },
    reconcileLoops: [
      {
        name: 'sweep purchases',
        kind: 'runs',
        intervalMs: settings.WORKER_SWEEP_INTERVAL_MS,
        run: () => reconcilePurchases(deps),
      },
      {
        name: 'settle vendor events',
        kind: 'vendor-events',
        intervalMs: settings.WORKER_SWEEP_INTERVAL_MS,
        run: settle,
      },
    ],
    startByTheClock: () => [
      repeat('renew credits', RENEW_INTERVAL_MS, logger, () =>
        renewCredits({ database, catalogue, now, logger }),
      ),
      repeat('end the subscriptions of closed accounts', CLOSED_INTERVAL_MS, logger, (isStopping) =>
        endClosedSubscriptions({ database, provider, now, logger }, isStopping),
      ),
      repeat('look at due payments', DUE_PAYMENTS_INTERVAL_MS, logger, (isStopping) =>
        lookAtDuePayments({ database, provider, now, logger }, isStopping),
      ),
    ],
  };
}

/**
 * Wakes due runs without a worker: a wake-up was lost, the broker was flushed, a worker died, the payment provider has
 * to be asked again. Run it every second, on any number of workers.
 *
 * @returns how many were woken.
 */
async function reconcilePurchases({ database, producer, now }: PurchasesDeps): Promise<number> {
  const workflows = await listDuePurchases(database, now(), PURCHASES_MAX);
  await Promise.all(workflows.map((workflow) => producer.wakePurchaseWorkflow(workflow)));
  return workflows.length;
}

/**
 * Looks at payments that banks still owe, in case the payment provider's event was lost: without it the plan's
 * allowance and the receipt would never come. Run it every hour, on any number of workers; a bank pays within days.
 *
 * @param isStopping - asked before each: the rest waits for the next time.
 */
export async function lookAtDuePayments(
  deps: SettleProviderEventsDeps,
  isStopping: () => boolean = () => false,
): Promise<void> {
  const workflows = await listPurchasesWithPaymentDue(deps.database, deps.now(), PURCHASES_MAX);
  await eachAsked(
    deps.logger,
    'look at due payment',
    workflows,
    ({ invoiceId }) => lookAtInvoice(deps, invoiceId),
    isStopping,
  );
}
