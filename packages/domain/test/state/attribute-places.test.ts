/** Recorded places of a person's writes: their bound, and their order. */
import { expect, test } from 'vitest';
import { orderPlaceOf } from '../../src/operations/order-place.ts';
import {
  recordPlaces,
  removalName,
  type AttributePlaces,
} from '../../src/state/attribute-places.ts';

const place = (major: number): string => orderPlaceOf({ major, minor: 0 }, 0);
const NEWEST = place(1_000_000);

test('a person keeps a bounded number of places, and the newest of them', () => {
  let places: AttributePlaces | null = null;
  for (let at = 0; at < 5_000; at++)
    places = recordPlaces(places, [removalName('devices', `token ${at}`)], place(at), NEWEST);
  const kept = Object.values(places ?? {}).toSorted();
  expect(kept.length).toBeLessThanOrEqual(600);
  expect(kept).toEqual(
    Array.from({ length: kept.length }, (_, index) => place(5_000 - kept.length + index)),
  );
});

test('a place is never replaced by an earlier one', () => {
  const later = recordPlaces(null, ['plan'], place(2), NEWEST);
  expect(recordPlaces(later, ['plan'], place(1), NEWEST)).toBe(later);
  expect(recordPlaces(later, ['plan'], place(3), NEWEST)).toEqual({ plan: place(3) });
});
