/** The operations of accounts, billing, audit log and signup: a part of `operation-names.ts`. */

/** `METHOD /path` → the name, and the answer in a sentence. */
export type OperationNames = Readonly<Record<string, readonly [name: string, answer: string]>>;

export const ACCOUNT_OPERATIONS: OperationNames = {
  'GET /v1/accounts/{account_id}': ['getAccount', 'The account.'],
  'PUT /v1/accounts/{account_id}': ['updateAccount', 'The account after the change.'],
  'GET /v1/account_by_environment/{environment_id}': [
    'getAccountByEnvironment',
    'The account of the workspace.',
  ],
  'POST /v1/accounts/{account_id}/address': [
    'replaceAccountAddress',
    'The account after the change.',
  ],
  'POST /v1/accounts/{account_id}/2fa_required/{action}': [
    'requireTwoFactor',
    'The setting is changed.',
  ],
  'POST /v1/accounts/{account_id}/activate_product': [
    'activateProduct',
    'The product, which is switched on.',
  ],
  'PUT /v1/accounts/{account_id}/environments/{environment_id}': [
    'updateEnvironment',
    'The workspace after the change.',
  ],
  'GET /v1/accounts/{account_id}/billing/credits/balance': [
    'getCreditBalances',
    'The balance of each type.',
  ],
  'GET /v1/accounts/{account_id}/billing/credits/balance/{credit_type}': [
    'getCreditBalance',
    'The balance of the type.',
  ],
  'GET /v1/accounts/{account_id}/billing/credits/offers': ['listCreditOffers', 'The prices.'],
  'GET /v1/accounts/{account_id}/billing/credits/ledger': [
    'listCreditLedger',
    'A page of the ledger, newest first.',
  ],
  'POST /v1/accounts/{account_id}/billing/credits/purchase': [
    'purchaseCredits',
    'The purchase that was begun, with the data for its payment if no card is charged.',
  ],
  'GET /v1/accounts/{account_id}/billing/credits/purchase_status': [
    'getCreditPurchaseStatus',
    'How far the purchase is.',
  ],
  'POST /v1/accounts/{account_id}/billing/addons': [
    'purchaseAddons',
    'The purchase that was begun.',
  ],
  'GET /v1/accounts/{account_id}/billing/addons/status/{run_id}': [
    'getAddonPurchaseStatus',
    'How far the purchase is.',
  ],
  'POST /v1/accounts/{account_id}/billing/inbox_previews/invoiced_purchase': [
    'purchaseInboxPreviews',
    'The purchase that was begun, with the data for its payment if no card is charged.',
  ],
  'POST /v1/accounts/{account_id}/billing/inbox_previews/payment_intent': [
    'createInboxPreviewPayment',
    'The purchase, with the data for its payment.',
  ],
  'GET /v1/accounts/{account_id}/billing/inbox_previews/invoiced_purchase_status': [
    'getInboxPreviewPurchaseStatus',
    'How far the purchase is.',
  ],
  'GET /v1/accounts/{account_id}/billing/inbox_previews/purchase_status': [
    'getInboxPreviewPaymentStatus',
    'How far the purchase is.',
  ],
  'POST /v1/accounts/{account_id}/billing/inbox_previews/runs': [
    'recordInboxPreviewRun',
    'The run, and whether it was recorded by this call.',
  ],
  'POST /v1/accounts/{account_id}/billing/inbox_previews/runs/{preview_job_id}/refund': [
    'refundInboxPreviewRun',
    'The run, and whether it was refunded by this call.',
  ],
  'GET /v1/accounts/{account_id}/billing/inbox_previews/usage_log': [
    'listInboxPreviewUsage',
    'A page of entries, newest first.',
  ],
  'GET /v1/accounts/{account_id}/billing/inbox_previews/usage_summaries': [
    'summarizeInboxPreviewUsage',
    'Sums by the groups and intervals that were asked for.',
  ],
  'GET /v1/accounts/{account_id}/billing/runs': [
    'listPurchases',
    'A page of purchases, newest first.',
  ],
  'GET /v1/accounts/{account_id}/billing/runs/{run_id}': [
    'getPurchase',
    'The purchase with its steps.',
  ],
  'GET /v1/accounts/{account_id}/billing/runs/{run_id}/payment_page': [
    'getPaymentPage',
    'The address of the page.',
  ],
  'GET /v1/accounts/{account_id}/billing/plans': ['listPlans', 'The plans with their prices.'],
  'POST /v1/accounts/{account_id}/billing/plans/{plan_id}': [
    'purchasePlan',
    'The checkout that was begun.',
  ],
  'GET /v1/accounts/{account_id}/billing/plans/checkout_status': [
    'getCheckoutStatus',
    'How far the checkout is.',
  ],
  'GET /v1/accounts/{account_id}/billing/info': ['getBillingInfo', 'The plan and its parts.'],
  'GET /v1/accounts/{account_id}/billing/profile': [
    'getBillingProfile',
    'The customer at the payment provider.',
  ],
  'GET /v1/accounts/{account_id}/billing/payment': ['getDefaultPayment', 'The payment method.'],
  'POST /v1/accounts/{account_id}/billing/payment_method/default': [
    'setDefaultPaymentMethod',
    'Later payments charge this card.',
  ],
  'POST /v1/accounts/{account_id}/billing/downgrade-to-builder': [
    'downgradeToBuilder',
    'The account is on the Builder plan.',
  ],
  'GET /v1/accounts/{account_id}/billing/usage_profile': [
    'getUsageProfile',
    'The use of the current period.',
  ],
  'GET /v1/accounts/{account_id}/billing/overage_estimate': [
    'estimateOverage',
    'The estimate by meter.',
  ],
  'GET /v1/accounts/{account_id}/all_users': ['listUsers', 'The users.'],
  'POST /v1/accounts/{account_id}/users': ['inviteUser', 'The user, who is invited.'],
  'PUT /v1/accounts/{account_id}/users/{user_id}': ['updateUser', 'The user after the change.'],
  'DELETE /v1/accounts/{account_id}/users/{user_id}': ['removeUser', 'Removed.'],
  'DELETE /v1/accounts/{account_id}/users/{user_id}/sessions': [
    'endUserSessions',
    'The numbers of sessions and programs that were ended.',
  ],
  'DELETE /v1/accounts/{account_id}/users/{user_id}/second_factor': [
    'resetSecondFactor',
    'The user has no second factor.',
  ],
  'GET /v1/accounts/{account_id}/identity_provider': [
    'getIdentityProvider',
    'The provider without its secret, and the values for setting one.',
  ],
  'PUT /v1/accounts/{account_id}/identity_provider': [
    'putIdentityProvider',
    'The provider after the change.',
  ],
  'DELETE /v1/accounts/{account_id}/identity_provider': ['deleteIdentityProvider', 'Deleted.'],
  'GET /v1/fleet': ['getFleet', 'The state of the installation.'],
  'GET /v1/accounts/{account_id}/api_credentials': [
    'listCredentials',
    'The credentials, without their secrets.',
  ],
  'POST /v1/accounts/{account_id}/api_credentials': [
    'createCredential',
    'The credential with its secret, which is shown this once.',
  ],
  'GET /v1/accounts/{account_id}/api_credentials/{id}': [
    'getCredential',
    'The credential, without its secret.',
  ],
  'DELETE /v1/accounts/{account_id}/api_credentials/{id}': [
    'revokeCredential',
    'The credential, which is in force no more.',
  ],
  'POST /v1/accounts/{account_id}/api_credentials/{id}/rotate': [
    'rotateCredential',
    'The credential with its new secret, which is shown this once.',
  ],
  'GET /settings/receipts/{id}': ['getReceipt', 'The receipt as a page.'],
  'PUT /v1/account_signup/partner_application/{partner_id}/status': [
    'decidePartnerApplication',
    'The partner after the change.',
  ],
  'GET /v1/accounts/{account_id}/audit_logs': ['listAuditLogs', 'A page of entries, newest first.'],
  'GET /v1/accounts/{account_id}/audit_log/{audit_log_id}': [
    'getAuditLog',
    'The entry with its changes.',
  ],
  'GET /v1/accounts/{account_id}/audit_logs/field_options': [
    'listAuditLogFields',
    'The values that occur.',
  ],
  'POST /v1/accounts/{account_id}/audit_logs/export': [
    'createAuditLogExport',
    'The export that was begun.',
  ],
  'GET /v1/accounts/{account_id}/audit_logs/exports/{export_id}': [
    'getAuditLogExport',
    'The export, with a link once it is ready.',
  ],
  'POST /v1/accounts/{account_id}/billing/ai_credits/invoiced_purchase': [
    'purchaseAiCredits',
    'The purchase that was begun, with the data for its payment if no card is charged.',
  ],
  'GET /v1/accounts/{account_id}/billing/ai_credits/invoiced_purchase_status': [
    'getAiCreditPurchaseStatus',
    'How far the purchase is.',
  ],
  'POST /v1/accounts/{account_id}/billing/ai_credits/payment_intent': [
    'createAiCreditPayment',
    'The purchase, with the data for its payment.',
  ],
  'GET /v1/accounts/{account_id}/billing/ai_credits/purchase_status': [
    'getAiCreditPaymentStatus',
    'How far the purchase is.',
  ],
  'POST /v1/accounts/{account_id}/billing/builder_credits/payment_intent': [
    'createBuilderCreditPayment',
    'The purchase, with the data for its payment.',
  ],
  'GET /v1/accounts/{account_id}/billing/builder_credits/purchase_status': [
    'getBuilderCreditPaymentStatus',
    'How far the purchase is.',
  ],
  'POST /v1/account_signup': ['startSignup', 'The code is on its way; how long it is good for.'],
  'POST /v1/account_signup/code': [
    'completeSignup',
    'The account with its first token, which is shown this once.',
  ],
  'POST /v1/account_signup/startup_application': [
    'applyForStartupProgram',
    'The application is taken.',
  ],
  'GET /v1/account_signup/startup_partners': ['listStartupPartners', 'The partners.'],
  'POST /v1/account_signup/partner_application': [
    'applyAsPartner',
    'The application that was taken.',
  ],
  'POST /v1/service_accounts/oauth/token': ['exchangeToken', 'The short-lived token.'],
  'POST /v1/vendor_events': ['receiveProviderEvent', 'The event is kept.'],
  'GET /v1/audit_log_exports/{link}': ['downloadAuditLogExport', 'The file.'],
};
