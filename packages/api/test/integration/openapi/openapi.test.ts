/** The description of the interface is whole: every operation, event type, name and reference. */
import { SELECTABLE_EVENT_TYPES } from '@sluice/domain/delivery/reporting-event';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { sampleBody } from '../../../src/openapi/event-schemas.ts';
import { OPERATIONS } from '../../../src/openapi/operation-names.ts';
import { OPENERS } from '../support/access-table.ts';
import { serveDocument, type Document, type ServedDocument } from './served-document.ts';

let app: ServedDocument['app'];
let document: ServedDocument['document'];
let text: ServedDocument['text'];
let apiPaths: ServedDocument['apiPaths'];
beforeAll(async () => {
  ({ app, document, text, apiPaths } = await serveDocument());
});
afterAll(() => app.close());

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

  test('has every call that a key or a token opens', () => {
    const missing = [...OPENERS].filter(([route, opener]) => {
      const [method = '', url = ''] = route.split(' ');
      // A key gets as far as these of the portal's own page, and is refused.
      if (['anybody', 'page', 'session'].includes(opener) || url === '/portal/session')
        return false;
      return !apiPaths[url.replaceAll(/:(\w+)/g, '{$1}')]?.[method.toLowerCase()];
    });
    expect(missing).toEqual([]);
  });

  test('describes each event type as a webhook', () => {
    expect(Object.keys(document.webhooks)).toEqual(SELECTABLE_EVENT_TYPES);
    const ajv = new Ajv2020({ strict: false });
    ajv.addSchema(document, 'openapi');
    for (const type of SELECTABLE_EVENT_TYPES) {
      const pointer = `openapi#/webhooks/${type}/post/requestBody/content/application~1json/schema`;
      const fits = ajv.compile({ $ref: pointer });
      const sample = JSON.parse(sampleBody(type, '01J0000000000000000000SAMP', 0)) as object;
      expect({ type, fits: fits(sample), errors: fits.errors }).toMatchObject({ fits: true });
      for (const member of ['event_id', 'object_type', 'metric', 'timestamp', 'data']) {
        const { [member]: _, ...others } = sample as Record<string, unknown>;
        expect({ type, member, fits: fits(others) }).toEqual({ type, member, fits: false });
      }
    }
    const clicked = JSON.stringify(document.webhooks['email_clicked']);
    expect(clicked).toContain('"href":{"type":"string"}');
    expect(clicked).toContain('"$ref":"#/components/schemas/MessageData"');
  });

  test('every reference leads somewhere, and no schema is left over', () => {
    const pointedAt = new Set(
      [...text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map((match) => match[1]),
    );
    expect(pointedAt).toEqual(new Set(Object.keys(document.components.schemas)));
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
      for (const { responses } of Object.values(methods)) expect(responses).toHaveProperty('400');
    for (const methods of Object.values(document.paths))
      for (const { responses } of Object.values(methods))
        expect(responses).toMatchObject({ 429: {}, 431: {} });
  });
});
