/** `sluice move`, at a real fleet: endpoints come over with the secrets that their receivers know, once. */
import { createHmac } from 'node:crypto';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { startFleet, WAIT, type Fleet } from '../fleet-under-test.ts';
import { runSluice } from '../program-under-test.ts';

let fleet: Fleet;
beforeAll(async () => void (fleet = await startFleet()));
afterAll(() => fleet.close());

const SECRET = `whsec_${Buffer.from('what the receiver has known for long').toString('base64')}`;
const TOKEN = 'token-of-the-other';

interface Source {
  readonly url: string;
  /** The paths that were asked for. */
  readonly asked: string[];
  close(): void;
}

/** A product that answers each path with the given body, for the token alone; the first call is one too many. */
async function startSource(answers: Readonly<Record<string, object>>): Promise<Source> {
  const asked: string[] = [];
  const server = createServer(({ url = '', headers }, response) => {
    asked.push(url);
    const isAllowed = headers.authorization === `Bearer ${TOKEN}`;
    const answer = answers[url];
    if (!isAllowed) response.writeHead(401).end('{}');
    else if (asked.length === 1) response.writeHead(429, { 'retry-after': '0' }).end('{}');
    else if (answer === undefined) response.writeHead(404).end('{}');
    else response.writeHead(200).end(JSON.stringify(answer));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { asked, url: `http://127.0.0.1:${port}`, close: () => void server.close() };
}

interface Arrival {
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

async function startReceiver() {
  const arrivals: Arrival[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      arrivals.push({ headers: request.headers, body });
      response.end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { arrivals, url: `http://127.0.0.1:${port}/hook`, close: () => void server.close() };
}

const sluice = (...words: string[]) => runSluice(fleet, words);

async function get(path: string): Promise<Record<string, object[]>> {
  const answer = await fetch(`${fleet.api.url}${path}`, {
    headers: { authorization: `Bearer ${DEMO.appKey}` },
  });
  return (await answer.json()) as Record<string, object[]>;
}

async function publish(message: object): Promise<void> {
  const answer = await fetch(`${fleet.intake.url}/v1/publish`, {
    method: 'POST',
    headers: { authorization: `Basic ${btoa(`${DEMO.siteId}:${DEMO.apiKey}`)}` },
    body: JSON.stringify(message),
  });
  expect(answer.status, await answer.text()).toBe(200);
}

const rowsOf = (output: string) => JSON.parse(output) as Record<string, unknown>[];

test('endpoints of Svix are moved page by page, once, and their receivers verify the deliveries of Sluice', async () => {
  const receiver = await startReceiver();
  const app = '/api/v1/app';
  const endpoints = `${app}/app_1/endpoint`;
  const source = await startSource({
    [`${app}?limit=100`]: {
      data: [
        { id: 'app_1', uid: 'acme', name: 'Acme' },
        { id: 'app_2', uid: 'without-endpoints', name: 'Without endpoints' },
      ],
      done: false,
      iterator: 'app_1',
    },
    [`${app}?limit=100&iterator=app_1`]: { data: [], done: true, iterator: null },
    [`${endpoints}?limit=100`]: {
      data: [
        {
          id: 'ep_1',
          url: receiver.url,
          // The API keeps a name without them, and the second run must know it again.
          description: ' Orders ',
          filterTypes: ['order.paid'],
          channels: ['eu'],
          rateLimit: 50,
          disabled: false,
        },
      ],
      done: false,
      iterator: 'ep_1',
    },
    [`${endpoints}?limit=100&iterator=ep_1`]: {
      data: [{ id: 'ep_2', url: 'https://acme.example/off', description: '', disabled: true }],
      done: true,
      iterator: null,
    },
    [`${app}/app_2/endpoint?limit=100`]: { data: [], done: true, iterator: null },
    [`${endpoints}/ep_1/secret`]: { key: SECRET },
    [`${endpoints}/ep_1/headers`]: { headers: { 'x-team': 'shop' }, sensitive: ['authorization'] },
    [`${endpoints}/ep_2/secret`]: { key: SECRET },
    [`${endpoints}/ep_2/headers`]: { headers: {}, sensitive: [] },
  });
  const move = (...more: string[]) =>
    sluice('--json', 'move', 'svix', '--from', source.url, '--from-token', TOKEN, ...more);

  const dry = await move('--dry-run');
  expect(rowsOf(dry.output).map(({ result }) => result)).toEqual(
    Array.from({ length: 4 }, () => 'would be moved'),
  );
  expect((await get('/v1/applications'))['applications']).toEqual([]);

  const moved = await move();
  expect(moved.exitCode, moved.errors).toBe(0);
  expect(rowsOf(moved.output)).toMatchObject([
    { application: 'acme', name: 'Acme', endpoint: '', result: 'moved', by_hand: '' },
    { application: 'acme', name: 'Orders', result: 'moved', by_hand: 'header authorization' },
    { application: 'acme', name: 'https://acme.example/off', result: 'moved', by_hand: '' },
    { application: 'without-endpoints', name: 'Without endpoints', result: 'moved' },
  ]);
  // Otherwise a message to it would go to the workspace's own webhooks.
  expect((await get('/v1/applications'))['applications']).toMatchObject([
    { id: 'acme' },
    { id: 'without-endpoints', name: 'Without endpoints' },
  ]);
  expect(moved.output + moved.errors).not.toContain(SECRET);
  const { endpoints: there = [] } = await get('/v1/applications/acme/endpoints');
  expect(there).toMatchObject([
    {
      event_names: ['order.paid'],
      attribute_filters: [{ field: 'data.channel', operator: 'in', values: ['eu'] }],
      rate_limit_per_second: 50,
      signing: 'standard_webhooks',
      disabled: false,
      headers: { 'x-team': expect.any(String) },
    },
    { disabled: true },
  ]);

  await publish({
    application: 'acme',
    event_type: 'order.paid',
    channel: 'eu',
    payload: { a: 1 },
  });
  await vi.waitFor(() => expect(receiver.arrivals).toHaveLength(1), WAIT);
  const [{ headers, body } = { headers: {}, body: '' }] = receiver.arrivals;
  expect(headers['x-team']).toBe('shop');
  // As the libraries of Standard Webhooks do with a secret of this form.
  const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`;
  const key = Buffer.from(SECRET.slice('whsec_'.length), 'base64');
  const signature = createHmac('sha256', key).update(signed).digest('base64');
  expect(headers['webhook-signature']).toBe(`v1,${signature}`);

  // Again: it makes no duplicates, and changes no secret.
  const again = await move();
  expect(rowsOf(again.output).map(({ result }) => result)).toEqual(
    Array.from({ length: 4 }, () => 'there already'),
  );
  expect((await get('/v1/applications/acme/endpoints'))['endpoints']).toHaveLength(2);
  source.close();
  receiver.close();
});

test('endpoints of Convoy are moved by their owners, and the output names the settings to make by hand', async () => {
  const project = '/api/v1/projects/p_1';
  const page = (content: object[]) => ({ data: { content, pagination: { has_next_page: false } } });
  const list = 'perPage=100&direction=next';
  const source = await startSource({
    [`${project}/endpoints?${list}`]: {
      data: {
        content: [
          {
            uid: 'e_1',
            name: 'Billing',
            url: 'https://convoy.example/hook',
            owner_id: 'beta',
            status: 'active',
            rate_limit: 300,
            rate_limit_duration: 60,
            secrets: [
              { value: 'an-older-secret', expires_at: '2026-01-01T00:00:00Z' },
              { value: 'secret-of-convoy-for-its-receiver', expires_at: null },
            ],
            authentication: {
              type: 'oauth2',
              oauth2: {
                url: 'https://login.example/token',
                client_id: 'c',
                client_secret: 'secret-of-the-client',
                authentication_type: 'shared_secret',
              },
            },
          },
        ],
        pagination: { has_next_page: true, next_page_cursor: 'e_1' },
      },
    },
    [`${project}/endpoints?${list}&next_page_cursor=e_1`]: page([
      {
        uid: 'e_2',
        name: 'No owner',
        url: 'http://169.254.169.254/hook',
        status: 'paused',
        secrets: [],
        authentication: { type: 'oauth2', oauth2: {} },
        mtls_client_cert: { client_cert: 'PEM', client_key: '[REDACTED]' },
      },
    ]),
    [`${project}/subscriptions?endpointId=e_1&${list}`]: page([
      {
        filter_config: { event_types: ['invoice.paid'], filter: { body: { total: { $gte: 5 } } } },
      },
    ]),
    [`${project}/subscriptions?endpointId=e_2&${list}`]: page([
      { filter_config: { event_types: ['*'], filter: { body: {}, headers: {} } } },
    ]),
  });
  const moved = await sluice(
    ...[
      '--json',
      'move',
      'convoy',
      '--from',
      source.url,
      '--from-token',
      TOKEN,
      '--project',
      'p_1',
    ],
  );
  // The second has an address that is never sent to.
  expect(moved.exitCode, moved.errors).toBe(1);
  expect(rowsOf(moved.output)).toMatchObject([
    { application: 'beta', result: 'moved', by_hand: '' },
    {
      application: 'e_2',
      result: expect.stringMatching(/^refused: /),
      by_hand: 'authentication oauth2; client certificate: its private key is not shown; secret',
    },
  ]);
  const { endpoints: there = [] } = await get('/v1/applications/beta/endpoints');
  expect(there).toMatchObject([
    {
      event_names: ['invoice.paid'],
      attribute_filters: [{ field: 'data.payload.total', operator: 'gte', values: ['5'] }],
      oauth2: { token_url: 'https://login.example/token', client_authentication: 'body' },
      rate_limit_per_second: 5,
    },
  ]);
  const [endpoint] = there as { id: number }[];
  const { secrets } = await get(`/v1/reporting_webhooks/${endpoint?.id}/secrets`);
  expect(secrets).toMatchObject([{ role: 'current', hint: expect.stringMatching(/ver$/) }]);
  source.close();
});

test('a token that the other product refuses, and a missing token, end the move with the reason', async () => {
  const source = await startSource({});
  const move = (...more: string[]) => sluice('move', 'svix', '--from', source.url, ...more);
  expect(await move('--from-token', 'wrong')).toMatchObject({
    exitCode: 4,
    errors: expect.stringContaining('refuses the token with 401'),
  });
  expect(await move()).toMatchObject({
    exitCode: 2,
    errors: expect.stringContaining('SVIX_TOKEN'),
  });
  source.close();
});
