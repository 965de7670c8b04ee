/**
 * The reference model's rules for calls by svc_id, and for `_timestamp`.
 * `spec` is ingestion-webhooks.md, `§` are sections of ingestion-conventions.md.
 */
import { expect, test } from 'vitest';
import type { Call } from '../../src/order/model/call.ts';
import {
  destroy,
  entity,
  event,
  merge,
  person,
  post,
  put,
  sortedPeople,
} from '../support/model-calls.ts';

const P = { api: 'learn', id: 'p', svcId: 'svc_a1' } as const;
const Q = { api: 'learn', id: 'q', svcId: 'svc_a2' } as const;

test.each<[string, readonly Call[], readonly ReturnType<typeof person>[]]>([
  [
    '§1.2: a call by svc_id replaces an identifier that is free, and no other',
    [
      put('p', { email: 'p@x.example' }),
      P,
      put('q'),
      put('svc_a1', { id: 'q', email: 'r@x.example', a: 1 }),
    ],
    [person('email:r@x.example id:p svc:a1', { a: 1 }), person('id:q')],
  ],
  [
    '§1.2: a call by svc_id replaces an id, and the former one is free',
    [put('p'), P, put('svc_a1', { id: 'r' }), put('p', { b: 1 })],
    [person('id:p', { b: 1 }), person('id:r svc:a1')],
  ],
  [
    '§1.2: a call by svc_id removes an email, and the email is free',
    [
      put('p', { email: 'p@x.example' }),
      P,
      entity({
        type: 'person',
        action: 'identify',
        identifiers: { cio_id: 'a1' },
        attributes: { email: '' },
      }),
      put('q', { email: 'p@x.example' }),
    ],
    [person('email:p@x.example id:q'), person('id:p svc:a1')],
  ],
  [
    '§1.2: a svc_id that is nobody’s makes nobody',
    [put('p'), P, destroy('p'), put('svc_a1', { a: 1 }), event('svc_a1', 'e1'), destroy('svc_a1')],
    [],
  ],
  [
    '§1.6: the svc_id of a merged person means nobody, and that of the primary stays',
    [put('p'), P, put('q'), Q, merge('p', 'q'), put('svc_a2', { a: 1 }), put('svc_a1', { b: 1 })],
    [person('id:p svc:a1', { b: 1 })],
  ],
  [
    '§1.6: a suppressed person stays so under the svc_id, which unsuppresses the others',
    [
      put('p'),
      P,
      post('customers', 'svc_a1', 'suppress'),
      put('p', { a: 1 }),
      post('customers', 'svc_a1', 'unsuppress'),
      put('p', { b: 1 }),
    ],
    [person('id:p', { b: 1 })],
  ],
  [
    '§1.2: attributes older than the stored ones are skipped, an email among them too',
    [
      put('p', { a: 1, _timestamp: 5 }),
      put('p', { a: 2, email: 'p@x.example', _timestamp: 4 }),
      put('p', { b: 3, _timestamp: 5 }),
      put('p', { c: 4 }),
    ],
    [person('id:p', { a: 1, b: 3, c: 4 })],
  ],
])('%s', (_, calls, expected) => {
  expect(sortedPeople(...calls)).toEqual(expected);
});
