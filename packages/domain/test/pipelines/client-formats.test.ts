/** Fields of other services' clients for which ours has one place. */
import { parsePipelines, type PipelinesCall } from '@sluice/domain/pipelines/pipelines';
import { describe, expect, test } from 'vitest';
import { CONTEXT, onlyOperation, operationOf, warnings } from '../support/parsing.ts';

const parse = (call: PipelinesCall, body: unknown) => parsePipelines(call, body, CONTEXT);

describe('traits in the context', () => {
  const context = { traits: { email: 'c@x.io', createdAt: '2024-05-01T10:20:30Z' } };
  const attributes = { email: 'c@x.io', created_at: 1_714_558_830 };

  test.each([{}, { traits: null }, { traits: {} }, { traits: ' ' }])(
    'become the traits of an identify without traits (%j)',
    (given) => {
      const call = { userId: 'u1', context, ...given };
      expect(onlyOperation(parse('identify', call))).toMatchObject({ attributes });
      const batch = [{ type: 'identify', ...call }];
      expect(onlyOperation(parse('batch', { batch }))).toMatchObject({ attributes });
    },
  );

  test('do not add to traits that the call has', () => {
    const call = { userId: 'u1', traits: { plan: 'pro' }, context };
    expect(onlyOperation(parse('identify', call))).toMatchObject({ attributes: { plan: 'pro' } });
    const group = onlyOperation(parse('group', { ...call, groupId: 'g' }));
    expect(group).toMatchObject({ attributes: { plan: 'pro' } });
  });

  test('identify by their email, and name each fault by its place', () => {
    expect(onlyOperation(parse('identify', { context }))).toMatchObject({
      person: { kind: 'email', value: 'c@x.io' },
    });
    const wrong = { userId: 'u1', context: { traits: { email: 'N/A', ids: 2 ** 60 } } };
    expect(warnings(parse('identify', wrong))).toEqual([
      'email_invalid context.traits.email',
      'number_rounded context.traits.ids',
    ]);
  });

  test('become the traits of a group without traits, but not of one with empty traits', () => {
    const call = { userId: 'u1', groupId: 'g', context: { traits: { name: 'Acme' } } };
    expect(onlyOperation(parse('group', call))).toMatchObject({ attributes: { name: 'Acme' } });
    expect(onlyOperation(parse('group', { ...call, traits: {} }))).toMatchObject({
      attributes: {},
    });
  });

  test('name the object that a person is related to', () => {
    const traits = { objectId: 'acme', object_type_id: 2, relationship_traits: { role: 'x' } };
    expect(onlyOperation(parse('identify', { userId: 'u1', context: { traits } }))).toMatchObject({
      attributes: {},
      relationships: {
        entries: [{ object: { objectTypeId: 2, objectId: 'acme' }, attributes: { role: 'x' } }],
      },
    });
  });

  test('do not change an event, and are left out with an issue if they are not an object', () => {
    expect(onlyOperation(parse('track', { userId: 'u1', event: 'e', context }))).toMatchObject({
      type: 'event.track',
      data: {},
    });
    expect(warnings(parse('identify', { userId: 'u1', context: { traits: ['x'] } }))).toEqual([
      'value_not_understood context.traits',
    ]);
  });
});

describe.each(['page', 'screen'] as const)('the category of a %s beside its name', (kind) => {
  const view = (call: object) => {
    const parsed = parse(kind, { userId: 'u1', name: 'Home', category: 'docs', ...call });
    return operationOf(parsed, 'event.track');
  };

  test('becomes a property', () => {
    expect(view({ properties: { url: 'u' } }).data).toEqual({ url: 'u', category: 'docs' });
    expect(view({ properties: { category: null } }).data).toEqual({ category: 'docs' });
    expect(view({}).data).toEqual({ category: 'docs' });
    expect(view({ properties: null }).data).toEqual({ category: 'docs' });
    const batch = [{ type: kind, userId: 'u1', name: 'Home', category: 'docs' }];
    expect(onlyOperation(parse('batch', { batch }))).toMatchObject({ data: { category: 'docs' } });
  });

  test('gives way to a category of the properties, and is left out if it is blank', () => {
    expect(view({ properties: { category: 'own' } }).data).toEqual({ category: 'own' });
    expect(view({ category: ' ', properties: { url: 'u' } }).data).toEqual({ url: 'u' });
  });
});
