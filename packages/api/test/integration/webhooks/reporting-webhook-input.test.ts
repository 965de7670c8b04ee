import { LISTABLE_EVENT_TYPES } from '@sluice/domain/delivery/reporting-event';
import { sql } from 'kysely';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startApi, type ApiUnderTest } from '../support/api-under-test.ts';

let api: ApiUnderTest;
beforeAll(async () => {
  api = await startApi();
});
afterAll(() => api.close());
beforeEach(async () => {
  await sql`delete from webhooks`.execute(api.database);
});

const PATH = '/v1/reporting_webhooks';
/** Each type twice: the list is a set, and some write a name again. */
const EVENT_COUNT_MAX = 2 * LISTABLE_EVENT_TYPES.length;
const CONFIGURATION = {
  name: 'Orders',
  endpoint: 'https://example.com/in?a=1',
  events: ['customer_subscribed'],
};

test.each([
  ['no name', { name: undefined }, 'name', 'required', 'name is required'],
  ['an empty name', { name: '' }, 'name', 'invalid', 'name must not be empty'],
  ['a blank name', { name: '  \t' }, 'name', 'invalid', 'name must not be empty'],
  [
    'a long name',
    { name: 'x'.repeat(201) },
    'name',
    'too_long',
    'name must be at most 200 characters long',
  ],
  ['a name that is a number', { name: 3 }, 'name', 'invalid', 'name must be a string'],
  [
    'a name with NUL',
    { name: 'a\0b' },
    'name',
    'invalid',
    'name must not hold NUL or unpaired surrogate characters',
  ],
  [
    'a name with half a character',
    { name: 'a\ud800' },
    'name',
    'invalid',
    'name must not hold NUL or unpaired surrogate characters',
  ],
  ['no endpoint', { endpoint: undefined }, 'endpoint', 'required', 'endpoint is required'],
  [
    'a relative endpoint',
    { endpoint: '/in' },
    'endpoint',
    'invalid',
    'endpoint must be an http or https URL',
  ],
  [
    'an ftp endpoint',
    { endpoint: 'ftp://example.com' },
    'endpoint',
    'invalid',
    'endpoint must be an http or https URL',
  ],
  [
    'a script endpoint',
    { endpoint: 'javascript:alert(1)' },
    'endpoint',
    'invalid',
    'endpoint must be an http or https URL',
  ],
  [
    'an endpoint without a host',
    { endpoint: 'https://' },
    'endpoint',
    'invalid',
    'endpoint must be an http or https URL',
  ],
  [
    'an endpoint with blanks',
    { endpoint: ' https://example.com' },
    'endpoint',
    'invalid',
    'endpoint must not begin or end with a blank',
  ],
  [
    'an endpoint with a line break',
    { endpoint: 'https://exa\nmple.com' },
    'endpoint',
    'invalid',
    'endpoint must not hold blanks, line breaks or control characters; a blank is written %20',
  ],
  [
    'an endpoint with a backslash',
    { endpoint: 'https://a.example\\@b.example' },
    'endpoint',
    'invalid',
    'endpoint must not hold a backslash',
  ],
  [
    'an endpoint with a user',
    { endpoint: 'https://me@example.com' },
    'endpoint',
    'invalid',
    'endpoint must not hold a user name or password',
  ],
  [
    'an endpoint with a password',
    { endpoint: 'https://:x@example.com' },
    'endpoint',
    'invalid',
    'endpoint must not hold a user name or password',
  ],
  ...(
    [
      ['http://127.0.0.1:0/ok', 'must not have port 0, at which no server can listen'],
      ['https://example.com:99999/', 'must have a port from 1 to 65535, not 99999'],
      ['http://example..com/ok', 'must not have the host example..com, which has an empty part'],
      ['http://.example.com/', 'must not have the host .example.com, which has an empty part'],
      ['http://example.com../', 'must not have the host example.com.., which has an empty part'],
      [
        `http://${'a'.repeat(64)}.com/`,
        'must have a host of at most 253 characters, and 63 between dots',
      ],
      ...[
        ['http://0.0.0.0:9000/ok', '0.0.0.0', 'this_network'],
        ['http://0/', '0.0.0.0', 'this_network'],
        ['http://169.254.169.254/x', '169.254.169.254', 'metadata'],
        ['http://0xA9FEA9FE/', '169.254.169.254', 'metadata'],
        ['http://[64:ff9b::a9fe:a9fe]/', '64:ff9b::a9fe:a9fe', 'metadata'],
        ['http://[::ffff:169.254.169.254]/', '::ffff:a9fe:a9fe', 'metadata'],
        ['http://224.0.0.1/', '224.0.0.1', 'multicast'],
        ['http://[ff02::1]/', 'ff02::1', 'multicast'],
        ['http://255.255.255.255/', '255.255.255.255', 'reserved'],
        ['http://[::]/', '::', 'this_network'],
        ['http://[4000::1]/', '4000::1', 'reserved'],
      ].map(([endpoint = '', host, kind]) => [
        endpoint,
        `must not have the host ${host}, an address that is never sent to (${kind})`,
      ]),
      [
        'http://127.0.0.1:9000/ok?a=b c',
        'must not hold blanks, line breaks or control characters; a blank is written %20',
      ],
      [' http://127.0.0.1:9000/ok ', 'must not begin or end with a blank'],
      [
        'http://1.2.3.4.5/',
        'must be an http or https URL, and its host is neither a name nor an address',
      ],
    ] as [string, string][]
  ).map(([endpoint, why]): [string, object, string, string, string] => [
    `an endpoint that can never be reached, ${endpoint.slice(0, 40)}`,
    { endpoint },
    'endpoint',
    'invalid',
    `endpoint ${why}`,
  ]),
  [
    'a long endpoint',
    { endpoint: `https://example.com/${'x'.repeat(2048)}` },
    'endpoint',
    'too_long',
    'endpoint must be at most 2048 characters long',
  ],
  [
    'an endpoint that is a list',
    { endpoint: ['https://example.com'] },
    'endpoint',
    'invalid',
    'endpoint must be a string',
  ],
  ['no events', { events: undefined }, 'events', 'required', 'events is required'],
  [
    'an empty list of events',
    { events: [] },
    'events',
    'invalid',
    'events must hold at least 1 entry',
  ],
  [
    'an event instead of a list',
    { events: 'customer_subscribed' },
    'events',
    'invalid',
    'events must be an array',
  ],
  [
    'an unknown event',
    { events: ['customer_subscribed', 'email_exploded'] },
    'events.1',
    'unsupported',
    'events.1 is not an event type: "email_exploded"',
  ],
  ['an event that is null', { events: [null] }, 'events.0', 'invalid', 'events.0 must be a string'],
  [
    'too many events',
    { events: Array.from({ length: EVENT_COUNT_MAX + 1 }, () => 'email_sent') },
    'events',
    'too_large',
    `events must hold at most ${EVENT_COUNT_MAX} entries`,
  ],
  ['disabled as text', { disabled: 'true' }, 'disabled', 'invalid', 'disabled must be a boolean'],
  ['disabled as null', { disabled: null }, 'disabled', 'invalid', 'disabled must be a boolean'],
  [
    'full_resolution as a number',
    { full_resolution: 1 },
    'full_resolution',
    'invalid',
    'full_resolution must be a boolean',
  ],
  [
    'with_content as a list',
    { with_content: [] },
    'with_content',
    'invalid',
    'with_content must be a boolean',
  ],
])(
  'refuses %s with 400 and the name of the field, and stores no webhook',
  async (_name, change, field, reason, message) => {
    const answer = await api.call('POST', PATH, { body: { ...CONFIGURATION, ...change } });
    const { errors } = expectProblem(answer, 400, 'invalid_request');
    expect(errors).toMatchObject([
      { field, reason, message, source: { pointer: `/${field.replace('.', '/')}` } },
    ]);
    expect((await api.call('GET', PATH)).json()).toEqual({ reporting_webhooks: [] });
  },
);

test('names every mistake at once', async () => {
  const answer = await api.call('POST', PATH, { body: { events: ['x', 'y'] } });
  const { errors } = expectProblem(answer, 400, 'invalid_request');
  expect(errors.map((error) => error.field)).toEqual(['name', 'endpoint', 'events.0', 'events.1']);
});

test.each([
  'http://127.0.0.1:9000/ok',
  'http://10.0.0.1/',
  'http://169.254.7.7/',
  'http://[::1]:8080/',
  'http://[fd12::1]/',
  'http://[64:ff9b::a00:1]/',
  'http://192.0.2.1/',
  'http://localhost/',
  'https://example.com./in',
  'https://bücher.example/in?a=b%20c',
])('an endpoint that only the settings of workers restrict is accepted: %s', async (endpoint) => {
  const body = { name: 'a', endpoint, events: ['email_sent'] };
  expect((await api.call('POST', '/v1/reporting_webhooks', { body })).statusCode).toBe(200);
});
