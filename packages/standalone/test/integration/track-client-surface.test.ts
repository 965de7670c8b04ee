/**
 * The whole surface of customerio-node's TrackClient, call by call: the request, the status of the answer, and the
 * effect read back. A method that the client gains and this table lacks fails a test.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { IdentifierType, TrackClient } from 'customerio-node';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import {
  methodsOf,
  startClientSurface,
  type ClientRow,
  type ClientSurface,
} from './client-surface.ts';
import { WAIT } from './fleet-under-test.ts';

let surface: ClientSurface;
let receiver: Server;
/** Bodies of the reporting webhook's deliveries. */
const reported: { metric: string; object_type: string; data: Record<string, unknown> }[] = [];

beforeAll(async () => {
  surface = await startClientSurface();
  receiver = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (part: string) => (body += part));
    request.on('end', () => {
      reported.push(JSON.parse(body));
      response.end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  await surface.fleet.app.createReportingWebhook({
    name: 'surface',
    endpoint: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
    events: ['email_clicked', 'push_opened', 'customer_unsubscribed'],
  });
  await surface.track.suppress('was-suppressed');
  await surface.track.addDevice('device-owner', 'old-token', 'ios');
  await surface.preparePeople(['merged', 'suppressed', 'deleted', 'member', 'unsubscriber']);
  await vi.waitFor(expectDevice, WAIT);
});
const expectDevice = async () =>
  expect((await surface.fleet.customer('device-owner')).devices).toHaveLength(1);
afterAll(async () => {
  receiver.closeAllConnections();
  receiver.close();
  await surface.close();
});

async function members(segmentId: number): Promise<(string | null)[]> {
  const { rows } = await sql<{ id: string | null }>`
    select p.id from segment_members m
      join people p on p.environment_id = m.environment_id and p.person_id = m.person_id
     where m.environment_id = 1 and m.segment_id = ${segmentId} order by p.id`.execute(
    surface.fleet.database,
  );
  return rows.map(({ id }) => id);
}

async function anonymousEvents(name: string): Promise<{ data: object }[]> {
  const { rows } = await sql<{ data: object }>`
    select data from events where environment_id = 1 and name = ${name} and person_id is null`.execute(
    surface.fleet.database,
  );
  return rows;
}

const reportOf = (metric: string, deliveryId: string) =>
  reported.find((body) => body.metric === metric && body.data['delivery_id'] === deliveryId);

const byId = IdentifierType.Id;
const byEmail = IdentifierType.Email;

const TRACK_ROWS: readonly ClientRow[] = [
  {
    method: 'identify',
    send: () => surface.track.identify('surface 1', { plan: 'pro' }),
    sent: 'PUT /api/v1/customers/surface%201 200',
    answer: {},
    effect: async () =>
      expect(await surface.attributes('surface 1')).toMatchObject({ plan: 'pro' }),
  },
  {
    method: 'track',
    send: () => surface.track.track('surface 1', { name: 'bought', data: { total: 9 } }),
    sent: 'POST /api/v1/customers/surface%201/events 200',
    answer: {},
    effect: async () =>
      expect(await surface.fleet.event('surface 1', 'bought')).toMatchObject({
        data: { total: 9 },
      }),
  },
  {
    method: 'trackPageView',
    send: () => surface.track.trackPageView('surface 1', '/pricing'),
    sent: 'POST /api/v1/customers/surface%201/events 200',
    answer: {},
    effect: async () =>
      expect(await surface.fleet.event('surface 1', '/pricing')).toMatchObject({ type: 'page' }),
  },
  {
    method: 'trackAnonymous',
    send: async () => {
      await surface.track.trackAnonymous('surface-anonymous', { name: 'looked' });
      surface.exchanges.pop();
      return surface.track.identify('surface 1', { anonymous_id: 'surface-anonymous' });
    },
    sent: 'PUT /api/v1/customers/surface%201 200',
    effect: async () =>
      expect(await surface.fleet.event('surface 1', 'looked')).toMatchObject({ type: 'event' }),
  },
  {
    method: 'addDevice',
    send: () => surface.track.addDevice('surface 1', 'token/1', 'android', { app_version: '2' }),
    sent: 'PUT /api/v1/customers/surface%201/devices 200',
    answer: {},
    effect: async () =>
      expect((await surface.fleet.customer('surface 1')).devices).toMatchObject([
        { id: 'token/1', platform: 'android', attributes: { app_version: '2' } },
      ]),
  },
  {
    method: 'deleteDevice',
    send: () => surface.track.deleteDevice('device-owner', 'old-token'),
    sent: 'DELETE /api/v1/customers/device-owner/devices/old-token 200',
    answer: {},
    effect: async () => expect((await surface.fleet.customer('device-owner')).devices).toEqual([]),
  },
  {
    method: 'mergeCustomers',
    send: () => surface.track.mergeCustomers(byId, 'surface 1', byEmail, 'merged@example.com'),
    sent: 'POST /api/v1/merge_customers 200',
    answer: {},
    effect: async () => {
      expect(await surface.attributes('surface 1')).toMatchObject({ colour: 'blue' });
      await surface.expectNobody('merged');
    },
  },
  {
    method: 'suppress',
    send: () => surface.track.suppress('suppressed'),
    sent: 'POST /api/v1/customers/suppressed/suppress 200',
    answer: {},
    effect: () => surface.expectNobody('suppressed'),
  },
  {
    method: 'unsuppress',
    send: () => surface.track.unsuppress('was-suppressed'),
    sent: 'POST /api/v1/customers/was-suppressed/unsuppress 200',
    answer: {},
    effect: async () => {
      await surface.track.identify('was-suppressed', { back: 'yes' });
      expect(await surface.attributes('was-suppressed')).toMatchObject({ back: 'yes' });
    },
  },
  {
    method: 'destroy',
    send: () => surface.track.destroy('deleted'),
    sent: 'DELETE /api/v1/customers/deleted 200',
    answer: {},
    effect: () => surface.expectNobody('deleted'),
  },
  {
    method: 'addCustomersToSegment',
    send: () => surface.track.addCustomersToSegment(7, ['member', 'nobody', 'unsubscriber']),
    sent: 'POST /api/v1/segments/7/add_customers 200',
    answer: {},
    effect: async () => expect(await members(7)).toEqual(['member', 'unsubscriber']),
  },
  {
    method: 'removeCustomersFromSegment',
    send: () => surface.track.removeCustomersFromSegment(7, ['MEMBER@example.com'], byEmail),
    sent: 'POST /api/v1/segments/7/remove_customers?id_type=email 200',
    answer: {},
    effect: async () => expect(await members(7)).toEqual(['unsubscriber']),
  },
  {
    method: 'submitForm',
    send: () => surface.track.submitForm('sign-up', { email: 'form@example.com', size: 'L' }),
    sent: 'POST /api/v1/forms/sign-up/submit 204',
    effect: async () => {
      const found = await surface.fleet.app.getAttributes('form@example.com', byEmail);
      expect(found).toMatchObject({ customer: { attributes: { size: 'L' } } });
    },
  },
  {
    method: 'reportMetric',
    send: () =>
      surface.track.reportMetric({
        delivery_id: 'surface-delivery',
        metric: 'clicked',
        recipient: 'unsubscriber@example.com',
        href: 'https://shop.example/',
      }),
    sent: 'POST /api/v1/metrics 200',
    answer: {},
    effect: async () =>
      expect(reportOf('clicked', 'surface-delivery')).toMatchObject({
        object_type: 'email',
        data: { customer_id: 'unsubscriber', href: 'https://shop.example/' },
      }),
  },
  {
    method: 'trackPush',
    send: () =>
      surface.track.trackPush({
        delivery_id: 'surface-push',
        event: 'opened',
        device_id: 'token-1',
        timestamp: 1_700_000_000,
      } as never),
    sent: 'POST /api/v1/push/events 200',
    answer: {},
    effect: async () =>
      expect(reportOf('opened', 'surface-push')).toMatchObject({
        object_type: 'push',
        data: { recipients: [{ device_id: 'token-1' }] },
      }),
  },
  {
    // After reportMetric: that is how the delivery became known.
    method: 'unsubscribe',
    send: () => surface.track.unsubscribe('surface-delivery'),
    sent: 'POST /unsubscribe/surface-delivery 200',
    answer: {},
    effect: async () => {
      expect((await surface.fleet.customer('unsubscriber')).unsubscribed).toBe(true);
      expect(reported).toContainEqual(
        expect.objectContaining({
          metric: 'unsubscribed',
          data: expect.objectContaining({ customer_id: 'unsubscriber' }),
        }),
      );
    },
  },
  {
    method: 'getAccountRegion',
    send: () => surface.track.getAccountRegion(),
    sent: 'GET /api/v1/accounts/region 200',
    answer: { region: 'us', environment_id: 1 },
    effect: async () => {
      const answer = (await surface.track.getAccountRegion()) as { url: string };
      expect(`http://${answer.url}`).toBe(surface.fleet.intake.url);
    },
  },
  {
    method: 'entity',
    send: () =>
      surface.track.entity({
        type: 'object',
        action: 'identify',
        identifiers: { object_type_id: '3', object_id: 'acme' },
        attributes: { name: 'Acme', seats: 5 },
        cio_relationships: [{ identifiers: { id: 'surface 1' } }],
      }),
    sent: 'POST /api/v2/entity 200',
    answer: {},
    effect: async () => expect(await surface.fleet.relationships('surface 1')).toContain('acme'),
  },
  {
    method: 'batch',
    send: () =>
      surface.track.batch([
        {
          type: 'person',
          action: 'identify',
          identifiers: { id: 'surface 2' },
          attributes: { plan: 'team' },
        },
        { type: 'person', action: 'identify' },
      ]),
    sent: 'POST /api/v2/batch 207',
    answer: { errors: [{ batch_index: 1, reason: 'required', field: 'identifiers' }] },
    effect: async () =>
      expect(await surface.attributes('surface 2')).toMatchObject({ plan: 'team' }),
  },
];

// In order: a row may use the data of the rows before it.
describe('TrackClient', () => {
  test.each(TRACK_ROWS)('$method → $sent', async (row) => {
    expect(await surface.exchange(row)).toEqual([row.sent]);
  });

  test('an invite event without a person is taken', async () => {
    const before = surface.exchanges.length;
    await surface.track.trackAnonymous('', {
      name: 'invited',
      data: { recipient: 'new@example.com' },
    });
    expect(surface.exchanges.slice(before)).toEqual(['POST /api/v1/events 200']);
    await vi.waitFor(async () => expect(await anonymousEvents('invited')).toHaveLength(1), WAIT);
  });

  test('every method of the client is in the table', () => {
    expect(TRACK_ROWS.map(({ method }) => method).toSorted()).toEqual(
      methodsOf(TrackClient).toSorted(),
    );
  });
});
