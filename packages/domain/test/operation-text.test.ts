/** What is written for the queue is what `JSON.stringify` would have written, whatever texts are in it. */
import { isDeepStrictEqual } from 'node:util';
import { operationText } from '@sluice/domain/operation-text';
import type { TrackEvent } from '@sluice/domain/operation';
import { NOW_MS } from '@sluice/domain/testing';
import fc from 'fast-check';
import { expect, test } from 'vitest';

/** Whatever UTF-16 may hold: quotes, controls, half surrogates, `__proto__`. */
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
  fc.array(fc.nat(0xffff), { maxLength: 6 }).map((units) => String.fromCharCode(...units)),
  fc.constantFrom('"', '\\', '\\u0041', '\u0000', '\u001f', '\u2028', '\ud800', '\udc00a', '</x>'),
);
const event: fc.Arbitrary<TrackEvent> = fc.record(
  {
    type: fc.constant('event.track' as const),
    kind: fc.constantFrom('event', 'page', 'screen'),
    environmentId: fc.nat(),
    receivedAtMs: fc.constant(NOW_MS),
    source: fc.constantFrom('pipelines.track', 'track.v2.batch'),
    person: fc.option(
      fc.record({ kind: fc.constantFrom('id', 'email', 'anonymous_id'), value: text }),
    ),
    anonymousId: text,
    eventId: text,
    name: text,
    data: fc.dictionary(text, fc.jsonValue() as fc.Arbitrary<never>),
    occurredAtMs: fc.double({ min: 0, max: 1e15, noNaN: true }),
  },
  {
    requiredKeys: [
      'type',
      'kind',
      'environmentId',
      'receivedAtMs',
      'person',
      'eventId',
      'name',
      'data',
      'occurredAtMs',
    ],
  },
) as fc.Arbitrary<TrackEvent>;

test('an event reads back as it was, whatever is in it', () => {
  fc.assert(
    fc.property(event, (operation) => {
      const written = JSON.parse(operationText(operation));
      expect(isDeepStrictEqual(written, JSON.parse(JSON.stringify(operation)))).toBe(true);
    }),
  );
});
