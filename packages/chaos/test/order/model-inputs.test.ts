/**
 * The reference model's rules of messages, forms, files, streams and batches.
 *
 * Each test names its section: `spec` is ingestion-webhooks.md, `§` are sections of ingestion-conventions.md.
 */
import { expect, test } from 'vitest';
import type { Call } from '../../src/order/model/call.ts';
import {
  put,
  destroy,
  entity,
  merge,
  metric,
  unsubscribe,
  sortedPeople,
  person,
} from '../support/model-calls.ts';

test.each<[string, readonly Call[], readonly ReturnType<typeof person>[]]>([
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
])('%s', (_, calls, expected) => {
  expect(sortedPeople(...calls)).toEqual(expected);
});
