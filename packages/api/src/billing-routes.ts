/** Every route under `/v1/accounts/{account_id}/billing`. */
import { registerAddons } from './purchases/addons.ts';
import type { BillingDependencies } from './billing/billing.ts';
import { registerBillingProfile } from './billing/billing-profile.ts';
import { registerBillingRuns } from './purchases/billing-runs.ts';
import { registerCredits } from './purchases/credits.ts';
import { registerDeprecatedPurchases } from './purchases/deprecated-purchases.ts';
import { registerDowngrade } from './purchases/downgrade.ts';
import { registerInboxPreviewPurchases } from './purchases/inbox-preview-purchases.ts';
import { registerInboxPreviewRuns } from './usage/inbox-preview-runs.ts';
import { registerInboxPreviewUsageLog } from './usage/inbox-preview-usage-log.ts';
import { registerInboxPreviewUsageSummaries } from './usage/inbox-preview-usage-summaries.ts';
import { registerPaymentMethods } from './billing/payment-methods.ts';
import { registerPlanCheckout } from './purchases/plan-checkout.ts';
import { registerPlans } from './billing/plans.ts';
import type { ApiServer } from './http/api-server.ts';
import { registerUsageProfile } from './billing/usage-profile.ts';

/** Call it on a scope that `guardAccounts` was called on. */
export function registerBilling(scope: ApiServer, deps: BillingDependencies): void {
  registerCredits(scope, deps);
  registerAddons(scope, deps);
  registerInboxPreviewPurchases(scope, deps);
  registerInboxPreviewRuns(scope, deps);
  registerInboxPreviewUsageLog(scope, deps);
  registerInboxPreviewUsageSummaries(scope, deps);
  registerDeprecatedPurchases(scope, deps);
  registerBillingRuns(scope, deps);
  registerPlans(scope, deps);
  registerPlanCheckout(scope, deps);
  registerBillingProfile(scope, deps);
  registerPaymentMethods(scope, deps);
  registerDowngrade(scope, deps);
  registerUsageProfile(scope, deps);
}
