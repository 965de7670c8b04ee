/** Options of a webhook's requests: stored values, shown parts, and refusals by name. */
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

const PATH = '/v1/reporting_webhooks';
const CONFIGURATION = { name: 'a', endpoint: 'https://example.com', events: ['email_sent'] };
const OPTIONS = {
  standard_webhooks: true,
  rate_limit_per_second: 50,
  window_max: 3,
  ordering: 'strict',
  headers: { authorization: 'Bearer abc', 'x-tenant': 'one two' },
  attribute_filters: [
    { field: 'data.campaign_id', operator: 'eq', values: ['7', '8'] },
    { field: 'data.machine', operator: 'not_exists' },
  ],
};
let api: ApiUnderTest;

beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());

const make = async (options: object) =>
  (await api.call('POST', PATH, { body: { ...CONFIGURATION, ...options } })).json();

test('all of them are kept when a webhook is made, and taken back one by one', async () => {
  const made = await make(OPTIONS);
  expect(made).toMatchObject({
    ...OPTIONS,
    headers: { authorization: '••••', 'x-tenant': '••••' },
  });
  expect((await api.call('GET', PATH)).json().reporting_webhooks).toContainEqual(made);
  for (const [change, shown] of [
    [{ rate_limit_per_second: null }, { rate_limit_per_second: null }],
    [{ window_max: null }, { window_max: null }],
    [{ ordering: 'person' }, { ordering: 'person' }],
    [{ headers: {} }, { headers: {} }],
    [{ attribute_filters: [] }, { attribute_filters: null }],
  ]) {
    const before = (await api.call('GET', `${PATH}/${made.id}`)).json();
    const changed = await api.call('PUT', `${PATH}/${made.id}`, { body: change });
    expect(changed.json()).toEqual({ ...before, ...shown });
  }
});

test('a configuration that is read can be written back as it is, without its headers, which stay', async () => {
  const made = await make(OPTIONS);
  const before = await storedHeaders(made.id);
  const { headers: _, ...others } = made;
  expect((await api.call('PUT', `${PATH}/${made.id}`, { body: others })).json()).toEqual(made);
  expect(await storedHeaders(made.id)).toBe(before);
});

// Security: a reader of a webhook, or of its audit log, may be another person than the one who gave the receiver's
// token.
test('a header shows only the end of its value, also in the audit log, and the hint is refused as a value', async () => {
  const headers = { authorization: 'Bearer 9f86d081884c7d65', 'x-short': 'open sesame' };
  const hints = { authorization: '••••7d65', 'x-short': '••••' };
  const made = await make({ headers });
  expect(made.headers).toEqual(hints);
  const path = `${PATH}/${made.id}`;
  const changed = await api.call('PUT', path, {
    body: { headers: { authorization: 'Bearer 0000000000007d65' } },
  });
  await api.call('PUT', path, { body: { headers: {} } });
  await api.call('DELETE', path);
  const { rows } = await sql<{ text: string }>`
    select audit_logs::text as text from audit_logs where account_id = ${api.a.accountId} and object_type = 'reporting_webhook'
       and object_id = ${String(made.id)} order by audit_log_id`.execute(api.database);
  const shown = [changed.body, ...rows.map(({ text }) => text)].join('\n');
  for (const secret of ['Bearer 9f86', 'Bearer 0000', 'sesame'])
    expect(shown).not.toContain(secret);
  // A value with the same end is a change all the same.
  expect(rows).toHaveLength(4);
  expect(rows[0]?.text).toContain('••••7d65');

  const other = await make({ headers });
  const before = await storedHeaders(other.id);
  for (const value of ['••••7d65', '••••']) {
    const refused = await api.call('PUT', `${PATH}/${other.id}`, {
      body: { headers: { authorization: value } },
    });
    expectProblem(refused, 400, 'invalid_request');
    expect(refused.json()).toMatchObject({
      message: expect.stringContaining('is the hint'),
      errors: [{ field: 'headers.authorization' }],
    });
  }
  expect(await storedHeaders(other.id)).toBe(before);
});

test('names of headers are kept in lower case, numbers in filters as text', async () => {
  const made = await make({
    headers: { 'X-API-Key': 'K' },
    attribute_filters: [{ field: 'data.campaign_id', operator: 'eq', values: [7, true, 'x'] }],
  });
  expect(Object.keys(made.headers)).toEqual(['x-api-key']);
  expect(made.attribute_filters[0].values).toEqual(['7', 'true', 'x']);
});

test('a number past 2^53 is refused with the advice to send a text, which is kept as it is', async () => {
  const filtersOf = (value: unknown) => ({
    attribute_filters: [{ field: 'data.customer_id', operator: 'eq', values: [value] }],
  });
  const refused = await api.call('POST', PATH, {
    body: { ...CONFIGURATION, ...filtersOf(Number('12345678901234567890')) },
  });
  expectProblem(refused, 400, 'invalid_request');
  expect(refused.json().message).toContain('must be sent as text');
  const made = await make(filtersOf('12345678901234567890'));
  expect(made.attribute_filters[0].values).toEqual(['12345678901234567890']);
  expect((await make(filtersOf(2 ** 53 - 1))).attribute_filters[0].values).toEqual([
    '9007199254740991',
  ]);
});

test.each([
  [null, 'must be a string, a number or a boolean'],
  [{}, 'must be a string, a number or a boolean'],
  ['x'.repeat(5_000), /must be at most \d+ characters long/],
])('an invalid value of a filter is refused with the rule: %j', async (value, message) => {
  const attribute_filters = [{ field: 'data.campaign_id', operator: 'eq', values: [value] }];
  const refused = await api.call('POST', PATH, { body: { ...CONFIGURATION, attribute_filters } });
  expectProblem(refused, 400, 'invalid_request');
  expect(refused.json().message).toMatch(message);
});

test('every operator is accepted under the name that segments use', async () => {
  const attribute_filters = [
    ...['in', 'not_in', 'contains', 'not_contains'].map((operator) => ({
      field: 'data.recipients.device_id',
      operator,
      values: ['a', 'b'],
    })),
    ...['gt', 'gte', 'lt', 'lte'].map((operator) => ({
      field: 'data.campaign_id',
      operator,
      values: ['7.5'],
    })),
  ];
  expect((await make({ attribute_filters })).attribute_filters).toEqual(attribute_filters);
});

// Security: who may change a webhook would read them at a server of their own.
test('stored headers go to no other server than the one that they were given for', async () => {
  const { id } = await make({ headers: { authorization: 'Bearer 9f86d081884c7d65' } });
  const path = `${PATH}/${id}`;
  const change = (body: object) => api.call('PUT', path, { body });
  for (const endpoint of [
    'https://evil.example',
    'http://example.com',
    'https://example.com:8443',
    'https://example.com.evil.example/',
    'https://example.com@evil.example/',
  ]) {
    const answer = await change({ endpoint });
    expect(answer.statusCode, endpoint).toBe(400);
    expect((await api.call('GET', path)).json().endpoint).toBe(CONFIGURATION.endpoint);
  }
  const refused = await change({ endpoint: 'https://evil.example', name: 'b' });
  expectProblem(refused, 400, 'invalid_request');
  expect(refused.json().errors).toMatchObject([{ field: 'headers' }]);
  const moved = await change({ endpoint: 'https://EXAMPLE.com/elsewhere' });
  expect(moved.json()).toMatchObject({ name: 'a', headers: { authorization: '••••7d65' } });
  const headers = {
    authorization: `Basic ${btoa('ada:a long password')}`,
    'x-key': 'Bearer short',
  };
  const other = await change({ endpoint: 'https://other.example', headers });
  expect(other.json().headers).toEqual({ authorization: '••••', 'x-key': '••••' });
  expect((await change({ endpoint: 'https://third.example', headers: {} })).statusCode).toBe(200);
  expect((await change({ endpoint: 'https://fourth.example' })).statusCode).toBe(200);
});

const storedHeaders = async (webhookId: number): Promise<string | undefined> => {
  const { rows } = await sql<{ headers: string }>`
    select custom_headers as headers from webhooks
     where environment_id = ${api.a.environmentId} and webhook_id = ${webhookId}`.execute(
    api.database,
  );
  return rows[0]?.headers;
};

// Security: a header may hold a receiver's token.
test('headers are stored encrypted', async () => {
  const { id } = await make({ headers: { authorization: 'Bearer very-secret' } });
  const { rows } = await sql<{ row: string }>`
    select webhooks::text as row from webhooks where webhook_id = ${id}`.execute(api.database);
  expect(rows[0]?.row).toContain('sealed:test:');
  expect(rows[0]?.row).not.toContain('very-secret');
});

describe('refused with the field named', () => {
  test.each<[string, object]>([
    ['rate_limit_per_second', { rate_limit_per_second: 0 }],
    ['rate_limit_per_second', { rate_limit_per_second: 1.5 }],
    ['rate_limit_per_second', { rate_limit_per_second: 10_001 }],
    ['window_max', { window_max: 0 }],
    ['window_max', { window_max: 1_001 }],
    ['standard_webhooks', { standard_webhooks: 'yes' }],
    ['ordering', { ordering: 'none' }],
    ['ordering', { ordering: null }],
    ['headers', { headers: ['x'] }],
    ['headers.x', { headers: { x: 1 } }],
    ['headers.x', { headers: { x: '' } }],
    ['headers.x', { headers: { x: ' padded ' } }],
    ['headers.x', { headers: { x: 'é' } }],
    ['headers.x', { headers: { x: 'a'.repeat(2_001) } }],
    ['headers.x y', { headers: { 'x y': 'a' } }],
    ['headers.X', { headers: { x: 'a', X: 'b' } }],
    [
      'headers',
      { headers: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`h${n}`, 'v'])) },
    ],
    [
      'headers',
      {
        headers: Object.fromEntries(
          Array.from({ length: 5 }, (_, n) => [`h${n}`, 'v'.repeat(1_990)]),
        ),
      },
    ],
    // A body with a key of this name is JSON like any other; written as text, for a literal would set a prototype.
    ['headers.__proto__', { headers: JSON.parse('{"__proto__":"a"}') }],
    ['headers.__proto__', { headers: JSON.parse('{"x":"a","__proto__":{"y":"b"}}') }],
    ...(['eq', 'not_eq', 'in', 'contains', 'gt'] as const).map((operator): [string, object] => [
      'attribute_filters.0.values.0',
      { attribute_filters: [{ field: 'a', operator, values: [Number('12345678901234567890')] }] },
    ]),
    [
      'attribute_filters.0.values.0',
      { attribute_filters: [{ field: 'a', operator: 'eq', values: [-(2 ** 53)] }] },
    ],
    ...[['x'], ['1', '2'], [true], [''], ['1 '], ['0x1']].map((values): [string, object] => [
      'attribute_filters.0.values',
      { attribute_filters: [{ field: 'a', operator: 'gt', values }] },
    ]),
    ['attribute_filters.0.values', { attribute_filters: [{ field: 'a', operator: 'lte' }] }],
    [
      'attribute_filters.0.values',
      {
        attribute_filters: [
          {
            field: 'a',
            operator: 'in',
            values: Array.from({ length: 33 }, () => 'x'.repeat(1_000)),
          },
        ],
      },
    ],
    ['attribute_filters', { attribute_filters: {} }],
    ['attribute_filters.0.field', { attribute_filters: [{ operator: 'exists' }] }],
    ['attribute_filters.0.field', { attribute_filters: [{ field: '', operator: 'exists' }] }],
    ['attribute_filters.0.operator', { attribute_filters: [{ field: 'a', operator: 'like' }] }],
    ['attribute_filters.0.values', { attribute_filters: [{ field: 'a', operator: 'eq' }] }],
    [
      'attribute_filters.0.values',
      { attribute_filters: [{ field: 'a', operator: 'exists', values: ['x'] }] },
    ],
    [
      'attribute_filters.0.values',
      { attribute_filters: [{ field: 'a', operator: 'eq', values: [] }] },
    ],
    [
      'attribute_filters.0.values.1',
      { attribute_filters: [{ field: 'a', operator: 'eq', values: ['x', {}] }] },
    ],
  ])('%s: %j', async (field, options) => {
    const answer = await api.call('POST', PATH, { body: { ...CONFIGURATION, ...options } });
    expectProblem(answer, 400, 'invalid_request');
    expect(answer.json().errors.map((error: { field: string }) => error.field)).toContain(field);
  });

  test('a filter that takes no values accepts an empty list', async () => {
    const filters = [{ field: 'data.a', operator: 'exists', values: [] }];
    const answer = await api.call('POST', PATH, {
      body: { ...CONFIGURATION, attribute_filters: filters },
    });
    expect(answer.json()).toMatchObject({ attribute_filters: [{ operator: 'exists' }] });
  });

  // Security: a line break in a header would be another header, or another request.
  test.each(['a\r\nx-svc-signature: b', 'a\nb', 'a\rb', 'a\0b', 'a\u0085b'])(
    'a header with %j in it',
    async (value) => {
      const options = { headers: { 'x-note': value } };
      const answer = await api.call('POST', PATH, { body: { ...CONFIGURATION, ...options } });
      expectProblem(answer, 400, 'invalid_request');
      expect(answer.json().errors[0].field).toBe('headers.x-note');
    },
  );

  test.each([
    'X-SVC-Signature',
    'x-svc-anything',
    'x-cio-signature',
    'Webhook-Id',
    'content-type',
    'Content-Length',
    'transfer-encoding',
    'host',
    'Connection',
    'expect',
    'proxy-authorization',
    'user-agent',
  ])('the reserved header %s', async (name) => {
    const answer = await api.call('POST', PATH, {
      body: { ...CONFIGURATION, headers: { [name]: 'x' } },
    });
    expectProblem(answer, 400, 'invalid_request');
    expect(answer.json().errors[0].field).toBe(`headers.${name}`);
  });
});
