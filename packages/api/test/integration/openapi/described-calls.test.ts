/** Operations as the description has them: rights that they need, and the bodies, parameters and answers. */
import { LISTABLE_EVENT_TYPES } from '@sluice/domain/delivery/reporting-event';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { OPENERS } from '../support/access-table.ts';
import { serveDocument, type ServedDocument } from './served-document.ts';

let app: ServedDocument['app'];
let document: ServedDocument['document'];
let apiPaths: ServedDocument['apiPaths'];
beforeAll(async () => {
  ({ app, document, apiPaths } = await serveDocument());
});
afterAll(() => app.close());

describe('/openapi.json', () => {
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

  test('account routes name the role or scope that they need', () => {
    for (const [route, opener] of OPENERS) {
      const [method = '', url = ''] = route.split(' ');
      const path = url.replaceAll(/:(\w+)/g, '{$1}');
      const description = document.paths[path]?.[method.toLowerCase()]?.['description'];
      if (opener === 'page' || opener === 'session') continue;
      if (opener === 'anybody' || opener === 'app_key') continue;
      expect({ route, description }).toEqual({
        route,
        description: expect.stringMatching(
          new RegExp(`Needs the (role|scope) \\W${opener}\\W.*\\.$`),
        ),
      });
    }
  });

  test('each operation that needs a role names the lowest one', () => {
    const roles = Object.entries(apiPaths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        route: `${method.toUpperCase()} ${path.replaceAll(/\{(\w+)\}/g, ':$1')}`,
        role: operation['x-sluice-role'],
      })),
    );
    for (const { route, role } of roles) {
      const opener = OPENERS.get(route);
      // The role of a scope's token is free, and so is a call without credentials.
      if (opener === 'anybody') expect({ route, role }).toEqual({ route, role: undefined });
      else if (opener === 'app_key') expect(['member', 'account_admin']).toContain(role);
      else if (!opener?.includes(':')) expect({ route, role }).toEqual({ route, role: opener });
    }
    const roleOf = (route: string) => roles.find((each) => each.route === route)?.role;
    expect(roleOf('GET /v1/reporting_webhooks')).toBe('member');
    expect(roleOf('POST /v1/objects')).toBe('member');
    expect(roleOf('POST /v1/reporting_webhooks/:webhook_id/probe')).toBe('member');
    expect(roleOf('POST /v1/reporting_webhooks/:webhook_id/skip_head')).toBe('account_admin');
    expect(roleOf('DELETE /v1/reporting_webhooks/:webhook_id')).toBe('account_admin');
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

  test('the values of a webhook are described as they are checked', () => {
    const { properties, required } = document.components.schemas['NewReportingWebhookInput'] as {
      properties: Record<string, unknown>;
      required: string[];
    };
    const { ListableEventType: listable, SelectableEventType: selectable } =
      document.components.schemas;
    const all = { const: '*' };
    expect(listable?.['anyOf']).toEqual([
      { $ref: '#/components/schemas/SelectableEventType' },
      all,
    ]);
    expect(selectable?.['enum']).toEqual(LISTABLE_EVENT_TYPES.filter((type) => type !== '*'));
    expect(required.toSorted()).toEqual(['endpoint', 'events', 'name']);
    expect(properties).toMatchObject({
      endpoint: { type: 'string', format: 'uri', maxLength: 2048 },
      events: {
        type: 'array',
        minItems: 1,
        items: { $ref: '#/components/schemas/ListableEventType' },
      },
      disabled: { type: 'boolean', description: expect.stringMatching(/Default: `false`\.$/) },
      full_resolution: {
        type: 'boolean',
        description: expect.stringMatching(/Default: `false`\.$/),
      },
      with_content: { type: 'boolean', description: expect.stringMatching(/Default: `false`\.$/) },
    });
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
