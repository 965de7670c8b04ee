import { parseEntity, parseTrackBatch } from '@sluice/domain/track/track-v2';
import { describe, expect, test } from 'vitest';
import { BASE, CONTEXT, MADE_ID, onlyIssue, onlyOperation, refusals } from '../support/parsing.ts';

const person = (action: string, rest: object = {}) =>
  parseEntity({ type: 'person', action, identifiers: { id: 'u1' }, ...rest }, CONTEXT);
const u1 = { kind: 'id', value: 'u1' };
const acme = { objectTypeId: 1, objectId: 'acme' };
const toAcme = [
  {
    identifiers: { object_type_id: '1', object_id: 'acme' },
    relationship_attributes: { role: 'admin' },
  },
];

describe('a person', () => {
  test('is identified, with relationships and the time of writing', () => {
    const parsed = person('identify', {
      attributes: { plan: 'pro' },
      timestamp: 1_714_559_999,
      cio_relationships: toAcme,
    });
    expect(onlyOperation(parsed)).toStrictEqual({
      ...BASE,
      type: 'person.identify',
      person: u1,
      attributes: { plan: 'pro' },
      mayCreate: true,
      attributesAtMs: 1_714_559_999_000,
      relationships: { action: 'add', entries: [{ object: acme, attributes: { role: 'admin' } }] },
    });
  });

  test('_timestamp among the attributes goes before timestamp', () => {
    expect(
      onlyOperation(
        person('identify', { attributes: { _timestamp: 1_714_000_005 }, timestamp: 9 }),
      ),
    ).toMatchObject({
      attributesAtMs: 1_714_000_005_000,
    });
  });

  test.each([
    ['delete', 'person.delete'],
    ['suppress', 'person.suppress'],
    ['unsuppress', 'person.unsuppress'],
  ])('%s is %s', (action, type) => {
    expect(onlyOperation(person(action))).toStrictEqual({ ...BASE, type, person: u1 });
  });

  test.each(['event', 'page', 'screen'])('has an event of kind %s', (kind) => {
    const parsed = person(kind, {
      name: ' n ',
      id: 'e1',
      timestamp: 1_714_559_999,
      attributes: { a: 1 },
    });
    expect(onlyOperation(parsed)).toStrictEqual({
      ...BASE,
      type: 'event.track',
      kind,
      person: u1,
      eventId: 'e1',
      name: 'n',
      data: { a: 1 },
      occurredAtMs: 1_714_559_999_000,
    });
    const anonymous = parseEntity(
      { type: 'person', action: kind, identifiers: { anonymous_id: 'a1' }, name: 'n' },
      CONTEXT,
    );
    expect(onlyOperation(anonymous)).toMatchObject({
      person: { kind: 'anonymous_id', value: 'a1' },
      eventId: MADE_ID,
    });
  });

  test.each(['viewed_content', 'clicked_content'])('%s is an event of that name', (action) => {
    expect(onlyOperation(person(action, { attributes: { contentId: 3 } }))).toMatchObject({
      type: 'event.track',
      kind: 'event',
      name: action,
      data: { contentId: 3 },
    });
  });

  test.each([
    ['add_relationships', 'add'],
    ['delete_relationships', 'delete'],
  ])('%s changes them', (action, verb) => {
    expect(onlyOperation(person(action, { svc_relationships: toAcme }))).toStrictEqual({
      ...BASE,
      type: 'person.relationships',
      person: u1,
      action: verb,
      entries: [{ object: acme, attributes: { role: 'admin' } }],
    });
    expect(refusals(person(action))).toEqual(['required svc_relationships']);
    expect(refusals(person(action, { svc_relationships: [] }))).toEqual([
      'required svc_relationships',
    ]);
    expect(refusals(person(action, { svc_relationships: [7] }))).toEqual([
      'invalid svc_relationships.0',
    ]);
    expect(refusals(person(action, { svc_relationships: {} }))).toEqual([
      'invalid svc_relationships',
    ]);
  });

  test('has devices by token', () => {
    const device = {
      token: 'tok',
      platform: 'ios',
      last_used: 1_714_559_999,
      attributes: { a: 'b' },
    };
    expect(onlyOperation(person('add_device', { device }))).toStrictEqual({
      ...BASE,
      type: 'device.add',
      person: u1,
      token: 'tok',
      platform: 'ios',
      lastUsedAtMs: 1_714_559_999_000,
      attributes: { a: 'b' },
    });
    expect(onlyOperation(person('delete_device', { device: { token: 'tok' } }))).toStrictEqual({
      ...BASE,
      type: 'device.delete',
      person: u1,
      token: 'tok',
    });
    expect(refusals(person('add_device'))).toEqual(['required device']);
    expect(refusals(person('delete_device', { device: {} }))).toEqual(['required device.token']);
  });

  test('is merged by primary and secondary, without identifiers', () => {
    const body = {
      type: 'person',
      action: 'merge',
      primary: { id: 'u1' },
      secondary: { email: 'old@example.com' },
    };
    expect(onlyOperation(parseEntity(body, CONTEXT))).toStrictEqual({
      ...BASE,
      type: 'person.merge',
      primary: u1,
      secondary: { kind: 'email', value: 'old@example.com' },
    });
  });

  test('has devices before it is known: by its anonymous id', () => {
    const visitor = { kind: 'anonymous_id', value: 'a1' };
    const body = { type: 'person', identifiers: { anonymous_id: 'a1' } };
    const device = { token: 't', platform: 'ios', attributes: { os: '18' } };
    const added = parseEntity({ ...body, action: 'add_device', device }, CONTEXT);
    expect(onlyOperation(added)).toStrictEqual({
      ...BASE,
      type: 'device.add',
      person: visitor,
      token: 't',
      platform: 'ios',
      attributes: { os: '18' },
    });
    const deleted = parseEntity(
      { ...body, action: 'delete_device', device: { token: 't' } },
      CONTEXT,
    );
    expect(onlyOperation(deleted)).toStrictEqual({
      ...BASE,
      type: 'device.delete',
      person: visitor,
      token: 't',
    });
  });

  test('cannot be named by an anonymous id if it must be known', () => {
    for (const action of ['delete', 'suppress', 'unsuppress', 'add_relationships']) {
      const body = {
        type: 'person',
        action,
        identifiers: { anonymous_id: 'a1' },
        device: { token: 't', platform: 'ios' },
        cio_relationships: toAcme,
      };
      expect(refusals(parseEntity(body, CONTEXT))).toEqual(['required identifiers']);
    }
  });
});

describe('refused calls', () => {
  test.each([
    [
      'object',
      'action is not an action of an object; send identify, identify_anonymous, delete, add_relationships or delete_relationships',
    ],
    ['delivery', 'action is not an action of a delivery; send event'],
  ])('with an unknown action name the actions of a type: %s', (type, message) => {
    const { issues } = parseEntity({ type, action: 'unknown' }, CONTEXT);
    expect(issues).toMatchObject([{ message }]);
  });

  test.each([
    [{}, ['required type', 'required action']],
    [{ type: 'person' }, ['required action']],
    [{ type: 5, action: 'identify' }, ['invalid type']],
    [{ type: 'thing', action: 'identify' }, ['unsupported type']],
    [{ type: 'person', action: 'constructor' }, ['unsupported action']],
    [{ type: 'object', action: 'event' }, ['unsupported action']],
    [{ type: 'person', action: 'identify' }, ['required identifiers']],
    [{ type: 'person', action: 'event', identifiers: { id: 'u1' } }, ['required name']],
    [
      { type: 'person', action: 'identify', identifiers: { id: 'u1' }, attributes: [] },
      ['invalid attributes'],
    ],
    [null, ['invalid -']],
    [[], ['invalid -']],
  ])('%j, with the field named', (body, expected) => {
    expect(refusals(parseEntity(body, CONTEXT))).toEqual(expected);
  });

  test('relationships that are named twice, because they may differ', () => {
    const attributes = {
      cio_relationships: { action: 'add_relationships', relationships: toAcme },
    };
    expect(refusals(person('identify', { attributes, cio_relationships: toAcme }))).toEqual([
      'invalid attributes.cio_relationships',
    ]);
  });
});

describe('batch', () => {
  test('takes the good items and reports the index, field and reason of each bad one', () => {
    const parsed = parseTrackBatch(
      {
        batch: [
          { type: 'person', action: 'delete', identifiers: { id: 'u1' } },
          {
            type: 'person',
            action: 'identify',
            identifiers: { id: 'u2' },
            attributes: { plan: 'x'.repeat(1_001) },
          },
          {
            type: 'object',
            action: 'delete',
            identifiers: { object_type_id: '1', object_id: 'acme' },
          },
        ],
      },
      CONTEXT,
    );
    expect(parsed.operations.map((operation) => operation.type)).toEqual([
      'person.delete',
      'object.delete',
    ]);
    expect(parsed.issues).toEqual([
      {
        code: 'too_long',
        field: 'attributes.plan',
        message: 'the value of attributes.plan is 1001 bytes long; the bound is 1000',
        batchIndex: 1,
        sample: 'x'.repeat(200),
      },
    ]);
  });

  test('an item has at most 32 KB, and is measured only if the body could hold a larger one', () => {
    const item = {
      type: 'person',
      action: 'event',
      identifiers: { id: 'u1' },
      name: 'e',
      attributes: { x: 'y'.repeat(33_000) },
    };
    const sized = (bodySizeBytes?: number) =>
      parseTrackBatch(
        { batch: [item] },
        bodySizeBytes === undefined ? CONTEXT : { ...CONTEXT, bodySizeBytes },
      );
    for (const bodySizeBytes of [undefined, 40_000]) {
      expect(onlyIssue(sized(bodySizeBytes))).toMatchObject({
        code: 'too_large',
        field: null,
        batchIndex: 0,
      });
      expect(sized(bodySizeBytes).issues[0]?.message).toContain('32 KB');
    }
    expect(sized(32_768).issues).toEqual([]);
  });

  test('holds at most 10,000 items', () => {
    const parsed = parseTrackBatch({ batch: Array.from({ length: 10_001 }, () => 1) }, CONTEXT);
    expect(onlyIssue(parsed)).toMatchObject({ code: 'too_large', field: 'batch' });
  });

  test('must hold a list', () => {
    expect(refusals(parseTrackBatch({}, CONTEXT))).toEqual(['required batch']);
    expect(refusals(parseTrackBatch({ batch: [] }, CONTEXT))).toEqual(['required batch']);
    expect(refusals(parseTrackBatch([], CONTEXT))).toEqual(['invalid -']);
  });
});
