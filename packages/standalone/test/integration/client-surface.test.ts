/**
 * The whole surface of customerio-node's clients that we serve, call by call: what is sent, the
 * status that comes back, and the effect read back. A method that the client gains and this table
 * lacks fails the last test.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DEMO } from '@sluice/database/seed-demo';
import { APIClient, PipelinesClient, TrackClient, IdentifierType } from 'customerio-node';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startFleet, WAIT, type Fleet } from './fleet-under-test.ts';

let fleet: Fleet;
let track: TrackClient;
let pipelines: PipelinesClient;
let receiver: Server;
/** Bodies of the reporting webhook's deliveries. */
const reported: { metric: string; object_type: string; data: Record<string, unknown> }[] = [];
/** `METHOD /path status` of every request that the clients made. */
const exchanges: string[] = [];
const ownFetch = globalThis.fetch;

beforeAll(async () => {
  fleet = await startFleet();
  // The clients hide method and status; the request itself goes out as it is.
  globalThis.fetch = async (input, init) => {
    const answer = await ownFetch(input, init);
    const { pathname, search } = new URL(input instanceof Request ? input.url : input);
    exchanges.push(`${init?.method ?? 'GET'} ${pathname}${search} ${answer.status}`);
    return answer;
  };
  track = new TrackClient(DEMO.siteId, DEMO.apiKey, { url: `${fleet.intake.url}/api/v1` });
  pipelines = new PipelinesClient(DEMO.writeKey, {
    url: `${fleet.intake.url}/v1`,
    strictMode: true,
  });
  receiver = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (part: string) => (body += part));
    request.on('end', () => {
      reported.push(JSON.parse(body));
      response.end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  await fleet.app.createReportingWebhook({
    name: 'surface',
    endpoint: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`,
    events: ['email_clicked', 'push_opened', 'customer_unsubscribed'],
  });
  for (const id of ['merged', 'suppressed', 'deleted', 'member', 'unsubscriber']) {
    await track.identify(id, { email: `${id}@example.com`, colour: 'blue' });
  }
  await track.suppress('was-suppressed');
  await track.addDevice('device-owner', 'old-token', 'ios');
  await vi.waitFor(expectPrepared, WAIT);
});
afterAll(async () => {
  globalThis.fetch = ownFetch;
  receiver.closeAllConnections();
  receiver.close();
  await fleet.close();
});

const attributes = async (id: string) => (await fleet.customer(id)).attributes;
async function expectPrepared(): Promise<void> {
  for (const id of ['merged', 'suppressed', 'deleted', 'member', 'unsubscriber']) {
    expect(await attributes(id)).toMatchObject({ colour: 'blue' });
  }
  expect((await fleet.customer('device-owner')).devices).toHaveLength(1);
}

const expectNobody = (id: string) =>
  expect(fleet.customer(id)).rejects.toMatchObject({ statusCode: 404 });

async function members(segmentId: number): Promise<(string | null)[]> {
  const rows = await fleet.database
    .selectFrom('segment_members as m')
    .innerJoin('people as p', (join) =>
      join
        .onRef('p.environment_id', '=', 'm.environment_id')
        .onRef('p.person_id', '=', 'm.person_id'),
    )
    .select('p.id')
    .where('m.environment_id', '=', 1)
    .where('m.segment_id', '=', segmentId)
    .orderBy('p.id')
    .execute();
  return rows.map(({ id }) => id);
}

const anonymousEvents = (name: string) =>
  fleet.database
    .selectFrom('events')
    .select('data')
    .where('environment_id', '=', 1)
    .where('name', '=', name)
    .where('person_id', 'is', null)
    .execute();

const reportOf = (metric: string, deliveryId: string) =>
  reported.find((body) => body.metric === metric && body.data['delivery_id'] === deliveryId);

interface Row {
  readonly method: string;
  readonly send: () => Promise<unknown>;
  readonly sent: string;
  /** Body of the answer. */
  readonly answer?: unknown;
  /** Retried until it holds. */
  readonly effect: () => Promise<unknown>;
}

async function expectRow({ send, sent, answer, effect }: Row): Promise<void> {
  const before = exchanges.length;
  const answered = await send();
  expect(exchanges.slice(before)).toEqual([sent]);
  if (answer !== undefined) expect(answered).toMatchObject(answer as object);
  await vi.waitFor(effect, WAIT);
}

const byId = IdentifierType.Id;
const byEmail = IdentifierType.Email;

const TRACK_ROWS: readonly Row[] = [
  {
    method: 'identify',
    send: () => track.identify('surface 1', { plan: 'pro' }),
    sent: 'PUT /api/v1/customers/surface%201 200',
    answer: {},
    effect: async () => expect(await attributes('surface 1')).toMatchObject({ plan: 'pro' }),
  },
  {
    method: 'track',
    send: () => track.track('surface 1', { name: 'bought', data: { total: 9 } }),
    sent: 'POST /api/v1/customers/surface%201/events 200',
    answer: {},
    effect: async () =>
      expect(await fleet.event('surface 1', 'bought')).toMatchObject({ data: { total: 9 } }),
  },
  {
    method: 'trackPageView',
    send: () => track.trackPageView('surface 1', '/pricing'),
    sent: 'POST /api/v1/customers/surface%201/events 200',
    answer: {},
    effect: async () =>
      expect(await fleet.event('surface 1', '/pricing')).toMatchObject({ type: 'page' }),
  },
  {
    method: 'trackAnonymous',
    send: async () => {
      await track.trackAnonymous('surface-anonymous', { name: 'looked' });
      exchanges.pop();
      return track.identify('surface 1', { anonymous_id: 'surface-anonymous' });
    },
    sent: 'PUT /api/v1/customers/surface%201 200',
    effect: async () =>
      expect(await fleet.event('surface 1', 'looked')).toMatchObject({ type: 'event' }),
  },
  {
    method: 'addDevice',
    send: () => track.addDevice('surface 1', 'token/1', 'android', { app_version: '2' }),
    sent: 'PUT /api/v1/customers/surface%201/devices 200',
    answer: {},
    effect: async () =>
      expect((await fleet.customer('surface 1')).devices).toMatchObject([
        { id: 'token/1', platform: 'android', attributes: { app_version: '2' } },
      ]),
  },
  {
    method: 'deleteDevice',
    send: () => track.deleteDevice('device-owner', 'old-token'),
    sent: 'DELETE /api/v1/customers/device-owner/devices/old-token 200',
    answer: {},
    effect: async () => expect((await fleet.customer('device-owner')).devices).toEqual([]),
  },
  {
    method: 'mergeCustomers',
    send: () => track.mergeCustomers(byId, 'surface 1', byEmail, 'merged@example.com'),
    sent: 'POST /api/v1/merge_customers 200',
    answer: {},
    effect: async () => {
      expect(await attributes('surface 1')).toMatchObject({ colour: 'blue' });
      await expectNobody('merged');
    },
  },
  {
    method: 'suppress',
    send: () => track.suppress('suppressed'),
    sent: 'POST /api/v1/customers/suppressed/suppress 200',
    answer: {},
    effect: () => expectNobody('suppressed'),
  },
  {
    method: 'unsuppress',
    send: () => track.unsuppress('was-suppressed'),
    sent: 'POST /api/v1/customers/was-suppressed/unsuppress 200',
    answer: {},
    effect: async () => {
      await track.identify('was-suppressed', { back: 'yes' });
      expect(await attributes('was-suppressed')).toMatchObject({ back: 'yes' });
    },
  },
  {
    method: 'destroy',
    send: () => track.destroy('deleted'),
    sent: 'DELETE /api/v1/customers/deleted 200',
    answer: {},
    effect: () => expectNobody('deleted'),
  },
  {
    method: 'addCustomersToSegment',
    send: () => track.addCustomersToSegment(7, ['member', 'nobody', 'unsubscriber']),
    sent: 'POST /api/v1/segments/7/add_customers 200',
    answer: {},
    effect: async () => expect(await members(7)).toEqual(['member', 'unsubscriber']),
  },
  {
    method: 'removeCustomersFromSegment',
    send: () => track.removeCustomersFromSegment(7, ['MEMBER@example.com'], byEmail),
    sent: 'POST /api/v1/segments/7/remove_customers?id_type=email 200',
    answer: {},
    effect: async () => expect(await members(7)).toEqual(['unsubscriber']),
  },
  {
    method: 'submitForm',
    send: () => track.submitForm('sign-up', { email: 'form@example.com', size: 'L' }),
    sent: 'POST /api/v1/forms/sign-up/submit 204',
    effect: async () => {
      const found = await fleet.app.getAttributes('form@example.com', byEmail);
      expect(found).toMatchObject({ customer: { attributes: { size: 'L' } } });
    },
  },
  {
    method: 'reportMetric',
    send: () =>
      track.reportMetric({
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
      track.trackPush({
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
    send: () => track.unsubscribe('surface-delivery'),
    sent: 'POST /unsubscribe/surface-delivery 200',
    answer: {},
    effect: async () => {
      expect((await fleet.customer('unsubscriber')).unsubscribed).toBe(true);
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
    send: () => track.getAccountRegion(),
    sent: 'GET /api/v1/accounts/region 200',
    answer: { region: 'us', environment_id: 1 },
    effect: async () => {
      const answer = (await track.getAccountRegion()) as { url: string };
      expect(`http://${answer.url}`).toBe(fleet.intake.url);
    },
  },
  {
    method: 'entity',
    send: () =>
      track.entity({
        type: 'object',
        action: 'identify',
        identifiers: { object_type_id: '3', object_id: 'acme' },
        attributes: { name: 'Acme', seats: 5 },
        cio_relationships: [{ identifiers: { id: 'surface 1' } }],
      }),
    sent: 'POST /api/v2/entity 200',
    answer: {},
    effect: async () => expect(await fleet.relationships('surface 1')).toContain('acme'),
  },
  {
    method: 'batch',
    send: () =>
      track.batch([
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
    effect: async () => expect(await attributes('surface 2')).toMatchObject({ plan: 'team' }),
  },
];

function viewRow(method: 'page' | 'screen'): Row {
  const name = `a ${method}`;
  return {
    method,
    send: () => pipelines[method]({ userId: 'piped', name }),
    sent: `POST /v1/${method} 200`,
    answer: {},
    effect: async () => expect(await fleet.event('piped', name)).toMatchObject({ type: method }),
  };
}

const PIPELINES_ROWS: readonly Row[] = [
  {
    method: 'identify',
    send: () => pipelines.identify({ userId: 'piped', traits: { plan: 'pro' } }),
    sent: 'POST /v1/identify 200',
    answer: {},
    effect: async () => expect(await attributes('piped')).toMatchObject({ plan: 'pro' }),
  },
  viewRow('page'),
  viewRow('screen'),
  {
    method: 'track',
    send: () => pipelines.track({ userId: 'piped', event: 'paid', properties: { total: 1 } }),
    sent: 'POST /v1/track 200',
    answer: {},
    effect: async () =>
      expect(await fleet.event('piped', 'paid')).toMatchObject({ data: { total: 1 } }),
  },
  {
    method: 'group',
    send: () => pipelines.group({ userId: 'piped', groupId: 'group-1', traits: { name: 'G' } }),
    sent: 'POST /v1/group 200',
    answer: {},
    effect: async () => expect(await fleet.relationships('piped')).toContain('group-1'),
  },
  {
    method: 'alias',
    send: () => pipelines.alias({ userId: 'piped', previousId: 'member' }),
    sent: 'POST /v1/alias 200',
    answer: {},
    effect: async () => {
      expect(await attributes('piped')).toMatchObject({ colour: 'blue' });
      await expectNobody('member');
    },
  },
  {
    method: 'batch',
    send: () => pipelines.batch([{ type: 'track', userId: 'piped', event: 'batched' }]),
    sent: 'POST /v1/batch 200',
    answer: {},
    effect: async () => expect(await fleet.event('piped', 'batched')).toBeDefined(),
  },
];

/** Methods that are no call: the constructor and what builds a body. */
const NO_CALLS = new Set(['constructor', 'envelope']);
const methodsOf = (client: { prototype: object }) =>
  Object.getOwnPropertyNames(client.prototype).filter((name) => !NO_CALLS.has(name));

// In order: a row may stand on what those before it made.
describe('TrackClient', () => {
  test.each(TRACK_ROWS)('$method → $sent', expectRow);

  test('an invite event, which is nobody’s, is taken', async () => {
    const before = exchanges.length;
    await track.trackAnonymous('', { name: 'invited', data: { recipient: 'new@example.com' } });
    expect(exchanges.slice(before)).toEqual(['POST /api/v1/events 200']);
    await vi.waitFor(async () => expect(await anonymousEvents('invited')).toHaveLength(1), WAIT);
  });

  test('every method of the client is in the table', () => {
    expect(TRACK_ROWS.map(({ method }) => method).toSorted()).toEqual(
      methodsOf(TrackClient).toSorted(),
    );
  });
});

describe('PipelinesClient', () => {
  test.each(PIPELINES_ROWS)('$method → $sent', expectRow);

  test('every method of the client is in the table', () => {
    expect(PIPELINES_ROWS.map(({ method }) => method).toSorted()).toEqual(
      methodsOf(PipelinesClient).toSorted(),
    );
  });
});

describe('APIClient: reads of objects', () => {
  const app = () => new APIClient(DEMO.appKey, { url: `${fleet.api.url}/v1` });
  const acme = { object_type_id: '3', object_id: 'acme' };

  test('what Track wrote is found, shown, and tells its people', async () => {
    expect(await app().listObjectTypes()).toMatchObject({
      types: expect.arrayContaining([expect.objectContaining({ id: '3' })]),
    });
    const filter = {
      and: [{ object_attribute: { field: 'seats', operator: 'eq', value: '5', type_id: '3' } }],
    };
    const found = (await app().findObjects('3', filter as never, { limit: 10 })) as {
      identifiers: { cio_object_id: string }[];
    };
    expect(found).toMatchObject({ identifiers: [acme], next: '' });
    const ownId = found.identifiers[0]!.cio_object_id;
    expect(await app().getObjectAttributes('3', ownId, 'cio_object_id')).toMatchObject({
      object: { identifiers: acme, attributes: { name: 'Acme', seats: '5' } },
    });
    expect(await app().getObjectRelationships('3', 'acme', { limit: 10 })).toMatchObject({
      cio_relationships: [{ identifiers: { id: 'surface 1' } }],
      next: '',
    });
    await expect(app().getObjectAttributes('3', 'nothing')).rejects.toMatchObject({
      statusCode: 404,
    });
  });
});
