/** Every route under `/v1/accounts/{account_id}/billing`. */
import type { BillingEffects } from './billing/billing-effects.ts';
import { registerAddons } from './purchases/addons.ts';
import { registerBillingProfile } from './billing/billing-profile.ts';
import { registerBillingRuns } from './purchases/billing-runs.ts';
import { registerCreditOffers } from './purchases/credit-offers.ts';
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
export function registerBilling(scope: ApiServer, effects: BillingEffects): void {
  registerCredits(scope, effects);
  registerCreditOffers(scope, effects);
  registerAddons(scope, effects);
  registerInboxPreviewPurchases(scope, effects);
  registerInboxPreviewRuns(scope, effects);
  registerInboxPreviewUsageLog(scope, effects);
  registerInboxPreviewUsageSummaries(scope, effects);
  registerDeprecatedPurchases(scope, effects);
  registerBillingRuns(scope, effects);
  registerPlans(scope, effects);
  registerPlanCheckout(scope, effects);
  registerBillingProfile(scope, effects);
  registerPaymentMethods(scope, effects);
  registerDowngrade(scope, effects);
  registerUsageProfile(scope, effects);
}
