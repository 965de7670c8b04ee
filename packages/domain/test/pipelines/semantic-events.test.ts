import { parsePipelines } from '@sluice/domain/pipelines/pipelines';
import { describe, expect, test } from 'vitest';
import {
  BASE,
  CONTEXT,
  onlyOperation,
  operationOf,
  RECEIVED_AT_MS,
  refusals,
} from '../support/parsing.ts';

const track = (event: string, rest: object = {}) =>
  parsePipelines('track', { userId: 'u1', event, ...rest }, CONTEXT);
const person = { kind: 'id', value: 'u1' };

describe('commands about a person', () => {
  test.each([
    ['User Deleted', 'person.delete'],
    ['Delete Person', 'person.delete'],
    ['User Suppressed', 'person.suppress'],
    ['Suppress Person', 'person.suppress'],
    ['User Unsuppressed', 'person.unsuppress'],
    ['Unsuppress Person', 'person.unsuppress'],
  ])('%s is %s and no event', (event, type) => {
    expect(onlyOperation(track(event))).toStrictEqual({ ...BASE, type, person });
    expect(onlyOperation(track(` ${event} `))).toMatchObject({ type });
  });

  test('they need a userId: an anonymous id is not enough', () => {
    expect(refusals(track('User Deleted', { userId: null, anonymousId: 'a1' }))).toEqual([
      'required userId',
    ]);
  });

  test('another letter case is an ordinary event', () => {
    expect(onlyOperation(track('user deleted'))).toMatchObject({
      type: 'event.track',
      name: 'user deleted',
    });
  });
});

describe('commands about a device', () => {
  const device = { token: 'tok', type: 'iOS', model: 'X', id: 'vendor' };

  test('Device Created or Updated adds it, with the rest of context and the properties as attributes', () => {
    const parsed = track('Device Created or Updated', {
      context: { device },
      properties: { app_version: '2', model: 'Y', _last_status: 'sent' },
      timestamp: '2024-05-01T00:00:00Z',
    });
    expect(onlyOperation(parsed)).toStrictEqual({
      ...BASE,
      type: 'device.add',
      person,
      token: 'tok',
      platform: 'ios',
      lastUsedAtMs: Date.parse('2024-05-01T00:00:00Z'),
      attributes: { model: 'Y', id: 'vendor', app_version: '2' },
    });
  });

  test('Device Deleted removes it', () => {
    expect(onlyOperation(track('Device Deleted', { context: { device } }))).toStrictEqual({
      ...BASE,
      type: 'device.delete',
      person,
      token: 'tok',
    });
  });

  test.each([
    ['Device Created or Updated', {}, ['required context.device']],
    [
      'Device Created or Updated',
      { device: {} },
      ['required context.device.token', 'required context.device.type'],
    ],
    [
      'Device Created or Updated',
      { device: { token: 't', type: 'toaster' } },
      ['invalid context.device.type'],
    ],
    ['Device Deleted', { device: { type: 'ios' } }, ['required context.device.token']],
  ])('%s with context %j is refused with the field named', (event, context, expected) => {
    expect(refusals(track(event, { context }))).toEqual(expected);
  });

  test.each(['Application Installed', 'Application Opened'])(
    '%s adds the device and stays an event',
    (event) => {
      const parsed = track(event, { context: { device }, properties: { referrer: 'ad' } });
      expect(parsed.issues).toEqual([]);
      expect(parsed.operations).toMatchObject([
        {
          type: 'device.add',
          token: 'tok',
          lastUsedAtMs: RECEIVED_AT_MS,
          attributes: { model: 'X', id: 'vendor' },
        },
        { type: 'event.track', name: event, data: { referrer: 'ad' } },
      ]);
      expect(operationOf(parsed, 'device.add').attributes).not.toHaveProperty('referrer');
    },
  );

  test('Application Uninstalled removes the device and stays an event', () => {
    expect(track('Application Uninstalled', { context: { device } }).operations).toMatchObject([
      { type: 'device.delete', token: 'tok' },
      { type: 'event.track', name: 'Application Uninstalled' },
    ]);
  });

  test.each([
    ['no device', {}],
    ['no token', { device: { type: 'ios' } }],
    ['no platform', { device: { token: 't' } }],
  ])('Application Opened with %s is an event alone', (_, context) => {
    expect(onlyOperation(track('Application Opened', { context }))).toMatchObject({
      type: 'event.track',
    });
  });

  test.each([
    ['Device Created or Updated', ['device.add']],
    ['Device Deleted', ['device.delete']],
    ['Application Installed', ['device.add', 'event.track']],
    ['Application Opened', ['device.add', 'event.track']],
    ['Application Uninstalled', ['device.delete', 'event.track']],
  ])('%s is about the visitor if it names no user', (event, types) => {
    const visitor = { kind: 'anonymous_id', value: 'a1' };
    const ids = { userId: null, anonymousId: 'a1' };
    const { operations } = track(event, { ...ids, context: { device } });
    expect(operations).toMatchObject(types.map((type) => ({ type, person: visitor })));
  });

  test('a userId comes before the anonymous id beside it', () => {
    const parsed = track('Device Created or Updated', { anonymousId: 'a1', context: { device } });
    expect(onlyOperation(parsed)).toMatchObject({ type: 'device.add', person });
  });
});

describe('commands about objects', () => {
  test('Relationship Deleted ends the relationship of that person, also of an anonymous one', () => {
    const properties = { objectId: 'acme', objectTypeId: '2' };
    expect(onlyOperation(track('Relationship Deleted', { properties }))).toStrictEqual({
      ...BASE,
      type: 'object.relationships',
      object: { objectTypeId: 2, objectId: 'acme' },
      action: 'delete',
      entries: [{ person, attributes: {} }],
    });
    expect(
      onlyOperation(track('Relationship Deleted', { userId: null, anonymousId: 'a1', properties })),
    ).toMatchObject({ entries: [{ person: { kind: 'anonymous_id', value: 'a1' } }] });
  });

  test('Object Deleted deletes the object, of type 1 by default; its id stays text even if it looks like a date', () => {
    expect(
      onlyOperation(track('Object Deleted', { properties: { objectId: '2024-05-01T00:00:00Z' } })),
    ).toStrictEqual({
      ...BASE,
      type: 'object.delete',
      object: { objectTypeId: 1, objectId: '2024-05-01T00:00:00Z' },
    });
    expect(
      onlyOperation(track('Object Deleted', { properties: { object_id: 7, object_type_id: 3 } })),
    ).toMatchObject({ object: { objectTypeId: 3, objectId: '7' } });
  });

  test('without objectId they are refused', () => {
    expect(refusals(track('Object Deleted'))).toEqual(['required properties.objectId']);
    expect(refusals(track('Relationship Deleted', { properties: {} }))).toEqual([
      'required properties.objectId',
    ]);
  });
});

describe('reports', () => {
  test('Report Delivery Event is a metric of that delivery', () => {
    const properties = {
      deliveryId: 'RPILAgUBcRhIBqSfeiIwdIYJKxTY',
      metric: 'clicked',
      recipient: 'ada@example.com',
      href: 'https://x.example',
      actionName: 'cta',
      actionValue: 'https://y.example',
    };
    const parsed = track('Report Delivery Event', {
      properties,
      messageId: 'm1',
      timestamp: '2024-05-01T00:00:00Z',
    });
    expect(onlyOperation(parsed)).toStrictEqual({
      ...BASE,
      type: 'metric.report',
      deliveryId: 'RPILAgUBcRhIBqSfeiIwdIYJKxTY',
      metric: 'clicked',
      eventId: 'm1',
      occurredAtMs: Date.parse('2024-05-01T00:00:00Z'),
      recipient: 'ada@example.com',
      href: 'https://x.example',
      actionName: 'cta',
      actionValue: 'https://y.example',
    });
  });

  test.each([
    [{ metric: 'opened' }, ['required properties.deliveryId']],
    [{ deliveryId: 'd' }, ['required properties.metric']],
    [{ deliveryId: 'd', metric: 'lost' }, ['invalid properties.metric']],
    [{ deliveryId: 'd', metric: 'opened', reason: {} }, ['invalid properties.reason']],
  ])('Report Delivery Event with %j is refused with the field named', (properties, expected) => {
    expect(refusals(track('Report Delivery Event', { properties }))).toEqual(expected);
  });

  test.each(['viewed_content', 'clicked_content'])(
    'Report Content Event of %s is an event of that name',
    (actionType) => {
      const parsed = track('Report Content Event', {
        properties: { actionType, contentId: 3, templateId: 4 },
      });
      expect(onlyOperation(parsed)).toMatchObject({
        type: 'event.track',
        kind: 'event',
        name: actionType,
        data: { contentId: 3, templateId: 4 },
      });
    },
  );

  test('Report Content Event without a known action is kept as it came', () => {
    expect(
      onlyOperation(track('Report Content Event', { properties: { actionType: 'x' } })),
    ).toMatchObject({
      name: 'Report Content Event',
      data: { actionType: 'x' },
    });
  });
});
