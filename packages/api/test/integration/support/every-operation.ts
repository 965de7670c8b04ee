/** All operations of the API as its own document lists them. So a test over "every route" cannot miss one. */
import type { ApiUnderTest } from './api-under-test.ts';
import type { Tenant } from './inserted-rows.ts';

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query';
}

export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'DELETE';
  /** `/v1/customers/{identifier}/attributes` */
  readonly path: string;
  readonly pathParameters: readonly string[];
  readonly queryParameters: readonly string[];
  readonly takesBody: boolean;
  /** The credential that must be sent: a key of the app API, a token of a service account, or `nothing`. */
  readonly opensWith: 'app_key' | 'account_token' | 'nothing';
  /** Statuses that the document admits. */
  readonly statuses: readonly number[];
}

export function listOperations(api: Pick<ApiUnderTest, 'app'>): Operation[] {
  const { paths = {} } = api.app.swagger() as { paths?: Record<string, Record<string, unknown>> };
  return Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => {
      const {
        parameters = [],
        requestBody,
        responses,
        security = [{ app_key: [] }],
      } = operation as {
        parameters?: Parameter[];
        requestBody?: unknown;
        responses: Record<string, unknown>;
        security?: object[];
      };
      const [needed] = security.flatMap((each) => Object.keys(each));
      const namesIn = (place: string) =>
        parameters.filter((each) => each.in === place).map((each) => each.name);
      return {
        method: method.toUpperCase() as Operation['method'],
        path,
        pathParameters: namesIn('path'),
        queryParameters: namesIn('query'),
        takesBody: requestBody !== undefined,
        opensWith: (needed ?? 'nothing') as Operation['opensWith'],
        statuses: Object.keys(responses).map(Number),
      };
    }),
  );
}

/** The path with a value for each of its parameters, percent-encoded. */
export function fillPath({ path }: Operation, valueOf: (parameter: string) => string): string {
  return path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => encodeURIComponent(valueOf(name)));
}

/** The tenant's credential for a call of it. */
export function keyOf({ opensWith }: Operation, tenant: Tenant): string {
  return opensWith === 'account_token' ? tenant.token : tenant.key;
}

/** Bodies of operations, except the configuration of a reporting webhook. */
export const BODIES: Readonly<Record<string, Record<string, unknown>>> = {
  'POST /v1/imports': {
    import: {
      name: 'a',
      type: 'event',
      identifier: 'id',
      data_file_url: 'https://files.example/a.csv',
    },
  },
  'POST /v1/accounts/{account_id}/audit_logs/export': {
    format: 'csv',
    user_id: 1,
    service_account_id: 1,
    ip_addr: '10.',
    start_time: '2026-01-01T00:00:00Z',
    end_time: '2026-02-01T00:00:00Z',
    object_type: 'account',
    object_id: '1',
    action: 'updated',
    attribute_name: 'name',
  },
  'POST /v1/service_accounts/oauth/token': {
    grant_type: 'client_credentials',
    client_secret: 'sa_sandbox_key_of_b',
    scope: 'read_only',
  },
  // Only counted: one at a time may run.
  'POST /v1/reporting_webhooks/{webhook_id}/replays': {
    since: 0,
    until: 2_000_000_000,
    event_types: ['email_sent'],
    states: ['delivered'],
    person: { id: 'ada' },
    rate_per_second: 1,
    dry_run: true,
  },
  'POST /v1/applications': { name: 'Acme' },
  'PUT /v1/applications/{application_id}': { name: 'Acme' },
  'POST /v1/applications/{application_id}/replays': { since: 0, dry_run: true },
  'PUT /v1/event_types/{name}': { description: 'An order.', schema: { type: 'object' } },
  'POST /v1/event_types/{name}/check': { payload: { total: 1 } },
  'PUT /v1/feeds/{name}': { events: ['email_sent'], full_resolution: true },
  'POST /v1/portal_links': {
    for: 'acme/jo',
    capabilities: ['create'],
    event_types: ['email_sent'],
    attribute_filters: null,
  },
  'PUT /v1/accounts/{account_id}': { account: { name: 'Acme', timezone: 'Europe/Berlin' } },
  'PUT /v1/accounts/{account_id}/environments/{environment_id}': {
    environment: { name: 'Shop', phone_identifies: true },
  },
  'POST /v1/accounts/{account_id}/address': {
    address: {
      line1: '1 Main Street',
      city: 'Springfield',
      state: 'IL',
      postal_code: '62701',
      country: 'US',
    },
  },
  'POST /v1/accounts/{account_id}/users': {
    email: 'grace@example.com',
    first_name: 'Grace',
    last_name: 'Hopper',
    role: 'member',
    environment_ids: [],
  },
  'PUT /v1/accounts/{account_id}/users/{user_id}': { role: 'billing_admin', environment_ids: [] },
  'PUT /v1/accounts/{account_id}/identity_provider': {
    issuer: 'https://login.example.com',
    client_id: 'sluice',
    client_secret: 'the secret of the client',
    email_domains: ['example.com'],
    required: false,
    counts_as_two_factors: true,
    new_user_role: 'member',
    new_user_environment_ids: [],
  },
  'POST /v1/account_signup': { email: 'new@example.com' },
  'POST /v1/account_signup/code': {
    email: 'new@example.com',
    code: '123456',
    company_name: 'New',
    first_name: 'N',
    last_name: 'N',
    data_center: 'us',
  },
  'POST /v1/account_signup/startup_application': {
    email: 'new@example.com',
    first_name: 'N',
    last_name: 'N',
    company_name: 'New',
    website: 'https://new.example',
    funding_stage: 'seed',
  },
  'POST /v1/account_signup/partner_application': { partner: { name: 'P' } },
  'PUT /v1/account_signup/partner_application/{partner_id}/status': { status: 'approved' },
  'POST /v1/accounts/{account_id}/activate_product': { product: 'journeys' },
  'POST /v1/accounts/{account_id}/billing/inbox_previews/runs': {
    preview_job_id: 'job',
    environment_id: 1,
    user_id: null,
    quantity: 1,
  },
  'POST /v1/accounts/{account_id}/billing/inbox_previews/runs/{preview_job_id}/refund': {
    quantity: 1,
  },
  'POST /v1/accounts/{account_id}/api_credentials': {
    name: 'Reports',
    type: 'service_account',
    scopes: [],
    ip_allowlist: ['10.0.0.0/8'],
  },
};

/** By path, the query without which the operation refuses the call. */
export const QUERIES: Readonly<Record<string, string>> = {
  '/v1/customers': 'email=a@example.com',
  '/v1/statistics': 'metric=events',
};

/** Path parameters that name an action and not an object: they are the same for everybody. */
export const WORDS_IN_PATHS: Readonly<Record<string, string>> = {
  action: 'enable',
  credit_type: 'llm',
  plan_id: 'premium_month',
};

/** True if the operation makes an object with the path's name. Two tenants may use the same name. */
export const isNamedByCaller = ({ method, path }: Pick<Operation, 'method' | 'path'>): boolean =>
  method === 'PUT' && path.endsWith('/{name}');
