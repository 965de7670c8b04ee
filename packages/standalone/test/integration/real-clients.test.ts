/**
 * The clients that people use today, unmodified, against the running services; their data are read back over the app
 * API. A failure here would hit every caller who moves to us.
 */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { APIClient, PipelinesClient, TrackClient, verifyRequestSignature } from 'customerio-node';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { startFleet, WAIT, type Fleet } from './fleet-under-test.ts';

let fleet: Fleet;
beforeAll(async () => {
  fleet = await startFleet();
});
afterAll(() => fleet.close());

describe('customerio-node: TrackClient', () => {
  const track = () =>
    new TrackClient(DEMO.siteId, DEMO.apiKey, { url: `${fleet.intake.url}/api/v1` });

  test('identify: attributes are merged, null removes, the email finds the person', async () => {
    await track().identify('t-1', { email: 'T1@Example.com', plan: 'free', seats: 3 });
    await track().identify('t-1', { plan: 'pro', seats: null });
    await vi.waitFor(async () => {
      const customer = await fleet.customer('t-1');
      expect(customer.attributes).toMatchObject({ email: 'T1@Example.com', plan: 'pro' });
      expect(customer.attributes).not.toHaveProperty('seats');
    }, WAIT);
    const found = (await fleet.app.getCustomersByEmail('t1@example.COM')) as {
      results: { id: string }[];
    };
    expect(found.results).toMatchObject([{ id: 't-1' }]);
  });

  test('identifiers with spaces, plus, at and slash arrive as they were', async () => {
    const id = 'u 1+a@x/y';
    await track().identify(id, { plan: 'odd' });
    await vi.waitFor(
      async () => expect((await fleet.customer(id)).attributes['plan']).toBe('odd'),
      WAIT,
    );
  });

  test('track: name trimmed, nested data kept, the timestamp taken', async () => {
    const timestamp = Math.floor(Date.now() / 1000) - 3_600;
    await track().track('t-2', {
      name: '  purchase ',
      timestamp,
      data: { price: 23.5, items: [{ sku: 'a' }], recipient: 'r@example.com' },
    });
    const event = await fleet.event('t-2', 'purchase');
    expect(event).toMatchObject({
      timestamp,
      data: { price: 23.5, items: [{ sku: 'a' }], recipient: 'r@example.com' },
    });
  });

  test('the same event id is counted once', async () => {
    const id = '01JD8Z3V5N6W7X8Y9Z0A1B2C3D';
    for (let n = 0; n < 3; n++) await track().track('t-3', { name: 'once', id });
    await track().track('t-3', { name: 'last' });
    await fleet.event('t-3', 'last');
    expect(await fleet.event('t-3', 'once')).toMatchObject({ type: 'event' });
  });

  test('anonymous events attach when the person is identified', async () => {
    await track().trackAnonymous('anonymous-1', { name: 'looked' });
    await track().identify('t-4', { anonymous_id: 'anonymous-1' });
    expect(await fleet.event('t-4', 'looked')).toMatchObject({ type: 'event' });
  });

  test('page views, devices, merge, suppression, delete: the whole surface answers', async () => {
    await track().trackPageView('t-5', '/pricing');
    expect(await fleet.event('t-5', '/pricing')).toMatchObject({ type: 'page' });
    await track().addDevice('t-5', 'token-1', 'ios', { last_used: 1_700_000_000 });
    await vi.waitFor(
      async () => expect((await fleet.customer('t-5')).devices).toHaveLength(1),
      WAIT,
    );
    await track().deleteDevice('t-5', 'token-1');
    await vi.waitFor(
      async () => expect((await fleet.customer('t-5')).devices).toHaveLength(0),
      WAIT,
    );

    await track().identify('t-5b', { colour: 'blue' });
    await vi.waitFor(() => fleet.customer('t-5b'), WAIT);
    await track().mergeCustomers('id' as never, 't-5', 'id' as never, 't-5b');
    await vi.waitFor(
      async () => expect((await fleet.customer('t-5')).attributes['colour']).toBe('blue'),
      WAIT,
    );

    await track().suppress('t-5');
    await vi.waitFor(
      () => expect(fleet.customer('t-5')).rejects.toMatchObject({ statusCode: 404 }),
      WAIT,
    );
    await track().unsuppress('t-5');
    await track().identify('t-5', { back: 'yes' });
    await vi.waitFor(
      async () => expect((await fleet.customer('t-5')).attributes['back']).toBe('yes'),
      WAIT,
    );
    await track().destroy('t-5');
    await vi.waitFor(
      () => expect(fleet.customer('t-5')).rejects.toMatchObject({ statusCode: 404 }),
      WAIT,
    );
  });

  test('v2 entity and batch: objects, relationships, and each refused item by its index', async () => {
    await track().entity({
      type: 'object',
      action: 'identify',
      identifiers: { object_type_id: '1', object_id: 'acme' },
      attributes: { name: 'Acme' },
      cio_relationships: [
        { identifiers: { id: 't-6' }, relationship_attributes: { role: 'admin' } },
      ],
    });
    const answer = await track().batch([
      {
        type: 'person',
        action: 'identify',
        identifiers: { id: 't-6' },
        attributes: { plan: 'team' },
      },
      { type: 'person', action: 'identify' },
    ]);
    expect(answer).toMatchObject({
      errors: [{ batch_index: 1, reason: 'required', field: 'identifiers' }],
    });
    await vi.waitFor(async () => {
      expect((await fleet.customer('t-6')).attributes['plan']).toBe('team');
      expect(await fleet.relationships('t-6')).toContain('acme');
    }, WAIT);
  });

  test('a refused call rejects with its status, and the message names the field', async () => {
    await expect(track().track('t-7', { name: 'x'.repeat(101) })).rejects.toMatchObject({
      statusCode: 400,
      message: expect.stringContaining('name'),
    });
    await expect(track().batch([{ type: 'person' }])).rejects.toMatchObject({ statusCode: 400 });
    const wrong = new TrackClient(DEMO.siteId, 'wrong', { url: `${fleet.intake.url}/api/v1` });
    await expect(wrong.identify('t-7', {})).rejects.toMatchObject({ statusCode: 401 });
  });
});

describe('customerio-node: PipelinesClient', () => {
  const pipelines = (strictMode: boolean) =>
    new PipelinesClient(DEMO.writeKey, { url: `${fleet.intake.url}/v1`, strictMode });

  test('every call of the API, in strict mode, read back', async () => {
    const client = pipelines(true);
    await client.identify({
      userId: 'p-1',
      traits: { email: 'p1@example.com', plan: 'pro', createdAt: '2026-01-02T03:04:05.678Z' },
    });
    await client.track({ userId: 'p-1', event: ' Order Placed ', properties: { total: 9.5 } });
    await client.page({
      userId: 'p-1',
      name: 'Home',
      properties: { url: 'https://shop.example/' },
    });
    await client.screen({ userId: 'p-1', name: 'Cart' });
    await client.group({
      userId: 'p-1',
      groupId: 'company-1',
      traits: { name: 'Company', relationshipAttributes: { role: 'owner' } },
    });
    await vi.waitFor(async () => {
      expect((await fleet.customer('p-1')).attributes).toMatchObject({
        email: 'p1@example.com',
        plan: 'pro',
        created_at: String(Math.floor(Date.parse('2026-01-02T03:04:05Z') / 1000)),
      });
      expect(await fleet.relationships('p-1')).toContain('company-1');
    }, WAIT);
    expect(await fleet.event('p-1', 'Order Placed')).toMatchObject({
      type: 'event',
      data: { total: 9.5 },
    });
    expect(await fleet.event('p-1', 'Home')).toMatchObject({ type: 'page' });
    expect(await fleet.event('p-1', 'Cart')).toMatchObject({ type: 'screen' });

    await client.identify({ userId: 'p-1-old', traits: { colour: 'red' } });
    await vi.waitFor(() => fleet.customer('p-1-old'), WAIT);
    await client.alias({ userId: 'p-1', previousId: 'p-1-old' });
    await vi.waitFor(
      async () => expect((await fleet.customer('p-1')).attributes['colour']).toBe('red'),
      WAIT,
    );
  });

  test('a batch is taken whole', async () => {
    await pipelines(true).batch([
      { type: 'identify', userId: 'p-2', traits: { plan: 'batch' } },
      { type: 'track', userId: 'p-2', event: 'in a batch' },
    ]);
    await fleet.event('p-2', 'in a batch');
    expect((await fleet.customer('p-2')).attributes['plan']).toBe('batch');
  });

  test('strict mode names the missing field; permissive mode takes the call and records an issue', async () => {
    await expect(
      pipelines(true).batch([{ type: 'group', userId: 'p-3' } as never]),
    ).rejects.toMatchObject({
      statusCode: 400,
      message: expect.stringContaining('groupId'),
    });
    await pipelines(false).batch([{ type: 'group', userId: 'p-3' } as never]);
    await vi.waitFor(async () => {
      const answer = await fetch(`${fleet.api.url}/v1/ingestion_issues?field=groupId`, {
        headers: { Authorization: `Bearer ${DEMO.appKey}` },
      });
      expect(await answer.json()).toMatchObject({
        ingestion_issues: [{ code: 'required', field: 'groupId', source: 'pipelines.batch' }],
      });
    }, WAIT);
  });
});

describe('customerio-node: APIClient and verifyRequestSignature', () => {
  test('a reporting webhook made with the client gets a delivery that the client verifies', async () => {
    const received: { headers: IncomingHttpHeaders; body: string }[] = [];
    const receiver = createServer((request, response) => {
      let body = '';
      request.setEncoding('utf8').on('data', (part: string) => (body += part));
      request.on('end', () => {
        received.push({ headers: request.headers, body });
        response.end();
      });
    });
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    const endpoint = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/`;

    const made = (await fleet.app.createReportingWebhook({
      name: 'client',
      endpoint,
      events: ['customer_unsubscribed', 'customer_subscription_preferences_changed'],
    })) as { id: number };
    const pipelines = new PipelinesClient(DEMO.writeKey, {
      url: `${fleet.intake.url}/v1`,
      strictMode: true,
    });
    await pipelines.identify({
      userId: 'w-1',
      traits: { email: 'w1@example.com', unsubscribed: true },
    });
    await vi.waitFor(() => expect(received).toHaveLength(1), WAIT);
    const [{ headers, body } = { headers: {}, body: '' }] = received;
    const signed = {
      signingSecret: DEMO.signingKey,
      timestamp: String(headers['x-svc-timestamp']),
      signature: String(headers['x-svc-signature']),
    };
    expect(verifyRequestSignature({ ...signed, body })).toBe(true);
    expect(verifyRequestSignature({ ...signed, body: `${body} ` })).toBe(false);
    expect(JSON.parse(body)).toMatchObject({
      object_type: 'customer',
      metric: 'unsubscribed',
      data: {
        customer_id: 'w-1',
        email_address: 'w1@example.com',
        identifiers: { id: 'w-1', email: 'w1@example.com' },
      },
    });

    await fleet.app.updateReportingWebhook(made.id, { disabled: true });
    expect(await fleet.app.getReportingWebhook(made.id)).toMatchObject({
      id: made.id,
      disabled: true,
      endpoint,
    });
    expect(await fleet.app.listReportingWebhooks()).toMatchObject({
      reporting_webhooks: [{ id: made.id }],
    });
    await fleet.app.deleteReportingWebhook(made.id);
    await expect(fleet.app.getReportingWebhook(made.id)).rejects.toMatchObject({ statusCode: 404 });
    receiver.close();
  });

  test('workspaces are listed, and a wrong key is refused', async () => {
    expect(await fleet.app.listWorkspaces()).toMatchObject({
      workspaces: [{ id: 1, name: 'Demo' }],
    });
    const wrong = new APIClient('wrong', { url: `${fleet.api.url}/v1` });
    await expect(wrong.listWorkspaces()).rejects.toMatchObject({ statusCode: 401 });
  });
});
