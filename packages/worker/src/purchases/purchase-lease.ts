/**
 * The lease under which a worker takes a purchase workflow on.
 *
 * It is renewed while the worker lives. So it can be shorter than a slow answer of the payment provider, and a purchase
 * whose worker was killed goes on soon.
 *
 * A lost lease does not stop the work: the other worker asks the payment provider under the same idempotency key, and
 * the writes of this one are refused by their number (`purchase-workflows.ts`). Part of `advance-purchase-workflow.ts`.
 */
import {
  renewPurchaseLease,
  type PurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import type { Database } from '@sluice/database/connection/connection';
import type { Logger } from '@sluice/platform/process/logger';

/** Of a lease: two renewals may fail before another worker takes it. */
const RENEWALS = 3;

interface LeaseDeps {
  readonly database: Database;
  /** From the last renewal. */
  readonly leaseMs: number;
  readonly logger: Logger;
}

/** @returns ends the renewals; the caller releases the lease itself when it records the state. */
export function keepPurchaseLease(
  { database, leaseMs, logger }: LeaseDeps,
  workflow: PurchaseWorkflow,
): () => void {
  const renew = async (): Promise<void> => {
    try {
      if (!(await renewPurchaseLease(database, workflow, leaseMs))) clearInterval(timer);
    } catch (error) {
      logger.warn(
        { error, runId: workflow.runId },
        'the lease of a purchase could not be renewed; the worker tries again until it ends',
      );
    }
  };
  const timer = setInterval(() => void renew(), leaseMs / RENEWALS);
  return () => clearInterval(timer);
}
