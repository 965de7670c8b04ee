/**
 * The reference model's rules of merges, aliases and visitors.
 *
 * Each test names its section: `spec` is ingestion-webhooks.md, `§` are sections of ingestion-conventions.md.
 */
import { expect, test } from 'vitest';
import type { Call } from '../../src/order/model/call.ts';
import {
  put,
  destroy,
  pipelines,
  event,
  merge,
  sortedPeople,
  person,
} from '../support/model-calls.ts';

test.each<[string, readonly Call[], readonly ReturnType<typeof person>[]]>([
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
])('%s', (_, calls, expected) => {
  expect(sortedPeople(...calls)).toEqual(expected);
});
