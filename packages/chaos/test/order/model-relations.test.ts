/**
 * The reference model's rules about relationships and devices. Each rule has its section.
 * `spec` is ingestion-webhooks.md, `§` are sections of ingestion-conventions.md.
 */
import { expect, test } from 'vitest';
import type { Body, Call } from '../../src/order/model/call.ts';
import {
  put,
  post,
  pipelines,
  entity,
  merge,
  device,
  relate,
  after,
} from '../support/model-calls.ts';

test('spec §2, §1.6: a merge keeps devices and relationships of both', () => {
  const [only] = after(put('p'), device('q', '1'), relate('q', 1), merge('p', 'q')).people;
  expect(only?.devices).toEqual({ t: { platform: 'ios', attributes: { v: '1' } } });
  expect(only?.relationships).toEqual({ '1/g': { role: 1 } });
});

test('decided: a device or relationship that both have stays as the primary has it', () => {
  const calls = [
    device('p', '1'),
    relate('p', 1),
    device('q', '2'),
    relate('q', 2),
    merge('p', 'q'),
  ];
  const [only] = after(...calls).people;
  expect(only?.devices).toEqual({ t: { platform: 'ios', attributes: { v: '1' } } });
  expect(only?.relationships).toEqual({ '1/g': { role: 1 } });
});

test('§2.1, §3.4: relationships and devices end, and a deleted object loses its relationships', () => {
  const gone = after(
    relate('p', 1),
    device('p', '1'),
    pipelines('track', {
      userId: 'p',
      event: 'Relationship Deleted',
      properties: { objectId: 'g' },
    }),
    { api: 'v1', method: 'DELETE', path: ['customers', 'p', 'devices', 't'] },
  );
  expect(gone.people[0]).toMatchObject({ devices: {}, relationships: {} });
  const object = { object_type_id: '1', object_id: 'g' };
  const deleted = after(
    relate('p', 1),
    entity({ type: 'object', action: 'delete', identifiers: object }),
  );
  expect(deleted.people[0]?.relationships).toEqual({});
});

test('§1.3, §1.6: an identify with relationships is one write, which applies or is ignored as a whole', () => {
  const add = (object_id: string): Body => ({
    svc_relationships: {
      action: 'add_relationships',
      relationships: [{ identifiers: { object_type_id: '1', object_id } }],
    },
  });
  const suppressed = after(
    put('p@x.example'),
    post('customers', 'p@x.example', 'suppress'),
    put('p'),
    put('p', { email: 'p@x.example', ...add('g') }),
  );
  expect(suppressed.people[0]?.relationships).toEqual({});
  expect(after(put('p', { _update: true, ...add('g') })).people).toEqual([]);
  expect(after(put('p', add('g'))).people[0]?.relationships).toEqual({ '1/g': {} });
});

test('H 4, §2.1: a visitor’s group and identify_anonymous relate the person at identification', () => {
  const { people: all } = after(
    pipelines('group', { anonymousId: 'v', groupId: 'g1' }),
    entity({
      type: 'object',
      action: 'identify_anonymous',
      identifiers: { object_type_id: '1', object_id: 'g2' },
      svc_relationships: [{ identifiers: { anonymous_id: 'v' } }],
    }),
    put('p', { anonymous_id: 'v' }),
  );
  expect(Object.keys(all[0]?.relationships ?? {})).toEqual(['1/g1', '1/g2']);
});

const entries = (...calls: readonly Call[]) =>
  after(...calls).people[0]?.events.map(({ type, name, data }) => [type, name, data]);
const unrelate = entity({
  type: 'person',
  action: 'delete_relationships',
  identifiers: { id: 'p' },
  svc_relationships: [{ identifiers: { object_type_id: '1', object_id: 'g' } }],
});

test('§1.3: the history has each beginning and end of a relationship, and no call without effect', () => {
  const calls = [unrelate, relate('p', 1), relate('p', 2), unrelate, unrelate, relate('p', 3)];
  expect(entries(put('p'), ...calls)).toEqual([
    ['add_relationship', '1/g', { role: 1 }],
    ['delete_relationship', '1/g', { role: 2 }],
    ['add_relationship', '1/g', { role: 3 }],
  ]);
});

test('H 4: a visitor’s relationship is in the history from the identification on, if it took effect', () => {
  const group = (...roles: readonly number[]): Call[] =>
    roles.map((role) =>
      pipelines('group', {
        anonymousId: 'v',
        groupId: 'g',
        traits: { relationship_traits: { role } },
      }),
    );
  const login = put('p', { anonymous_id: 'v' });
  expect(entries(...group(1, 2), login)).toEqual([['add_relationship', '1/g', { role: 2 }]]);
  expect(entries(relate('p', 3), ...group(1), login)).toEqual([
    ['add_relationship', '1/g', { role: 3 }],
  ]);
  // Removed by the person after it began.
  expect(entries(put('p'), ...group(1), unrelate, login)).toEqual([]);
});
