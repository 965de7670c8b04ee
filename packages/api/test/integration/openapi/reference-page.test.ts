/** The reference page is made from the description: every operation, link, example and bound, and no script. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { renderReferencePage } from '../../../src/openapi/reference-page.ts';
import { serveDocument, type ServedDocument } from './served-document.ts';

let app: ServedDocument['app'];
let document: ServedDocument['document'];
beforeAll(async () => {
  ({ app, document } = await serveDocument());
});
afterAll(() => app.close());

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
    // Of intake, whose examples stand beside the schemas of the bodies.
    expect(section('post-v1-identify')).toContain('&quot;userId&quot;: &quot;ada&quot;');
    expect(section('post-v1-stream')).toContain('{&quot;type&quot;:&quot;track&quot;');
    expect(section('schema-SelectableEventType')).toContain('one of <code>customer_');
    expect(section('post-v1-imports')).toContain(
      'Or <code>multipart/form-data</code>: <a href="#schema-NewImportFormInput">',
    );
    // A body that may be left out.
    expect(section('post-v1-accounts-account-id-audit-logs-export')).toContain('ndjson');
  });

  test('names the credentials of each call, and describes them', async () => {
    const { body } = await app.inject('/docs/plain');
    const section = (id: string) => body.split(`id="${id}"`)[1]?.split('<h2')[0];
    const named = (name: string) => `Credentials: <a href="#credentials">${name}</a></p>`;
    expect(section('get-v1-workspaces')).toContain(named('app_key'));
    expect(section('get-v1-accounts-account-id-')).toContain(named('account_token'));
    expect(section('post-v1-identify')).toContain(named('write_key'));
    expect(section('post-v1-account-signup')).toContain('Credentials: none');
    const ways =
      'Credentials: <a href="#credentials">write_key</a> or <a href="#credentials">site_key</a>';
    expect(section('post-v1-stream')).toContain(ways);
    for (const name of ['app_key', 'account_token', 'write_key', 'site_key'])
      expect(section('credentials')).toContain(`<code>${name}</code>`);
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
              words: { type: 'array', items: { type: 'string', enum: ['on', 'off'] } },
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
      words: 'each one of <code>on</code>, <code>off</code>',
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
            security: [{ [evil]: [] }],
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
      components: {
        schemas: { [evil]: { description: evil } },
        securitySchemes: { [evil]: { type: evil, scheme: evil, description: evil } },
      },
    });
    expect(page).not.toContain('<script');
    expect(page).not.toContain('"1"');
  });
});
