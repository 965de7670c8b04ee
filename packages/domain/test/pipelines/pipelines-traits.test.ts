import { parsePipelines, type PipelinesCall } from '@sluice/domain/pipelines/pipelines';
import { describe, expect, test } from 'vitest';
import {
  BASE,
  CONTEXT,
  onlyOperation,
  operationOf,
  refusals,
  warnings,
} from '../support/parsing.ts';

const parse = (call: PipelinesCall, body: unknown) => parsePipelines(call, body, CONTEXT);

describe('identify', () => {
  test('becomes the person’s attributes, with the anonymous id beside them', () => {
    const parsed = parse('identify', {
      userId: 'u1',
      anonymousId: 'a1',
      traits: { plan: 'pro' },
      timestamp: '2020-01-01T00:00:00Z',
    });
    expect(onlyOperation(parsed)).toStrictEqual({
      ...BASE,
      type: 'person.identify',
      person: { kind: 'id', value: 'u1' },
      anonymousId: 'a1',
      attributes: { plan: 'pro' },
      mayCreate: true,
    });
  });

  test('without userId is by the email among the traits, then by the anonymous id', () => {
    expect(
      onlyOperation(
        parse('identify', { userId: '', anonymousId: 'a1', traits: { email: 'ada@example.com' } }),
      ),
    ).toMatchObject({
      person: { kind: 'email', value: 'ada@example.com' },
      anonymousId: 'a1',
    });
    const nonsense = parse('identify', { anonymousId: 'a1', traits: { email: 'nonsense' } });
    expect(warnings(nonsense)).toEqual(['email_invalid traits.email']);
    const anonymous = operationOf(nonsense, 'person.identify');
    expect(anonymous).toMatchObject({ person: { kind: 'anonymous_id', value: 'a1' } });
    expect(anonymous).not.toHaveProperty('anonymousId');
  });

  test('accepts null traits and missing traits', () => {
    for (const traits of [null, undefined]) {
      expect(onlyOperation(parse('identify', { userId: 'u1', traits }))).toMatchObject({
        attributes: {},
      });
    }
  });

  test.each([
    [{ traits: {} }, 'required userId'],
    [{ userId: null, anonymousId: null }, 'required userId'],
    [{ userId: 'u1', traits: [] }, 'invalid traits'],
    [{ userId: 'u1', traits: 7 }, 'invalid traits'],
    [{ userId: 'u1', anonymousId: 'x'.repeat(151) }, 'too_long anonymousId'],
  ])('%j is refused with the field named', (body, refusal) => {
    expect(refusals(parse('identify', body))).toEqual([refusal]);
  });

  test('objectId among the traits is a relationship, of type 1 by default', () => {
    const traits = {
      plan: 'pro',
      objectId: 'acme',
      relationshipAttributes: { role: 'admin', since: '2024-05-01T00:00:00Z' },
    };
    expect(onlyOperation(parse('identify', { userId: 'u1', traits }))).toMatchObject({
      attributes: { plan: 'pro' },
      relationships: {
        action: 'add',
        entries: [
          {
            object: { objectTypeId: 1, objectId: 'acme' },
            attributes: { role: 'admin', since: 1_714_521_600 },
          },
        ],
      },
    });
    expect(
      onlyOperation(
        parse('identify', { userId: 'u1', traits: { objectId: 'acme', objectTypeId: '3' } }),
      ),
    ).toMatchObject({
      attributes: {},
      relationships: { entries: [{ object: { objectTypeId: 3, objectId: 'acme' } }] },
    });
  });

  test('traits that only look like a relationship stay traits', () => {
    const traits = { objectTypeId: 'kind', relationship_traits: 'x' };
    expect(onlyOperation(parse('identify', { userId: 'u1', traits }))).toMatchObject({
      attributes: traits,
    });
  });
});

describe('group', () => {
  test('is an object with its attributes, and the person’s relationship to it', () => {
    const traits = {
      name: 'Acme',
      object_type_id: '2',
      createdAt: '2024-05-01T00:00:00Z',
      relationship_traits: { role: 'admin' },
    };
    expect(onlyOperation(parse('group', { userId: 'u1', groupId: 'acme', traits }))).toStrictEqual({
      ...BASE,
      type: 'object.identify',
      object: { objectTypeId: 2, objectId: 'acme' },
      attributes: { name: 'Acme', created_at: 1_714_521_600 },
      relationships: [{ person: { kind: 'id', value: 'u1' }, attributes: { role: 'admin' } }],
    });
  });

  test('needs no person, and then relates no person', () => {
    expect(onlyOperation(parse('group', { groupId: 5 }))).toMatchObject({
      object: { objectTypeId: 1, objectId: '5' },
      relationships: [],
    });
  });

  test('relates the anonymous id if there is no userId', () => {
    expect(onlyOperation(parse('group', { anonymousId: 'a1', groupId: 'acme' }))).toMatchObject({
      relationships: [{ person: { kind: 'anonymous_id', value: 'a1' }, attributes: {} }],
    });
  });

  test("the field's names are read too, and the spec's come first", () => {
    const traits = {
      relationshipAttributes: { role: 'b' },
      relationship_traits: { role: 'a' },
      objectTypeId: 4,
      objectAttributes: { city: 'Bonn', name: 'inner' },
      name: 'outer',
    };
    expect(onlyOperation(parse('group', { userId: 'u1', groupId: 'acme', traits }))).toMatchObject({
      object: { objectTypeId: 4 },
      attributes: { city: 'Bonn', name: 'outer' },
      relationships: [{ attributes: { role: 'a' } }],
    });
  });

  test.each([
    [{ userId: 'u1' }, 'required groupId'],
    [{ groupId: 'g', traits: 'x' }, 'invalid traits'],
    [{ groupId: 'g', traits: { object_type_id: 'company' } }, 'invalid traits.object_type_id'],
    [
      { groupId: 'g', userId: 'u1', traits: { relationship_traits: [] } },
      'invalid traits.relationship_traits',
    ],
    [{ groupId: 'g', traits: { objectAttributes: 'x' } }, 'invalid traits.objectAttributes'],
  ])('%j is refused with the field named', (body, refusal) => {
    expect(refusals(parse('group', body))).toEqual([refusal]);
  });
});
