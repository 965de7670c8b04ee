import { applyOperations } from '@sluice/domain/apply/apply-operations';
import { INCOMING_EVENT_TYPES } from '@sluice/domain/delivery/incoming-event';
import { IncomingSubscriptions } from '@sluice/domain/delivery/incoming-subscription';
import type { JsonObject } from '@sluice/domain/values/json';
import type { Operation } from '@sluice/domain/operations/operation';
import {
  isMessageChannel,
  REPORTING_EVENT_TYPES,
  SELECTABLE_EVENT_TYPES,
  type ReportingEvent,
  type ReportingEventType,
} from '@sluice/domain/delivery/reporting-event';
import {
  deleteObject,
  form,
  identify,
  identifyObject,
  metric,
  NOW_MS,
  publish,
  relate,
  relateObject,
  remove,
  suppress,
  track,
} from '@sluice/domain/testing/sample-operations';
import { deliveryBody } from '@sluice/domain/delivery/webhook';
import { describe, expect, test } from 'vitest';
import { EVENT_SCHEMAS, metricOf, sampleBody } from '../../src/openapi/event-schemas.ts';

const channelOf = (type: ReportingEventType) =>
  type.startsWith('in_app_') ? 'in_app' : (type.split('_')[0] ?? '');

const entryOf = (id: string) => ({ person: { kind: 'id', value: id } as const, attributes: {} });

/** Everything that the apply step can report, from calls with all fields. */
function reportEverything(): readonly ReportingEvent[] {
  const operations: Operation[] = [
    identify('id:1', { email: 'ada@example.com' }),
    identify('id:1', { unsubscribed: true }),
    identify('id:1', { unsubscribed: false }),
    identify('id:1', { svc_subscription_preferences: { topics: { topic_1: true } } }),
    ...REPORTING_EVENT_TYPES.filter((type) => isMessageChannel(channelOf(type))).map((type) =>
      metric(`message-${type}`, metricOf(type), {
        channel: channelOf(type),
        recipient: 'ada@example.com',
        reason: 'full',
        href: 'https://example.com',
        deviceToken: 'device-1',
      }),
    ),
    track('id:1', 'order_placed', { source: 'pipelines.track', data: { total: 5 } }),
    track('anonymous_id:v', 'Home', { kind: 'page' }),
    track(null, 'Cart', { kind: 'screen' }),
    identify('anonymous_id:v', { plan: 'pro' }),
    form('id:1', 'form-1', { city: 'Rome' }),
    identifyObject('acme', { name: 'Acme' }, { relationships: [entryOf('1')] }),
    relate('id:1', 'acme', { role: 'owner' }),
    relateObject('acme', 'id:1', {}, 'delete'),
    publish('invoice.paid', { application: 'acme', channel: 'eu' }),
    deleteObject('acme'),
    remove('id:1'),
    identify('id:2', {}),
    suppress('id:2'),
  ];
  let last = 0;
  const subscriptions = new IncomingSubscriptions([
    {
      environmentId: 1,
      webhookId: 1,
      applicationId: null,
      events: INCOMING_EVENT_TYPES,
      eventNames: null,
      attributeFilters: null,
      withImports: true,
      withLate: true,
      withPersonAttributes: true,
    },
  ]);
  const nothing = {
    identifiers: [],
    people: [],
    objects: [],
    relationships: [],
    devices: [],
    segmentMembers: [],
    messageDeliveries: [],
    takenEvents: [],
    visitors: [],
    deletedIdentifiers: [],
    newestVisitorPlaces: [],
    incoming: { subscriptions, people: new Map() },
  };
  return applyOperations(nothing, operations, {
    newPersonId: () => ++last,
    newObjectNumber: () => ++last,
    newId: () => `made-${++last}`,
    nowMs: NOW_MS,
  }).reports;
}

describe('the schema of every event type', () => {
  test('the schemas are exactly the schemas of the selectable event types', () => {
    expect([...EVENT_SCHEMAS.keys()]).toEqual(SELECTABLE_EVENT_TYPES);
  });

  test('every event of the apply step fits its schema, with and without content, and has only described fields', () => {
    const reports = reportEverything();
    expect(new Set(reports.map((report) => report.eventType))).toEqual(
      new Set([...REPORTING_EVENT_TYPES, ...INCOMING_EVENT_TYPES]),
    );
    for (const report of reports) {
      const schema = EVENT_SCHEMAS.get(report.eventType)!;
      for (const withContent of [true, false]) {
        const body = JSON.parse(deliveryBody(report, withContent)) as { data: JsonObject };
        expect({ type: report.eventType, error: schema.safeParse(body).error }).toEqual({
          type: report.eventType,
          error: undefined,
        });
        expect(Object.keys(schema.shape.data.shape)).toEqual(
          expect.arrayContaining(Object.keys(body.data)),
        );
      }
    }
  });

  test.each(SELECTABLE_EVENT_TYPES)(
    'the sample of %s fits its schema and is marked as a test',
    (type) => {
      const body: unknown = JSON.parse(sampleBody(type, 'made-1', NOW_MS));
      expect(EVENT_SCHEMAS.get(type)!.safeParse(body).error).toBeUndefined();
      expect(body).toMatchObject({ event_id: 'made-1', metric: metricOf(type), test: true });
    },
  );

  test.each([
    ['another metric', { metric: 'sent' }],
    ['another channel', { object_type: 'sms' }],
    ['a time with a fraction', { timestamp: 1.5 }],
    ['no person', { data: { delivery_id: 'm1' } }],
    [
      'a link that is no text',
      { data: { delivery_id: 'm1', identifiers: { id: null, email: null }, href: 1 } },
    ],
  ])('%s does not fit', (_, change) => {
    const body = JSON.parse(sampleBody('email_clicked', 'made-1', NOW_MS)) as JsonObject;
    expect(EVENT_SCHEMAS.get('email_clicked')!.safeParse({ ...body, ...change }).success).toBe(
      false,
    );
  });
});
