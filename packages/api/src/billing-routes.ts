/** Every route under `/v1/accounts/{account_id}/billing`. */
import { registerAddons } from './addons.ts';
import type { BillingDependencies } from './billing.ts';
import { registerBillingProfile } from './billing-profile.ts';
import { registerBillingRuns } from './billing-runs.ts';
import { registerCredits } from './credits.ts';
import { registerDeprecatedPurchases } from './deprecated-purchases.ts';
import { registerDowngrade } from './downgrade.ts';
import { registerInboxPreviewPurchases } from './inbox-preview-purchases.ts';
import { registerInboxPreviewRuns } from './inbox-preview-runs.ts';
import { registerInboxPreviewUsageLog } from './inbox-preview-usage-log.ts';
import { registerInboxPreviewUsageSummaries } from './inbox-preview-usage-summaries.ts';
import { registerPaymentMethods } from './payment-methods.ts';
import { registerPlanCheckout } from './plan-checkout.ts';
import { registerPlans } from './plans.ts';
import type { ApiServer } from './http/api-server.ts';
import { registerUsageProfile } from './usage-profile.ts';

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
