import {
  LISTABLE_EVENT_TYPES,
  SELECTABLE_EVENT_TYPES,
} from '@sluice/domain/delivery/reporting-event';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OPERATIONS } from '../../../src/openapi/operation-names.ts';
import { renderReferencePage } from '../../../src/openapi/reference-page.ts';
import type { ApiServer } from '../../../src/http/api-server.ts';
import { OPENERS } from '../support/access-table.ts';
import { startApi } from '../support/api-under-test.ts';

interface Document {
  readonly openapi: string;
  readonly info: { readonly version: string };
  readonly security: unknown;
  readonly paths: Record<string, Record<string, Record<string, unknown>>>;
  readonly webhooks: Record<string, { readonly post: { readonly requestBody: object } }>;
  readonly tags: readonly { readonly name: string }[];
  readonly components: { readonly schemas: Record<string, Record<string, unknown>> };
}

/** With each shared answer in the place of its reference. */
function resolved(shared: Document): Document {
  const { responses } = shared.components as unknown as { responses: Record<string, object> };
  return JSON.parse(JSON.stringify(shared), (_, value: { $ref?: string } | null) => {
    const [, name = ''] = /^#\/components\/responses\/(\w+)$/.exec(value?.$ref ?? '') ?? [];
    return name === '' ? value : responses[name];
  }) as Document;
}

let app: ApiServer;
let document: Document;
let text: string;
/** Without the calls of intake, which `standalone`'s tests hold to an intake. */
let apiPaths: Document['paths'];
beforeAll(async () => {
  ({ app } = await startApi());
  const answer = await app.inject('/openapi.json');
  text = answer.body;
  document = resolved(answer.json());
  apiPaths = Object.fromEntries(
    Object.entries(document.paths).map(([path, methods]) => [
      path,
      Object.fromEntries(
        Object.entries(methods).filter(([, { servers }]) => servers === undefined),
      ),
    ]),
  );
});
afterAll(() => app.close());

/** Routes for its screens of billing and users, and for the identity provider (`docs/guides/manage/sign-in.md`). */
const OF_CONSOLE: ReadonlySet<string> = new Set([
  'GET /v1/accounts/:account_id/identity_provider',
  'PUT /v1/accounts/:account_id/identity_provider',
  'DELETE /v1/accounts/:account_id/identity_provider',
  'GET /v1/accounts/:account_id/billing/credits/offers',
  'GET /v1/accounts/:account_id/billing/runs/:run_id/payment_page',
]);
const USERS_OF_CONSOLE = /^[A-Z]+ \/v1\/accounts\/:account_id\/users(?:\/|$)/;

describe('/openapi.json', () => {
  test('is JSON', async () => {
    const answer = await app.inject('/openapi.json');
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
  });

  test('is OpenAPI 3.1 and has every operation', () => {
    expect(document.openapi).toBe('3.1.0');
    // `account-billing.md` §9.
    expect(document.info.version).toBe('1.0.0');
    const operations = Object.entries(apiPaths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(operations).toEqual(
      expect.arrayContaining([
        'DELETE /v1/reporting_webhooks/{webhook_id}',
        'DELETE /v1/reporting_webhooks/{webhook_id}/secrets/next',
        'GET /v1/account_by_environment/{environment_id}',
        'GET /v1/accounts/{account_id}',
        'GET /v1/accounts/{account_id}/audit_log/{audit_log_id}',
        'GET /v1/accounts/{account_id}/audit_logs',
        'GET /v1/accounts/{account_id}/audit_logs/exports/{export_id}',
        'GET /v1/accounts/{account_id}/audit_logs/field_options',
        'GET /v1/audit_log_exports/{link}',
        'GET /v1/customers',
        'GET /v1/customers/{identifier}/activities',
        'GET /v1/customers/{identifier}/attributes',
        'GET /v1/customers/{identifier}/relationships',
        'GET /v1/info/ip_addresses',
        'GET /v1/ingestion_issues',
        'GET /v1/object_types',
        'GET /v1/objects/{object_type_id}/{object_id}/attributes',
        'GET /v1/objects/{object_type_id}/{object_id}/relationships',
        'GET /v1/reporting_webhooks',
        'GET /v1/reporting_webhooks/{webhook_id}',
        'GET /v1/reporting_webhooks/{webhook_id}/deliveries',
        'GET /v1/reporting_webhooks/{webhook_id}/replays',
        'GET /v1/reporting_webhooks/{webhook_id}/replays/{replay_id}',
        'GET /v1/reporting_webhooks/{webhook_id}/replays/{replay_id}/attempts',
        'GET /v1/reporting_webhooks/{webhook_id}/secrets',
        'GET /v1/reporting_webhooks/{webhook_id}/state',
        'GET /v1/workspaces',
        'POST /v1/accounts/{account_id}/audit_logs/export',
        'POST /v1/objects',
        'POST /v1/reporting_webhooks',
        'POST /v1/reporting_webhooks/{webhook_id}/deliveries/{sequence}/resend',
        'POST /v1/reporting_webhooks/{webhook_id}/probe',
        'POST /v1/reporting_webhooks/{webhook_id}/replays',
        'POST /v1/reporting_webhooks/{webhook_id}/replays/{replay_id}/cancel',
        'POST /v1/reporting_webhooks/{webhook_id}/secrets',
        'POST /v1/reporting_webhooks/{webhook_id}/secrets/promote',
        'POST /v1/reporting_webhooks/{webhook_id}/skip_head',
        'POST /v1/reporting_webhooks/{webhook_id}/test',
        'POST /v1/service_accounts/oauth/token',
        'PUT /v1/reporting_webhooks/{webhook_id}',
      ]),
    );
  });

  test('describes each event type as a webhook', () => {
    expect(Object.keys(document.webhooks)).toEqual(SELECTABLE_EVENT_TYPES);
    expect(document.webhooks['email_clicked']?.post.requestBody).toMatchObject({
      content: {
        'application/json': {
          schema: {
            properties: { data: { properties: { href: { type: 'string' } } } },
            required: ['event_id', 'object_type', 'metric', 'timestamp', 'data'],
          },
        },
      },
    });
  });

  test('every reference leads somewhere, and no schema is left over', () => {
    const pointedAt = new Set(
      [...text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map((match) => match[1]),
    );
    expect(pointedAt).toEqual(new Set(Object.keys(document.components.schemas)));
  });

  test('account routes need a token of a service account', () => {
    for (const path of ['/v1/accounts/{account_id}', '/v1/account_by_environment/{environment_id}'])
      expect(document.paths[path]?.['get']?.['security']).toEqual([{ account_token: [] }]);
  });

  test('every operation needs the key and documents the 401 problem', () => {
    expect(document.security).toEqual([{ app_key: [] }]);
    for (const methods of Object.values(apiPaths)) {
      for (const operation of Object.values(methods)) {
        expect(operation['summary']).toEqual(expect.any(String));
        expect(operation['responses']).toMatchObject({
          401: {
            content: {
              'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } },
            },
          },
        });
      }
    }
  });

  test('the values of a webhook are described as they are checked', () => {
    const { properties, required } = document.components.schemas['NewReportingWebhookInput'] as {
      properties: Record<string, unknown>;
      required: string[];
    };
    expect(required.toSorted()).toEqual(['endpoint', 'events', 'name']);
    expect(properties).toMatchObject({
      endpoint: { type: 'string', format: 'uri', maxLength: 2048 },
      events: { type: 'array', minItems: 1, items: { enum: [...LISTABLE_EVENT_TYPES] } },
      disabled: { type: 'boolean', description: expect.stringMatching(/Default: `false`\.$/) },
      full_resolution: {
        type: 'boolean',
        description: expect.stringMatching(/Default: `false`\.$/),
      },
      with_content: { type: 'boolean', description: expect.stringMatching(/Default: `false`\.$/) },
    });
  });

  test('account routes name the role or scope that they need', () => {
    for (const [route, opener] of OPENERS) {
      const [method = '', url = ''] = route.split(' ');
      const path = url.replaceAll(/:(\w+)/g, '{$1}');
      const description = document.paths[path]?.[method.toLowerCase()]?.['description'];
      // The console's own interface is not in the document.
      if (opener === 'fleet:read' || OF_CONSOLE.has(route)) continue;
      if (opener === 'page' || opener === 'session' || USERS_OF_CONSOLE.test(route)) continue;
      if (opener === 'anybody' || opener === 'app_key') continue;
      expect({ route, description }).toEqual({
        route,
        description: expect.stringMatching(
          new RegExp(`Needs the (role|scope) \\W${opener}\\W.*\\.$`),
        ),
      });
    }
  });

  // Clients that check answers would refuse the fields of a later version.
  test('answers may gain fields, and a body documents whether it refuses unknown fields', () => {
    const responses = Object.values(apiPaths).flatMap((methods) =>
      Object.values(methods).map((operation) => operation['responses']),
    );
    expect(JSON.stringify(responses)).not.toContain('"additionalProperties":false');
    const { schemas } = document.components;
    expect(schemas['Account']).not.toHaveProperty('additionalProperties');
    expect(schemas['UpdateAccountRequestInput']).toMatchObject({ additionalProperties: false });
    expect(schemas['NewReportingWebhookInput']).not.toHaveProperty('additionalProperties');
  });

  test('only POST and PUT document an Idempotency-Key and its errors', () => {
    for (const [path, methods] of Object.entries(apiPaths)) {
      for (const [method, { parameters = [], responses }] of Object.entries(methods)) {
        const names = (parameters as { name: string }[]).map(({ name }) => name);
        const isTaken = ['post', 'put'].includes(method);
        expect({ method, path, isTaken: names.includes('Idempotency-Key') }).toEqual({
          method,
          path,
          isTaken,
        });
        if (isTaken)
          expect(Object.keys(responses as object)).toEqual(
            expect.arrayContaining(['400', '409', '422']),
          );
      }
    }
  });

  test('no answer is described by a placeholder', () => {
    expect(text).not.toContain('Default Response');
  });

  test('every operation has a name of its own, a known tag, and the answers of any call; no name is left over', () => {
    const all = [document.paths, document.webhooks].flatMap((paths) =>
      Object.values(paths as Document['paths']).flatMap((methods) => Object.values(methods)),
    );
    const names = all.map((operation) => operation['operationId']);
    expect(new Set(names).size).toBe(all.length);
    const routes = Object.entries(apiPaths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    expect(Object.keys(OPERATIONS).toSorted()).toEqual(routes.toSorted());
    const tags = new Set(document.tags.map(({ name }) => name));
    for (const operation of all) {
      expect(operation['operationId']).toMatch(/^[a-z][A-Za-z0-9]+$/);
      expect(tags).toContain((operation['tags'] as string[])[0]);
      expect(operation['description']).toEqual(expect.any(String));
    }
    for (const methods of Object.values(apiPaths))
      for (const { responses } of Object.values(methods))
        expect(responses).toMatchObject({ 429: {}, 431: {} });
  });

  test('a body that may be left out is not called required, and every other is', () => {
    const optional = Object.entries(apiPaths).flatMap(([path, methods]) =>
      Object.entries(methods).flatMap(([method, { requestBody }]) =>
        (requestBody as { required: boolean } | undefined)?.required === false
          ? [`${method.toUpperCase()} ${path}`]
          : [],
      ),
    );
    expect(optional.toSorted()).toEqual([
      'POST /v1/account_signup/partner_application',
      'POST /v1/accounts/{account_id}/audit_logs/export',
      'POST /v1/accounts/{account_id}/billing/inbox_previews/runs/{preview_job_id}/refund',
      'PUT /v1/account_signup/partner_application/{partner_id}/status',
    ]);
  });

  test('deleting answers 200 without a body', () => {
    const responses =
      document.paths['/v1/reporting_webhooks/{webhook_id}']?.['delete']?.['responses'];
    expect(responses).toMatchObject({ 200: { description: 'Deleted.' } });
    expect((responses as Record<string, object>)['200']).not.toHaveProperty('content');
  });

  test('an id in a path is an int32, a limit an integer with its bounds', () => {
    const operation = document.paths['/v1/reporting_webhooks/{webhook_id}/deliveries']?.['get'];
    const parameters = operation?.['parameters'] as { name: string }[];
    expect(parameters.find(({ name }) => name === 'webhook_id')).toMatchObject({
      in: 'path',
      required: true,
      schema: { type: 'integer', format: 'int32', minimum: 1 },
    });
    expect(parameters.find(({ name }) => name === 'limit')).toMatchObject({
      in: 'query',
      required: false,
      description: 'Rows a page; 50 by default.',
      schema: { type: 'integer', minimum: 1, maximum: 100 },
    });
  });
});

describe('/docs', () => {
  test('shows every operation and loads no scripts, images or other files', async () => {
    const answer = await app.inject('/docs');
    expect(answer.headers['content-type']).toBe('text/html; charset=utf-8');
    expect(answer.headers['content-security-policy']).toContain("default-src 'none'");
    for (const path of Object.keys(document.paths)) expect(answer.body).toContain(path);
    for (const type of Object.keys(document.webhooks))
      expect(answer.body).toContain(`A delivery of ${type}`);
    const withoutExamples = answer.body.replaceAll(/<pre>.*?<\/pre>/gs, '');
    expect(withoutExamples).not.toMatch(/<script|<img|<link|@import|url\(|src=|https?:\/\//i);
  });

  test('each of its links leads to a place that is there', async () => {
    const { body } = await app.inject('/docs');
    const targets = new Set([...body.matchAll(/ id="([^"]+)"/g)].map((match) => match[1]));
    const links = [...body.matchAll(/href="#([^"]+)"/g)].map((match) => match[1]);
    expect(links.length).toBeGreaterThan(13);
    for (const link of links) expect(targets).toContain(link);
  });

  test('shows the example of a body, and that it refuses other fields', async () => {
    const { body } = await app.inject('/docs');
    const section = (id: string) => body.split(`id="${id}"`)[1]?.split('<h2')[0];
    expect(section('put-v1-accounts-account-id-')).toContain('&quot;timezone&quot;: &quot;Europe');
    expect(section('schema-UpdateAccountRequestInput')).toContain('Other fields are refused.');
    expect(section('schema-NewReportingWebhookInput')).not.toContain('Other fields are refused.');
    expect(section('schema-Account')).not.toContain('Other fields are refused.');
    // A body that may be left out.
    expect(section('post-v1-accounts-account-id-audit-logs-export')).toContain('ndjson');
  });

  test('shows the bounds of numbers, texts and lists, and the fields of nullable values', () => {
    const page = renderReferencePage({
      info: { title: '', version: '' },
      paths: {},
      components: {
        schemas: {
          A: {
            properties: {
              both: { type: 'integer', minimum: 1, maximum: 100, pattern: '^\\d{1,3}$' },
              any: { type: 'integer', minimum: -9007199254740991, maximum: 9007199254740991 },
              least: { type: 'integer', minimum: 0, maximum: 9007199254740991 },
              text: { type: 'string', maxLength: 200 },
              code: { type: 'string', pattern: '^\\d{6}$' },
              day: { type: 'string', format: 'date', pattern: 'long' },
              list: {
                type: 'array',
                minItems: 1,
                maxItems: 20,
                items: { type: 'string', maxLength: 50 },
              },
              none: {
                anyOf: [
                  { type: 'object', properties: { inner: { type: 'integer', maximum: 5 } } },
                  { type: 'null' },
                ],
              },
            },
          },
        },
      },
    });
    const rows = Object.fromEntries(
      [...page.matchAll(/<tr><td><code>([\w.]+)<\/code><\/td><td>.*?<\/td><td>(.*?)<\/td>/g)].map(
        ([, name, said]) => [name, said],
      ),
    );
    expect(rows).toMatchObject({
      both: '1 to 100',
      any: '',
      least: 'at least 0',
      text: 'at most 200 characters',
      code: 'matches <code>^\\d{6}$</code>',
      day: '',
      list: '1 to 20 entries; each at most 50 characters',
      'none.inner': 'at most 5',
    });
  });

  test('texts from the document are escaped and never become HTML', () => {
    const evil = '<script>alert("1")</script>';
    const page = renderReferencePage({
      info: { title: evil, version: evil, description: evil },
      paths: {
        [`/${evil}`]: {
          get: {
            summary: evil,
            description: evil,
            parameters: [
              {
                name: evil,
                in: 'query',
                description: evil,
                schema: { type: evil, enum: [evil], default: evil, pattern: evil },
              },
            ],
            requestBody: { content: { [evil]: { schema: { examples: [evil] } } } },
            responses: {
              200: {
                description: evil,
                content: {
                  'application/json': { schema: { properties: { [evil]: { $ref: evil } } } },
                },
              },
            },
          },
        },
      },
      components: { schemas: { [evil]: { description: evil } } },
    });
    expect(page).not.toContain('<script');
    expect(page).not.toContain('"1"');
  });
});
