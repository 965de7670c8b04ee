/** Every identifier and object that an operation names is among its keys. */
import { expect, test } from 'vitest';
import type { Operation } from '../../src/operations/operation.ts';
import { keysOf } from '../../src/operations/operation-keys.ts';
import { shardKeyOf } from '../../src/operations/shard.ts';
import { identify, merge, remove, track } from '../../src/testing/sample-operations.ts';

const acme = { objectTypeId: 1, objectId: 'acme' };
const relationship = { object: acme, attributes: {} };
const base = { environmentId: 1, receivedAtMs: 1 };

const CASES: readonly (readonly [name: string, operation: Operation, keys: readonly string[]])[] = [
  ['an identify', identify('id:a', { email: 'A@X.y', plan: 'pro' }), ['a', 'a@x.y']],
  [
    'an identify with an anonymous id, a number as id and a relationship',
    identify(
      'email:a@x.y',
      { id: 5 },
      {
        anonymousId: 'anon',
        relationships: { action: 'add', entries: [relationship] },
      },
    ),
    ['a@x.y', '5', 'anon', 'object:1:acme'],
  ],
  ['a merge', merge('id:p', 'email:S@x.y'), ['p', 's@x.y']],
  [
    'an alias of an email, which can be the value of an anonymous id',
    { ...merge('id:p', 'email:S@x.y'), isAlias: true } as Operation,
    ['p', 's@x.y', 'S@x.y'],
  ],
  ['a deletion', remove('email:A@x.y'), ['a@x.y']],
  ['an event', track('id:a', 'e'), ['a']],
  ['an event with an anonymous id', track('id:a', 'e', { anonymousId: 'anon' }), ['a', 'anon']],
  [
    'a form with an email',
    {
      ...base,
      type: 'form.submit',
      formId: 'f',
      person: { kind: 'id', value: 'a' },
      fields: { email: 'A@x.y' },
    },
    ['a', 'a@x.y'],
  ],
  [
    'an object with people',
    {
      ...base,
      type: 'object.identify',
      object: acme,
      attributes: {},
      relationships: [{ person: { kind: 'id', value: 'a' }, attributes: {} }],
    },
    ['object:1:acme', 'a'],
  ],
  [
    'a report of a recipient',
    {
      ...base,
      type: 'metric.report',
      deliveryId: 'd',
      metric: 'opened',
      occurredAtMs: 1,
      recipient: 'A@x.y',
      eventId: 'e',
    },
    ['a@x.y', 'delivery:d'],
  ],
  [
    'a segment',
    {
      ...base,
      type: 'segment.change',
      segmentId: 3,
      action: 'add',
      people: [{ kind: 'email', value: 'A@x.y' }],
    },
    ['segment:3', 'a@x.y'],
  ],
];

test.each(CASES)('%s', (_, operation, keys) => {
  expect(keysOf(operation)).toEqual(keys);
  expect(keysOf(operation)[0]).toBe(shardKeyOf(operation));
});
