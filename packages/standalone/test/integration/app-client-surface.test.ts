/**
 * The whole surface of customerio-node's APIClient.
 *
 * Each call that we serve has its request, the status of the answer, and the effect read back. Every other method of
 * the client must get 404, and not a body that it takes for an answer. A method that the client gains, and a route that
 * we gain, fail a test until they have a row.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DEMO } from '@sluice/database/demo/seed-demo';
import {
  APIClient,
  IdentifierType,
  SendEmailRequest,
  SendInAppRequest,
  SendInboxMessageRequest,
  SendPushRequest,
  SendSMSRequest,
  SendWhatsAppRequest,
} from 'customerio-node';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  methodsOf,
  startClientSurface,
  type ClientRow,
  type ClientSurface,
} from './client-surface.ts';
import { WAIT } from './fleet-under-test.ts';

const CSV = '_svc_name,_svc_customer_id,size\nuploaded,reader,9\nuploaded,nobody,1\n';

let surface: ClientSurface;
let files: Server;
let app: APIClient;

beforeAll(async () => {
  surface = await startClientSurface();
  app = new APIClient(DEMO.appKey, { url: `${surface.fleet.api.url}/v1` });
  files = createServer((_, response) => void response.end(CSV));
  await new Promise<void>((resolve) => files.listen(0, '127.0.0.1', resolve));
  await surface.preparePeople(['reader']);
  await surface.track.track('reader', { name: 'read', data: { page: 1 } });
  await surface.track.entity({
    type: 'object',
    action: 'identify',
    identifiers: { object_type_id: '3', object_id: 'acme' },
    attributes: { name: 'Acme', seats: 5 },
    cio_relationships: [{ identifiers: { id: 'reader' } }],
  });
  await vi.waitFor(expectPrepared, WAIT);
});
const expectPrepared = async () => {
  expect(await surface.fleet.relationships('reader')).toContain('acme');
  expect(await surface.fleet.events('reader')).toHaveLength(1);
};
afterAll(async () => {
  files.close();
  await surface.close();
});

const acme = { object_type_id: '3', object_id: 'acme' };
const filesPort = () => (files.address() as AddressInfo).port;
const HAS_SEATS = {
  and: [{ object_attribute: { field: 'seats', operator: 'eq', value: '5', type_id: '3' } }],
} as never;
const WEBHOOK = {
  name: 'made by a client',
  endpoint: 'http://127.0.0.1:9/',
  events: ['email_sent'],
} as const;

const ROWS: readonly ClientRow[] = [
  {
    method: 'getCustomersByEmail',
    send: () => app.getCustomersByEmail('READER@example.com'),
    sent: 'GET /v1/customers?email=READER%40example.com 200',
    answer: { results: [{ id: 'reader', email: 'reader@example.com' }] },
  },
  {
    method: 'getAttributes',
    send: () => app.getAttributes('reader@example.com', IdentifierType.Email),
    sent: 'GET /v1/customers/reader%40example.com/attributes?id_type=email 200',
    answer: { customer: { id: 'reader', attributes: { colour: 'blue' } } },
  },
  {
    method: 'getCustomerActivities',
    send: () => app.getCustomerActivities('reader', { type: 'event', limit: 10 }),
    sent: 'GET /v1/customers/reader/activities?limit=10&type=event 200',
    answer: { activities: [{ type: 'event', name: 'read', data: { page: 1 } }], next: '' },
  },
  {
    method: 'getCustomerRelationships',
    send: () => app.getCustomerRelationships('reader'),
    sent: 'GET /v1/customers/reader/relationships 200',
    answer: { cio_relationships: [{ identifiers: acme }] },
  },
  {
    method: 'listObjectTypes',
    send: () => app.listObjectTypes(),
    sent: 'GET /v1/object_types 200',
    answer: { types: [{ id: '3' }] },
  },
  {
    method: 'findObjects',
    send: () => app.findObjects('3', HAS_SEATS, { limit: 10 }),
    sent: 'POST /v1/objects?limit=10 200',
    answer: { identifiers: [acme], next: '' },
  },
  {
    method: 'getObjectAttributes',
    send: async () => {
      const { identifiers } = (await app.findObjects('3', HAS_SEATS)) as {
        identifiers: { cio_object_id: string }[];
      };
      surface.exchanges.pop();
      return app.getObjectAttributes('3', identifiers[0]!.cio_object_id, 'cio_object_id');
    },
    sent: expect.stringMatching(
      /^GET \/v1\/objects\/3\/\w+\/attributes\?id_type=cio_object_id 200$/,
    ) as string,
    answer: { object: { identifiers: acme, attributes: { name: 'Acme', seats: '5' } } },
  },
  {
    method: 'getObjectRelationships',
    send: () => app.getObjectRelationships('3', 'acme', { limit: 10 }),
    sent: 'GET /v1/objects/3/acme/relationships?limit=10 200',
    answer: { cio_relationships: [{ identifiers: { id: 'reader' } }], next: '' },
  },
  {
    method: 'createReportingWebhook',
    send: () => app.createReportingWebhook(WEBHOOK as never),
    sent: 'POST /v1/reporting_webhooks 200',
    answer: { ...WEBHOOK, id: 1, type: 'webhook', disabled: false },
  },
  {
    method: 'getReportingWebhook',
    send: () => app.getReportingWebhook(1),
    sent: 'GET /v1/reporting_webhooks/1 200',
    answer: WEBHOOK,
  },
  {
    method: 'updateReportingWebhook',
    send: () => app.updateReportingWebhook(1, { disabled: true }),
    sent: 'PUT /v1/reporting_webhooks/1 200',
    answer: { ...WEBHOOK, disabled: true },
    effect: async () =>
      expect(await app.getReportingWebhook(1)).toMatchObject({ ...WEBHOOK, disabled: true }),
  },
  {
    method: 'listReportingWebhooks',
    send: () => app.listReportingWebhooks(),
    sent: 'GET /v1/reporting_webhooks 200',
    answer: { reporting_webhooks: [{ id: 1 }] },
  },
  {
    method: 'deleteReportingWebhook',
    send: () => app.deleteReportingWebhook(1),
    sent: 'DELETE /v1/reporting_webhooks/1 200',
    effect: () => expect(app.getReportingWebhook(1)).rejects.toMatchObject({ statusCode: 404 }),
  },
  {
    method: 'createImport',
    send: () =>
      app.createImport({
        name: 'by a client',
        type: 'event',
        identifier: 'id',
        data_file_url: `http://127.0.0.1:${filesPort()}/events.csv`,
      } as never),
    sent: 'POST /v1/imports 200',
    answer: { import: { id: 1, state: 'preprocessing' } },
    effect: async () => {
      expect(await surface.fleet.event('reader', 'uploaded')).toMatchObject({
        data: { size: '9' },
      });
      // Its end is written after its rows.
      expect(await app.getImport(1)).toMatchObject({ import: { state: 'imported' } });
    },
  },
  {
    method: 'getImport',
    send: () => app.getImport(1),
    sent: 'GET /v1/imports/1 200',
    answer: { import: { state: 'imported', rows_imported: 1, rows_failed: 1 } },
  },
  {
    method: 'listWorkspaces',
    send: () => app.listWorkspaces(),
    sent: 'GET /v1/workspaces 200',
    answer: { workspaces: [{ id: 1, name: 'Demo' }] },
  },
  {
    method: 'getIpAddresses',
    send: () => app.getIpAddresses(),
    sent: 'GET /v1/info/ip_addresses 200',
    answer: { ip_addresses: [] },
  },
];

/** Arguments of which one set makes any method of the client send something. */
const message = { to: 'a@example.com', identifiers: { id: 'reader' }, transactional_message_id: 1 };
const ARGUMENTS: readonly (readonly unknown[])[] = [
  ['1', '1', '1', '1', '1'],
  [{ name: 'x', value: 'x', tag: 'x', filename: 'x.png', data: new Blob(['x']) }],
  ['1', { start: 1, end: 2, res: 'days', language: 'en' }],
  ['1', '1', { name: 'x' }],
  [[{ name: 'x', type: 'event' }]],
  [['1']],
  ['1', 'id'],
  ['1', []],
  ...[
    SendEmailRequest, SendPushRequest, SendSMSRequest, SendWhatsAppRequest, SendInboxMessageRequest, SendInAppRequest,
  ].map((Request) => [new Request(message as never)]),
]; // prettier-ignore

// In order: a row may use the data of the rows before it.
describe('APIClient', () => {
  test.each(ROWS)('$method → $sent', async (row) => {
    expect(await surface.exchange(row)).toEqual([row.sent]);
  });

  test('every other method of the client hears that there is no such call', async () => {
    const served = new Set(ROWS.map(({ method }) => method));
    // Not a call: it builds paths.
    served.add('resourceBase');
    const others = methodsOf(APIClient).filter((method) => !served.has(method));
    const heard = await Promise.all(others.map(async (method) => [method, await statusOf(method)]));
    const surprising = heard.filter(([, status]) => status !== 404 && status !== 405);
    expect(surprising).toEqual([]);
    expect(others.length).toBeGreaterThan(100);
  });
});

/** Answer to a call of the method, with the first arguments that the client itself takes. */
async function statusOf(method: string): Promise<number | string> {
  const call = (app as unknown as Record<string, (...given: unknown[]) => Promise<unknown>>)[
    method
  ];
  for (const given of ARGUMENTS) {
    try {
      await call!.apply(app, [...given]);
      return 200;
    } catch (error) {
      const { statusCode } = error as { statusCode?: number };
      if (statusCode !== undefined) return statusCode;
    }
  }
  return 'never sent';
}
