/** Findings of the checker of deliveries. */
import { expect, test } from 'vitest';
import { findUndelivered } from '../src/loss/delivery-checker.ts';

const sent = (...ids: string[]) => ids.map((eventId) => ({ eventId, call: 'a call' }));
const accepted = (...ids: string[]) => ({
  accepted: new Map(ids.map((id, place) => [id, place])),
  problems: [],
});

test('the checker finds no fault if every event arrived and the events of a person are in order', () => {
  const people = [
    { name: 'a', events: sent('a1', 'a2') },
    { name: 'b', events: sent('b1') },
  ];
  expect(findUndelivered(people, sent('p'), accepted('b1', 'a1', 'p', 'a2'))).toEqual([]);
});

test('an event and a message that did not come, and an event that overtook another of its person', () => {
  const people = [{ name: 'a', events: sent('a1', 'a2', 'a3') }];
  expect(findUndelivered(people, sent('p'), accepted('a3', 'a1'))).toEqual([
    'published and not delivered: p (a call)',
    'not delivered: event 1 of a (a2; a call)',
    'delivered before the one sent before it: event 2 of a (a3; a call)',
  ]);
});
