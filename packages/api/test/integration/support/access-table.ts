/**
 * Callers of each route, written down once more, apart from the routes.
 *
 * `access-matrix.test.ts` holds the routes to them. A route that is not here fails that test. GET stands for HEAD too.
 */

/** The least that opens a route. */
export type Opener =
  /** No credentials; or a link, a code, a secret or a signature that the route itself reads. */
  | 'anybody'
  /** No credentials, but only our own pages may call it. */
  | 'page'
  /** A session in the console; no token, of any role. */
  | 'session'
  | 'app_key'
  /** A token of a service account with this role or a higher one. */
  | 'member'
  | 'billing_admin'
  | 'account_admin'
  /** A token of any role with this scope. */
  | 'usage:write'
  | 'partners:write'
  | 'fleet:read';

const WEBHOOK = '/v1/reporting_webhooks/:webhook_id';
const APPLICATION = '/v1/applications/:application_id';
const ACCOUNT = '/v1/accounts/:account_id';
const BILLING = `${ACCOUNT}/billing`;

export const ROUTES_BY_OPENER: Readonly<Record<Opener, readonly string[]>> = {
  anybody: [
    'GET /livez',
    'GET /readyz',
    'GET /metrics',
    'GET /openapi.json',
    'GET /docs',
    'GET /docs/plain',
    'POST /v1/account_signup',
    'POST /v1/account_signup/code',
    'POST /v1/account_signup/partner_application',
    'POST /v1/account_signup/startup_application',
    'GET /v1/account_signup/startup_partners',
    'POST /v1/service_accounts/oauth/token',
    'POST /v1/device_logins',
    'POST /v1/device_logins/token',
    'POST /v1/device_logins/revocation',
    'GET /v1/audit_log_exports/:link',
    'POST /v1/vendor_events',
  ],
  /** A page of the console, on this machine or by HTTPS. How far a session must be, `second-factor.test.ts` of `console/` has. */
  page: [
    'GET /console/session',
    'POST /console/session',
    'DELETE /console/session',
    'POST /console/session/code',
    'POST /console/session/provider',
    'POST /console/session/provider/begin',
    'POST /console/session/provider/finish',
    'POST /console/session/second_factor',
    'GET /console/second_factor',
    'POST /console/second_factor',
    'DELETE /console/second_factor',
    'POST /console/second_factor/setup',
    'POST /console/second_factor/recovery_codes',
    'POST /portal/session',
  ],
  session: [
    'GET /console/me',
    'GET /console/sessions',
    'DELETE /console/sessions/:session_id',
    'POST /console/device',
    'POST /console/device/decision',
    'GET /console/programs',
    'DELETE /console/programs/:program_id',
  ],
  app_key: [
    'GET /v1/reporting_webhooks',
    'POST /v1/reporting_webhooks',
    `GET ${WEBHOOK}`,
    `PUT ${WEBHOOK}`,
    `DELETE ${WEBHOOK}`,
    `GET ${WEBHOOK}/deliveries`,
    `GET ${WEBHOOK}/deliveries/:sequence`,
    `GET ${WEBHOOK}/deliveries/:sequence/attempts/:attempt/request`,
    'GET /v1/deliveries',
    'GET /v1/statistics',
    'GET /v1/portal_origins',
    `POST ${WEBHOOK}/deliveries/:sequence/resend`,
    `GET ${WEBHOOK}/state`,
    `POST ${WEBHOOK}/probe`,
    `POST ${WEBHOOK}/skip_head`,
    `POST ${WEBHOOK}/test`,
    `GET ${WEBHOOK}/secrets`,
    `POST ${WEBHOOK}/secrets`,
    `POST ${WEBHOOK}/secrets/promote`,
    `DELETE ${WEBHOOK}/secrets/next`,
    `GET ${WEBHOOK}/replays`,
    `POST ${WEBHOOK}/replays`,
    `GET ${WEBHOOK}/replays/:replay_id`,
    `GET ${WEBHOOK}/replays/:replay_id/attempts`,
    `POST ${WEBHOOK}/replays/:replay_id/cancel`,
    'GET /v1/customers',
    'GET /v1/customers/:identifier/attributes',
    'GET /v1/customers/:identifier/attributes/:name/history',
    'GET /v1/customers/:identifier/activities',
    'GET /v1/customers/:identifier/relationships',
    'GET /v1/object_types',
    'POST /v1/objects',
    'GET /v1/objects/:object_type_id/:object_id/attributes',
    'GET /v1/objects/:object_type_id/:object_id/relationships',
    'GET /v1/events',
    'GET /v1/events/:event_id',
    'GET /v1/events/:event_id/trace',
    'GET /v1/stream',
    'GET /v1/ingestion_issues',
    'GET /v1/imports',
    'POST /v1/imports',
    'GET /v1/imports/:import_id',
    'POST /v1/imports/:import_id/cancel',
    'GET /v1/imports/:import_id/errors',
    'GET /v1/imports/:import_id/warnings',
    'GET /v1/portal_links',
    'POST /v1/portal_links',
    'DELETE /v1/portal_links/:portal_link_id',
    'GET /v1/event_types',
    'GET /v1/event_types/:name',
    'PUT /v1/event_types/:name',
    'DELETE /v1/event_types/:name',
    'POST /v1/event_types/:name/check',
    'GET /v1/applications',
    'POST /v1/applications',
    `GET ${APPLICATION}`,
    `PUT ${APPLICATION}`,
    `DELETE ${APPLICATION}`,
    `GET ${APPLICATION}/endpoints`,
    `POST ${APPLICATION}/endpoints`,
    `POST ${APPLICATION}/replays`,
    'GET /v1/feeds',
    'GET /v1/feeds/:name',
    'PUT /v1/feeds/:name',
    'DELETE /v1/feeds/:name',
    // A key passes the guard, and is refused because the route is for the portal.
    'GET /portal/session',
    'DELETE /portal/session',
    'GET /v1/workspaces',
    'GET /v1/info/ip_addresses',
  ],
  member: [
    `GET ${ACCOUNT}`,
    'GET /v1/account_by_environment/:environment_id',
    `GET ${BILLING}/addons/status/:run_id`,
    `GET ${BILLING}/ai_credits/invoiced_purchase_status`,
    `GET ${BILLING}/ai_credits/purchase_status`,
    `GET ${BILLING}/builder_credits/purchase_status`,
    `GET ${BILLING}/credits/balance`,
    `GET ${BILLING}/credits/offers`,
    `GET ${BILLING}/credits/balance/:credit_type`,
    `GET ${BILLING}/credits/ledger`,
    `GET ${BILLING}/credits/purchase_status`,
    `GET ${BILLING}/inbox_previews/invoiced_purchase_status`,
    `GET ${BILLING}/inbox_previews/purchase_status`,
    `GET ${BILLING}/inbox_previews/usage_log`,
    `GET ${BILLING}/inbox_previews/usage_summaries`,
    `GET ${BILLING}/info`,
    `GET ${BILLING}/overage_estimate`,
    `GET ${BILLING}/plans`,
    `GET ${BILLING}/plans/checkout_status`,
    `GET ${BILLING}/profile`,
    `GET ${BILLING}/runs`,
    `GET ${BILLING}/runs/:run_id`,
    `GET ${BILLING}/usage_profile`,
  ],
  billing_admin: [
    `GET ${BILLING}/payment`,
    `GET ${BILLING}/runs/:run_id/payment_page`,
    `POST ${BILLING}/addons`,
    `POST ${BILLING}/ai_credits/invoiced_purchase`,
    `POST ${BILLING}/ai_credits/payment_intent`,
    `POST ${BILLING}/builder_credits/payment_intent`,
    `POST ${BILLING}/credits/purchase`,
    `POST ${BILLING}/downgrade-to-builder`,
    `POST ${BILLING}/inbox_previews/invoiced_purchase`,
    `POST ${BILLING}/inbox_previews/payment_intent`,
    `POST ${BILLING}/payment_method/default`,
    `POST ${BILLING}/plans/:plan_id`,
    'GET /settings/receipts/:id',
  ],
  account_admin: [
    `PUT ${ACCOUNT}`,
    `POST ${ACCOUNT}/2fa_required/:action`,
    `POST ${ACCOUNT}/activate_product`,
    `POST ${ACCOUNT}/address`,
    `GET ${ACCOUNT}/all_users`,
    `POST ${ACCOUNT}/users`,
    `PUT ${ACCOUNT}/users/:user_id`,
    `DELETE ${ACCOUNT}/users/:user_id`,
    `DELETE ${ACCOUNT}/users/:user_id/sessions`,
    `DELETE ${ACCOUNT}/users/:user_id/second_factor`,
    `GET ${ACCOUNT}/identity_provider`,
    `PUT ${ACCOUNT}/identity_provider`,
    `DELETE ${ACCOUNT}/identity_provider`,
    `GET ${ACCOUNT}/api_credentials`,
    `POST ${ACCOUNT}/api_credentials`,
    `GET ${ACCOUNT}/api_credentials/:id`,
    `DELETE ${ACCOUNT}/api_credentials/:id`,
    `POST ${ACCOUNT}/api_credentials/:id/rotate`,
    `GET ${ACCOUNT}/audit_log/:audit_log_id`,
    `GET ${ACCOUNT}/audit_logs`,
    `POST ${ACCOUNT}/audit_logs/export`,
    `GET ${ACCOUNT}/audit_logs/exports/:export_id`,
    `GET ${ACCOUNT}/audit_logs/field_options`,
    `PUT ${ACCOUNT}/environments/:environment_id`,
  ],
  'usage:write': [
    `POST ${BILLING}/inbox_previews/runs`,
    `POST ${BILLING}/inbox_previews/runs/:preview_job_id/refund`,
  ],
  'partners:write': ['PUT /v1/account_signup/partner_application/:partner_id/status'],
  'fleet:read': ['GET /v1/fleet'],
};

/** `GET /v1/…` → the credential that opens it. */
export const OPENERS: ReadonlyMap<string, Opener> = new Map(
  Object.entries(ROUTES_BY_OPENER).flatMap(([opener, routes]) =>
    routes.map((route) => [route, opener as Opener] as const),
  ),
);

/** Reads with another method than GET. A credential that may only read opens them too. */
export const READS: ReadonlySet<string> = new Set([
  'POST /v1/objects',
  'POST /v1/event_types/:name/check',
  'DELETE /portal/session',
]);
