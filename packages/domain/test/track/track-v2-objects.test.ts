import { parseEntity } from '@sluice/domain/track/track-v2';
import { describe, expect, test } from 'vitest';
import {
  BASE,
  CONTEXT,
  MADE_ID,
  onlyOperation,
  RECEIVED_AT_MS,
  refusals,
} from '../support/parsing.ts';

const object = (action: string, rest: object = {}) =>
  parseEntity(
    { type: 'object', action, identifiers: { object_type_id: '1', object_id: 'acme' }, ...rest },
    CONTEXT,
  );
const u1 = { kind: 'id', value: 'u1' };
const acme = { objectTypeId: 1, objectId: 'acme' };
const toU1 = [{ identifiers: { id: 'u1' }, relationship_attributes: { role: 'admin' } }];

describe('an object', () => {
  test('is identified with people, and its identifiers are not attributes', () => {
    const parsed = object('identify', {
      attributes: { name: 'Acme', object_id: 'other', cio_object_id: 'x' },
      cio_relationships: toU1,
      timestamp: 1_714_559_999,
    });
    expect(onlyOperation(parsed)).toStrictEqual({
      ...BASE,
      type: 'object.identify',
      object: acme,
      attributes: { name: 'Acme' },
      relationships: [{ person: u1, attributes: { role: 'admin' } }],
      attributesAtMs: 1_714_559_999_000,
    });
  });

  test('is identified with anonymous people', () => {
    const parsed = object('identify_anonymous', {
      cio_relationships: [{ identifiers: { anonymous_id: 'a1' } }],
    });
    expect(onlyOperation(parsed)).toMatchObject({
      type: 'object.identify',
      relationships: [{ person: { kind: 'anonymous_id', value: 'a1' }, attributes: {} }],
    });
  });

  test('is deleted', () => {
    expect(onlyOperation(object('delete'))).toStrictEqual({
      ...BASE,
      type: 'object.delete',
      object: acme,
    });
  });

  test.each([
    ['add_relationships', 'add'],
    ['delete_relationships', 'delete'],
  ])('%s changes its people', (action, verb) => {
    expect(onlyOperation(object(action, { cio_relationships: toU1 }))).toStrictEqual({
      ...BASE,
      type: 'object.relationships',
      object: acme,
      action: verb,
      entries: [{ person: u1, attributes: { role: 'admin' } }],
    });
    expect(refusals(object(action, { cio_relationships: [] }))).toEqual([
      'required cio_relationships',
    ]);
    expect(refusals(object(action, {}))).toEqual(['required svc_relationships']);
  });
});

describe('a delivery', () => {
  test('is reported about by the device that got it', () => {
    const body = {
      type: 'delivery',
      action: 'event',
      identifiers: { id: 'd1' },
      name: 'opened',
      attributes: { device_token: 'tok' },
    };
    expect(onlyOperation(parseEntity(body, CONTEXT))).toStrictEqual({
      ...BASE,
      type: 'metric.report',
      deliveryId: 'd1',
      metric: 'opened',
      occurredAtMs: RECEIVED_AT_MS,
      eventId: MADE_ID,
      channel: 'push',
      deviceToken: 'tok',
    });
    expect(refusals(parseEntity({ ...body, name: 'bounced' }, CONTEXT))).toEqual(['invalid name']);
    expect(refusals(parseEntity({ ...body, identifiers: null }, CONTEXT))).toEqual([
      'required identifiers.id',
    ]);
    expect(refusals(parseEntity({ ...body, action: 'delete' }, CONTEXT))).toEqual([
      'unsupported action',
    ]);
  });
});
