/**
 * The reference model's rules of people and their events.
 *
 * Each test names its section: `spec` is ingestion-webhooks.md, `§` are sections of ingestion-conventions.md.
 */
import { expect, test } from 'vitest';
import type { Call } from '../../src/order/model/call.ts';
import { createKeyOf } from '../../src/order/model/model-state.ts';
import {
  put,
  post,
  destroy,
  pipelines,
  event,
  after,
  sortedPeople,
  person,
} from '../support/model-calls.ts';

test.each<[string, readonly Call[], readonly ReturnType<typeof person>[]]>([
  [
    'spec §2: an id or an email identifies, and an email matches in any letter case',
    [put('p', { email: 'P@x.example', a: 1 }), put('p@X.example', { b: 2 })],
    [person('email:p@x.example id:p', { a: 1, b: 2 })],
  ],
  [
    '§1.2: null and the empty text remove an attribute',
    [put('p', { a: 1, b: 2 }), put('p', { a: null, b: '' })],
    [person('id:p')],
  ],
  [
    '§1.3: true, "TRUE", 1 and "1" unsubscribe; any other value subscribes',
    [
      put('p', { unsubscribed: 'TRUE' }),
      put('q', { unsubscribed: 1 }),
      put('r', { unsubscribed: 'no' }),
    ],
    [
      person('id:p', { unsubscribed: true }),
      person('id:q', { unsubscribed: true }),
      person('id:r', { unsubscribed: false }),
    ],
  ],
  ['§1.2: _update makes nobody', [put('p', { _update: true, a: 1 })], []],
  [
    '§1.2: an unknown id with the email of somebody without an id gives them the id',
    [put('p@x.example', { a: 1 }), put('p', { email: 'p@x.example', b: 2 })],
    [person('email:p@x.example id:p', { a: 1, b: 2 })],
  ],
  [
    '§1.2: the email of another person is refused, and the rest of the call applies',
    [put('p'), put('q@x.example'), put('p', { email: 'q@x.example', a: 1 })],
    [person('email:q@x.example'), person('id:p', { a: 1 })],
  ],
  [
    '§1.2: an email that is set is not replaced',
    [put('p', { email: 'p@x.example' }), put('p', { email: 'q@x.example', a: 1 })],
    [person('email:p@x.example id:p', { a: 1 })],
  ],
  [
    '§1.2: an unknown id with the email of somebody who has an id makes a person without the email',
    [put('p', { email: 'p@x.example' }), put('q', { email: 'p@x.example', a: 1 })],
    [person('email:p@x.example id:p'), person('id:q', { a: 1 })],
  ],
  [
    '§1.4: an event of an unknown person makes the person',
    [event('p', ' e ')],
    [person('id:p', {}, 'e')],
  ],
  [
    'spec §2 Event: two events with one id are processed once, whoever they are about',
    [event('p', 'e', 'id1'), event('p', 'e', 'id1'), event('q', 'f', 'id1')],
    [person('id:p', {}, 'e')],
  ],
  [
    '§1.6 delete: removes the person, and a later identify makes them anew with a free email',
    [
      put('p', { email: 'p@x.example', a: 1 }),
      destroy('p@x.example'),
      put('q', { email: 'p@x.example' }),
    ],
    [person('email:p@x.example id:q')],
  ],
  [
    '§3.4: User Deleted deletes',
    [put('p'), pipelines('track', { userId: 'p', event: 'User Deleted' })],
    [],
  ],
  [
    '§1.6 suppress: blocks all identifiers of the person; unsuppress frees them',
    [
      put('p', { email: 'p@x.example', a: 1 }),
      post('customers', 'p', 'suppress'),
      put('p@x.example', { b: 1 }),
      put('q', { email: 'p@x.example' }),
      event('p', 'ignored', 'id1'),
      post('customers', 'p@x.example', 'unsuppress'),
      event('p', 'taken', 'id2'),
    ],
    [person('id:p', {}, 'taken')],
  ],
  [
    '§1.4: the id of an event that was ignored is used',
    [
      post('customers', 'p', 'suppress'),
      event('p', 'ignored', 'id1'),
      post('customers', 'p', 'unsuppress'),
      event('p', 'again', 'id1'),
      event('q', 'again', 'id1'),
    ],
    [],
  ],
])('%s', (_, calls, expected) => {
  expect(sortedPeople(...calls)).toEqual(expected);
});

test('the order of independent calls does not show in a state’s key', () => {
  const keyOf = createKeyOf();
  const calls = [
    put('p', { a: 1 }),
    put('q', { a: 2 }),
    event('p', 'e', 'id1'),
    event('q', 'f', 'id2'),
  ];
  expect(keyOf(after(...calls))).toBe(keyOf(after(...calls.toReversed())));
  expect(keyOf(after(...calls))).not.toBe(keyOf(after(...calls, put('p', { a: 3 }))));
});

test('a key keeps which of a visitor’s and a person’s value is newer', () => {
  const keyOf = createKeyOf();
  const visitor = pipelines('identify', { anonymousId: 'v', traits: { a: 1 } });
  expect(keyOf(after(visitor, put('p', { a: 2 })))).not.toBe(
    keyOf(after(put('p', { a: 2 }), visitor)),
  );
});
