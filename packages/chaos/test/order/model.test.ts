/**
 * The reference model's rules, each with the section that it comes from.
 * `spec` is ingestion-webhooks.md, `§` are sections of ingestion-conventions.md.
 */
import { expect, test } from 'vitest';
import type { Call } from '../../src/order/model/call.ts';
import { createKeyOf } from '../../src/order/model/model-state.ts';
import {
  put,
  post,
  destroy,
  pipelines,
  entity,
  event,
  merge,
  metric,
  unsubscribe,
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
  [
    '§1.6 merge: the secondary fills what is not set, its events move, and it is gone',
    [
      put('p', { a: 1, b: null }),
      put('q', { email: 'q@x.example', a: 2, b: 3, unsubscribed: true }),
      event('q', 'e'),
      merge('p', 'q'),
    ],
    [person('email:q@x.example id:p', { a: 1, b: 3, unsubscribed: true }, 'e')],
  ],
  [
    '§1.6 merge: without its primary it does nothing',
    [put('q', { a: 1 }), merge('p', 'q')],
    [person('id:q', { a: 1 })],
  ],
  [
    '§1.6 merge: the name of the secondary is free afterwards',
    [put('p'), put('q'), merge('p', 'q'), put('q', { a: 1 })],
    [person('id:p'), person('id:q', { a: 1 })],
  ],
  [
    '§3.1 alias: merges previousId into userId',
    [put('p', { a: 1 }), put('q', { b: 2 }), pipelines('alias', { userId: 'p', previousId: 'q' })],
    [person('id:p', { a: 1, b: 2 })],
  ],
  [
    'H 4: what a visitor did takes effect at identification, never over newer values',
    [
      put('p', { old: 1 }),
      pipelines('identify', { anonymousId: 'v', traits: { old: 2, fresh: 2, unsubscribed: true } }),
      pipelines('track', { anonymousId: 'v', event: 'e' }),
      put('p', { fresh: 3 }),
      pipelines('identify', { userId: 'p', anonymousId: 'v' }),
    ],
    [person('anonymous:v id:p', { old: 2, fresh: 3, unsubscribed: true }, 'e')],
  ],
  [
    'H 4: an alias of a visitor is an identification',
    [
      pipelines('track', { anonymousId: 'v', event: 'e' }),
      pipelines('alias', { previousId: 'v', userId: 'p' }),
    ],
    [person('anonymous:v id:p', {}, 'e')],
  ],
  [
    'decided: an alias of an unknown name does nothing',
    [pipelines('alias', { previousId: 'v', userId: 'p' })],
    [],
  ],
  [
    'decided: an alias of an anonymous id that is a person’s does nothing',
    [
      pipelines('identify', { userId: 'p', anonymousId: 'v' }),
      pipelines('alias', { previousId: 'v', userId: 'q' }),
    ],
    [person('anonymous:v id:p')],
  ],
  [
    '§3.7: an alias that names an anonymous id in both members identifies it, also before its first call',
    [
      put('p'),
      pipelines('alias', { previousId: 'v', anonymousId: 'v', userId: 'p' }),
      pipelines('track', { anonymousId: 'v', event: 'e' }),
    ],
    [person('anonymous:v id:p', {}, 'e')],
  ],
  [
    'decided: an alias that names an anonymous id in both members gives its person a name of a new kind',
    [
      pipelines('identify', { traits: { email: 'a@x.example' }, anonymousId: 'v' }),
      pipelines('alias', { previousId: 'v', anonymousId: 'v', userId: 'p' }),
    ],
    [person('anonymous:v email:a@x.example id:p')],
  ],
  [
    'decided: an alias that names the anonymous id of another person in both members does nothing',
    [
      pipelines('identify', { userId: 'p', anonymousId: 'v' }),
      put('q'),
      pipelines('alias', { previousId: 'v', anonymousId: 'v', userId: 'q' }),
      pipelines('alias', { anonymousId: 'v', userId: 'r' }),
    ],
    [person('anonymous:v id:p'), person('id:q')],
  ],
  [
    '§1.3: the anonymous id of another person is not taken',
    [
      pipelines('identify', { userId: 'p', anonymousId: 'v' }),
      pipelines('identify', { userId: 'q', anonymousId: 'v' }),
      pipelines('track', { anonymousId: 'v', event: 'e' }),
    ],
    [person('anonymous:v id:p', {}, 'e'), person('id:q')],
  ],
  [
    'spec §3 event: after a deletion, the anonymous id is a visitor again',
    [
      pipelines('identify', { userId: 'p', anonymousId: 'v' }),
      destroy('p'),
      pipelines('track', { anonymousId: 'v', event: 'e' }),
      pipelines('identify', { userId: 'q', anonymousId: 'v' }),
    ],
    [person('anonymous:v id:q', {}, 'e')],
  ],
  [
    'spec §2: a phone identifies in Track v2, and brings an email',
    [
      entity({
        type: 'person',
        action: 'identify',
        identifiers: { phone: '+4915112345678' },
        attributes: { email: 'p@x.example', a: 1 },
      }),
      put('p', { email: 'p@x.example' }),
      entity({
        type: 'person',
        action: 'event',
        identifiers: { phone: '+4915112345678' },
        name: 'e',
      }),
    ],
    [person('email:p@x.example id:p phone:+4915112345678', { a: 1 }, 'e')],
  ],
  [
    'decided: the fields of a form are attributes of the person',
    [
      {
        api: 'v1',
        method: 'POST',
        path: ['forms', 'f', 'submit'],
        body: { data: { email: 'P@x.example', a: '1', unsubscribed: 'true' } },
      },
    ],
    [person('email:p@x.example', { a: '1', unsubscribed: true })],
  ],
  [
    '§1.6: the link of a message unsubscribes whoever has the message, also after a merge',
    [
      put('p'),
      put('q@x.example'),
      metric('m', 'q@x.example'),
      merge('p', 'none'),
      {
        api: 'v1',
        method: 'POST',
        path: ['merge_customers'],
        body: { primary: { id: 'p' }, secondary: { email: 'q@x.example' } },
      },
      unsubscribe('m'),
    ],
    [person('email:q@x.example id:p message:m', { unsubscribed: true })],
  ],
  [
    '§1.6: a message of a deleted person is nobody’s, until it is told of again',
    [
      put('p@x.example'),
      metric('m', 'p@x.example'),
      destroy('p@x.example'),
      put('p@x.example'),
      unsubscribe('m'),
      put('q@x.example'),
      metric('m', 'q@x.example'),
      unsubscribe('m'),
    ],
    [person('email:p@x.example'), person('email:q@x.example message:m', { unsubscribed: true })],
  ],
  [
    'spec §2: events of a file make nobody',
    [
      put('p'),
      {
        api: 'import',
        identifier: 'id',
        rows: [
          { name: 'e', person: 'p' },
          { name: 'f', person: 'q' },
        ],
      },
    ],
    [person('id:p', {}, 'e')],
  ],
  [
    'H: the lines of a stream apply in their order',
    [
      {
        api: 'stream',
        of: 'pipelines',
        lines: [
          { type: 'identify', userId: 'p', traits: { a: 1 } },
          { type: 'identify', userId: 'p', traits: { a: 2 } },
        ],
      },
    ],
    [person('id:p', { a: 2 })],
  ],
  [
    'H: the items of a batch apply in their order',
    [
      {
        api: 'v2',
        path: 'batch',
        body: {
          batch: [
            { type: 'person', action: 'identify', identifiers: { id: 'p' }, attributes: { a: 1 } },
            { type: 'person', action: 'identify', identifiers: { id: 'q' }, attributes: { b: 2 } },
            { type: 'person', action: 'merge', primary: { id: 'p' }, secondary: { id: 'q' } },
          ],
        },
      },
    ],
    [person('id:p', { a: 1, b: 2 })],
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
