/**
 * Ends a purchase that the worker's catalogue does not sell.
 *
 * The API writes the content of a purchase, with its price. It is compared before the first step beyond the customer,
 * so before any charge. It stays as it is, so once is enough. Before: `advance-purchase-workflow.ts`.
 */
import type { Database } from '@sluice/database/connection/connection';
import type { PurchaseStep } from '@sluice/database/billing/purchase-steps';
import type { PurchaseWorkflow } from '@sluice/database/billing/purchase-workflows';
import type { Catalogue } from '@sluice/domain/billing/catalogue';
import { refusalOfContent } from '@sluice/domain/billing/purchase-content';
import type { Logger } from '@sluice/platform/process/logger';
import { endPurchaseWorkflow } from './end-purchase-workflow.ts';

interface RefuseUnsoldDeps {
  readonly database: Database;
  readonly catalogue: Catalogue;
  readonly now: () => number;
  readonly logger: Logger;
}

/** @returns undefined if the purchase may go on. */
export async function refuseUnsold(
  deps: RefuseUnsoldDeps,
  workflow: PurchaseWorkflow,
  steps: readonly PurchaseStep[],
): Promise<'ended' | 'overtaken' | undefined> {
  if (steps.some(({ step }) => step !== 'customer')) return undefined;
  const refusal = refusalOfContent(workflow.content, deps.catalogue, deps.now());
  if (refusal === undefined) return undefined;
  deps.logger.error(
    { runId: workflow.runId, refusal },
    "a purchase has another price or content than this worker's catalogue; it ended without a charge",
  );
  return endPurchaseWorkflow(deps, workflow, steps, 'failed', refusal);
}
