/** A moved filter of Convoy takes the same messages. */
import { matchesFilters } from '@sluice/domain/delivery/attribute-filter';
import type { JsonObject } from '@sluice/domain/values/json';
import { expect, test } from 'vitest';
import { attributeFiltersOf } from '../../src/moving/convoy-filters.ts';

/** Whether a published message with the payload would be sent. */
const isSent = (filters: readonly JsonObject[], payload: JsonObject): boolean =>
  matchesFilters(
    {
      environmentId: 1,
      eventId: 'e',
      eventType: 'message',
      objectType: 'message',
      metric: 'invoice.paid',
      occurredAtMs: 0,
      data: { payload },
    },
    attributeFiltersOf(filters)!,
  );

test.each<[string, JsonObject, JsonObject, JsonObject]>([
  ['a value', { type: 'paid' }, { type: 'paid' }, { type: 'due' }],
  ['a number', { total: 5 }, { total: 5 }, { total: 50 }],
  ['false', { isTest: false }, { isTest: false }, { isTest: true }],
  ['a value of a member', { a: { b: 'x' } }, { a: { b: 'x' } }, { a: { b: 'y' }, b: 'x' }],
  ['a key with dots', { 'a.b': 'x' }, { a: { b: 'x' } }, { a: { b: 'y' } }],
  ['an element of a list', { tags: 'x' }, { tags: ['y', 'x'] }, { tags: ['y'] }],
  ['a member of a list', { 'a.$.b': 1 }, { a: [{ b: 0 }, { b: 1 }] }, { a: [{ b: 0 }] }],
  ['all members', { a: 1, b: 2 }, { a: 1, b: 2 }, { a: 1, b: 3 }],
  ['$eq', { a: { $eq: 'x' } }, { a: 'x' }, { a: 'y' }],
  ['$neq', { a: { $neq: 'x' } }, { a: 'y' }, { a: 'x' }],
  ['$neq of what is absent', { a: { $neq: 'x' } }, { a: 'y' }, {}],
  ['$in', { a: { $in: ['x', 'y'] } }, { a: 'y' }, { a: 'z' }],
  ['$nin', { a: { $nin: ['x', 'y'] } }, { a: 'z' }, { a: 'y' }],
  ['$gt and $lte', { a: { $gt: 1, $lte: 3 } }, { a: 3 }, { a: 1 }],
  ['$gte', { a: { $gte: 1 } }, { a: 1 }, { a: 0 }],
  ['$lt', { a: { $lt: 1 } }, { a: 0 }, { a: 1 }],
  ['$exist', { a: { $exist: true } }, { a: 0 }, { b: 0 }],
  ['$exist: false', { a: { $exist: false } }, { b: 0 }, { a: 0 }],
  ['$and', { $and: [{ a: 1 }, { b: 2 }] }, { a: 1, b: 2 }, { a: 1 }],
  ['$or of one member', { $or: [{ a: 1 }, { a: { $in: [2, 3] } }] }, { a: 3 }, { a: 4 }],
])('%s', (_name, body, fitting, other) => {
  for (const filters of [[{ body }], [{ body, headers: {} }, { body }]]) {
    expect(isSent(filters, fitting)).toBe(true);
    expect(isSent(filters, other)).toBe(false);
  }
});

test('a subscription without a filter is sent everything', () => {
  for (const filters of [[], [{}], [{ body: {}, headers: {}, query: {}, path: {} }]])
    expect(attributeFiltersOf(filters)).toEqual([]);
});

test.each<[string, JsonObject[]]>([
  ['$regex', [{ body: { a: { $regex: 'x' } } }]],
  ['an unknown operator', [{ body: { a: { $like: 'x' } } }]],
  ['alternatives of two members', [{ body: { $or: [{ a: 1 }, { b: 2 }] } }]],
  ['alternatives of two conditions', [{ body: { $or: [{ a: 1, b: 2 }] } }]],
  ['alternatives that are no values', [{ body: { $or: [{ a: { $gt: 1 } }] } }]],
  ['no alternative', [{ body: { $or: [] } }]],
  ['a comparison with a text', [{ body: { a: { $gt: '1' } } }]],
  ['null', [{ body: { a: null } }]],
  ['an empty object', [{ body: { a: {} } }]],
  ['an object in a list', [{ body: { a: { $in: [{}] } } }]],
  ['a header', [{ headers: { 'x-a': 'b' } }]],
  ['subscriptions that differ', [{ body: { a: 1 } }, { body: { a: 2 } }]],
  ['a subscription to everything beside it', [{ body: { a: 1 } }, {}]],
  ['too many', [{ body: Object.fromEntries(Array.from({ length: 21 }, (_, n) => [`a${n}`, n])) }]],
])('%s has no counterpart', (_name, filters) => {
  expect(attributeFiltersOf(filters)).toBeUndefined();
});
