import {
  parseAddDevice,
  parseAnonymousEvent,
  parseDeleteDevice,
  parseDeletePerson,
  parseIdentify,
  parseMergePeople,
  parsePersonEvent,
  parseSuppressPerson,
  parseUnsuppressPerson,
} from '@sluice/domain/track/track-v1';
import { describe, expect, test } from 'vitest';
import {
  BASE,
  CONTEXT,
  MADE_ID,
  onlyOperation,
  operationOf,
  RECEIVED_AT_MS,
  refusals,
  warnings,
} from '../support/parsing.ts';

const u1 = { kind: 'id', value: 'u1' };

describe('the person in the path', () => {
  test('is known by its shape', () => {
    expect(onlyOperation(parseDeletePerson('ada+1@example.com', CONTEXT))).toStrictEqual({
      ...BASE,
      type: 'person.delete',
      person: { kind: 'email', value: 'ada+1@example.com' },
    });
    expect(onlyOperation(parseSuppressPerson('cio_a3000001', CONTEXT))).toStrictEqual({
      ...BASE,
      type: 'person.suppress',
      person: { kind: 'svc_id', value: 'a3000001' },
    });
    expect(onlyOperation(parseUnsuppressPerson('u/1', CONTEXT))).toMatchObject({
      type: 'person.unsuppress',
      person: { kind: 'id', value: 'u/1' },
    });
  });

  test('must be there, be storable and have at most 150 bytes, also beside a body without escapes', () => {
    const context = { ...CONTEXT, hasEscapes: false };
    expect(refusals(parseDeletePerson(' ', context))).toEqual(['required identifier']);
    expect(refusals(parseIdentify('a\0', {}, context))).toEqual(['invalid identifier']);
    expect(refusals(parsePersonEvent('x'.repeat(151), { name: 'e' }, context))).toEqual([
      'too_long identifier',
    ]);
    expect(refusals(parseDeleteDevice('u1', 't\0', context))).toEqual(['invalid device_id']);
  });
});

describe('identify', () => {
  test('takes the body as attributes', () => {
    expect(
      onlyOperation(parseIdentify('u1', { email: 'ada@example.com', plan: 'pro' }, CONTEXT)),
    ).toStrictEqual({
      ...BASE,
      type: 'person.identify',
      person: u1,
      attributes: { email: 'ada@example.com', plan: 'pro' },
      mayCreate: true,
    });
  });

  test.each([
    ['cio_relationships', 'add_relationships', 'add'],
    ['svc_relationships', 'delete_relationships', 'delete'],
  ])('%s with %s is read and is no attribute', (key, action, expected) => {
    const relationships = [
      {
        identifiers: { object_type_id: '1', object_id: 'acme' },
        relationship_attributes: { role: 'admin' },
      },
      { identifiers: { cio_object_id: 'ob000001' } },
    ];
    const operation = onlyOperation(
      parseIdentify('u1', { plan: 'pro', [key]: { action, relationships } }, CONTEXT),
    );
    expect(operation).toStrictEqual({
      ...BASE,
      type: 'person.identify',
      person: u1,
      attributes: { plan: 'pro' },
      mayCreate: true,
      relationships: {
        action: expected,
        entries: [
          { object: { objectTypeId: 1, objectId: 'acme' }, attributes: { role: 'admin' } },
          { object: { svcObjectId: 'ob000001' }, attributes: {} },
        ],
      },
    });
  });

  test.each([
    [{ relationships: [] }, 'required svc_relationships.action'],
    [{ action: 'set', relationships: [] }, 'invalid svc_relationships.action'],
    [{ action: 'add_relationships', relationships: {} }, 'invalid svc_relationships.relationships'],
    [
      { action: 'add_relationships', relationships: [7] },
      'invalid svc_relationships.relationships.0',
    ],
    [
      { action: 'add_relationships', relationships: [{ identifiers: { object_type_id: 1 } }] },
      'required svc_relationships.relationships.0.identifiers.object_id',
    ],
    [
      {
        action: 'add_relationships',
        relationships: [{ identifiers: { cio_object_id: 'o' }, relationship_attributes: 1 }],
      },
      'invalid svc_relationships.relationships.0.relationship_attributes',
    ],
    [[], 'invalid svc_relationships'],
  ])('relationships %j are refused with the place named', (relationships, refusal) => {
    expect(refusals(parseIdentify('u1', { svc_relationships: relationships }, CONTEXT))).toEqual([
      refusal,
    ]);
  });

  test('a body of null, which is Go’s nil map, is no attributes', () => {
    expect(onlyOperation(parseIdentify('u1', null, CONTEXT))).toMatchObject({ attributes: {} });
  });

  test.each([[[]], ['x'], [7], [undefined]])('a body of %j is refused', (body) => {
    expect(refusals(parseIdentify('u1', body, CONTEXT))).toEqual(['invalid -']);
  });
});

describe('events', () => {
  test('of a person', () => {
    const body = {
      name: ' bought ',
      data: { price: 3 },
      timestamp: 1_714_559_999,
      id: '01ARZ3NDEKTSV4RRFFQ69G5FAV',
      anonymous_id: 'a1',
    };
    expect(onlyOperation(parsePersonEvent('u1', body, CONTEXT))).toStrictEqual({
      ...BASE,
      type: 'event.track',
      kind: 'event',
      person: u1,
      anonymousId: 'a1',
      eventId: '01ARZ3NDEKTSV4RRFFQ69G5FAV',
      name: 'bought',
      data: { price: 3 },
      occurredAtMs: 1_714_559_999_000,
    });
  });

  test('without data, id and time (Go sends null)', () => {
    expect(
      onlyOperation(
        parsePersonEvent('u1', { name: 'e', data: null, id: null, timestamp: null }, CONTEXT),
      ),
    ).toMatchObject({
      data: {},
      eventId: MADE_ID,
      occurredAtMs: RECEIVED_AT_MS,
    });
  });

  test('of a page or a screen, named by an address', () => {
    const name = `https://x.example/${'a'.repeat(500)}`;
    expect(onlyOperation(parsePersonEvent('u1', { type: 'page', name }, CONTEXT))).toMatchObject({
      kind: 'page',
      name,
    });
    expect(onlyOperation(parsePersonEvent('u1', { type: 'screen', name }, CONTEXT))).toMatchObject({
      kind: 'screen',
    });
    expect(refusals(parsePersonEvent('u1', { name }, CONTEXT))).toEqual(['too_long name']);
    expect(refusals(parsePersonEvent('u1', { type: 'view', name: 'e' }, CONTEXT))).toEqual([
      'invalid type',
    ]);
  });

  test('in milliseconds are taken, with a warning', () => {
    const parsed = parsePersonEvent('u1', { name: 'e', timestamp: 1_714_559_999_123 }, CONTEXT);
    expect(operationOf(parsed, 'event.track').occurredAtMs).toBe(1_714_559_999_123);
    expect(warnings(parsed)).toEqual(['timestamp_in_milliseconds timestamp']);
  });

  test('date-times among the data stay texts', () => {
    const data = { at: '2024-05-01T00:00:00Z' };
    expect(onlyOperation(parsePersonEvent('u1', { name: 'e', data }, CONTEXT))).toMatchObject({
      data,
    });
  });

  test('of an anonymous id', () => {
    expect(
      onlyOperation(parseAnonymousEvent({ name: 'e', anonymous_id: 'a1' }, CONTEXT)),
    ).toMatchObject({
      person: { kind: 'anonymous_id', value: 'a1' },
    });
  });

  test.each([[''], [null], [undefined]])(
    'with anonymous_id %j invite a recipient and have no person',
    (anonymousId) => {
      const body = {
        name: 'invite',
        anonymous_id: anonymousId,
        data: { recipient: 'bob@example.com' },
      };
      expect(onlyOperation(parseAnonymousEvent(body, CONTEXT))).toMatchObject({
        person: null,
        data: { recipient: 'bob@example.com' },
      });
      expect(refusals(parseAnonymousEvent({ ...body, data: {} }, CONTEXT))).toEqual([
        'required data.recipient',
      ]);
    },
  );

  test('with an anonymous id that cannot be kept are refused for that alone', () => {
    expect(refusals(parseAnonymousEvent({ name: 'e', anonymous_id: {} }, CONTEXT))).toEqual([
      'invalid anonymous_id',
    ]);
  });

  test.each([
    [{}, 'required name'],
    [{ name: ' ' }, 'required name'],
    [{ name: 'e', data: 'x' }, 'invalid data'],
    [{ name: 'e', id: 'x'.repeat(151) }, 'too_long id'],
  ])('%j are refused with the field named', (body, refusal) => {
    expect(refusals(parsePersonEvent('u1', body, CONTEXT))).toEqual([refusal]);
  });
});

describe('devices', () => {
  test('have attributes flat, nested or both; read-only ones are left out', () => {
    const device = {
      id: 'tok',
      platform: 'android',
      last_used: '1714559999',
      device_os: '14',
      attributes: { device_os: '15', cio_sdk_version: '3', _last_status: 'sent' },
      _last_status: 'sent',
    };
    expect(onlyOperation(parseAddDevice('u1', { device }, CONTEXT))).toStrictEqual({
      ...BASE,
      type: 'device.add',
      person: u1,
      token: 'tok',
      platform: 'android',
      lastUsedAtMs: 1_714_559_999_000,
      attributes: { device_os: '15', svc_sdk_version: '3' },
    });
  });

  test('without last_used have no time of last use', () => {
    expect(
      onlyOperation(parseAddDevice('u1', { device: { id: 't', platform: 'ios' } }, CONTEXT)),
    ).not.toHaveProperty('lastUsedAtMs');
  });

  test.each([
    [{}, ['required device']],
    [{ device: 'x' }, ['invalid device']],
    [{ device: {} }, ['required device.id', 'required device.platform']],
    [{ device: { id: 't', platform: 'web' } }, ['invalid device.platform']],
    [{ device: { id: 't', platform: 'ios', attributes: [] } }, ['invalid device.attributes']],
    [{ device: { id: 'x'.repeat(1_001), platform: 'ios' } }, ['too_long device.id']],
  ])('%j are refused with the field named', (body, expected) => {
    expect(refusals(parseAddDevice('u1', body, CONTEXT))).toEqual(expected);
  });

  test('are deleted by their token', () => {
    expect(onlyOperation(parseDeleteDevice('u1', 'to/k', CONTEXT))).toStrictEqual({
      ...BASE,
      type: 'device.delete',
      person: u1,
      token: 'to/k',
    });
    expect(refusals(parseDeleteDevice('u1', '', CONTEXT))).toEqual(['required device_id']);
  });
});

describe('merge', () => {
  test('names both by exactly one of id, email, svc_id', () => {
    const body = { primary: { email: 'ada@example.com' }, secondary: { cio_id: 'a3000001' } };
    expect(onlyOperation(parseMergePeople(body, CONTEXT))).toStrictEqual({
      ...BASE,
      type: 'person.merge',
      primary: { kind: 'email', value: 'ada@example.com' },
      secondary: { kind: 'svc_id', value: 'a3000001' },
    });
    expect(refusals(parseMergePeople({ primary: { id: 'u1' } }, CONTEXT))).toEqual([
      'required secondary',
    ]);
    expect(
      refusals(
        parseMergePeople(
          { primary: { id: 'u1', email: 'a@b.co' }, secondary: { phone: '+4915112345678' } },
          CONTEXT,
        ),
      ),
    ).toEqual(['invalid primary', 'required secondary']);
  });
});
