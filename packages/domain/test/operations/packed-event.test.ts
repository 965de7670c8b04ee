import { expect, test } from 'vitest';
import type { Operation } from '../../src/operations/operation.ts';
import {
  typeOfQueued,
  unpackOperation,
  type PackedEvent,
} from '../../src/operations/packed-event.ts';

const DATA = { plan: 'pro', items: [1] };
const packed: PackedEvent = [
  ...([1, 7, 1_764_000_000_000, 'email', 'Ann@example.com', null] as const),
  ...(['event-1', 'Order Placed', DATA, 1_763_000_000_000, 'pipelines.batch'] as const),
];
const event: Operation = {
  type: 'event.track',
  kind: 'event',
  environmentId: 7,
  receivedAtMs: 1_764_000_000_000,
  person: { kind: 'email', value: 'Ann@example.com' },
  eventId: 'event-1',
  name: 'Order Placed',
  data: DATA,
  occurredAtMs: 1_763_000_000_000,
  source: 'pipelines.batch',
};

test('a packed event is the operation that it stands for', () => {
  expect(typeOfQueued(packed)).toBe('event.track');
  expect(unpackOperation(packed)).toStrictEqual(event);
  const seen = packed.with(5, 'browser-1') as unknown as PackedEvent;
  expect(unpackOperation(seen)).toStrictEqual({ ...event, anonymousId: 'browser-1' });
});

test('an operation that is not packed stays as it is', () => {
  expect(typeOfQueued(event)).toBe('event.track');
  expect(unpackOperation(event)).toBe(event);
});

test('an event that a newer version packed otherwise is not guessed at', () => {
  const newer = packed.with(0, 2) as unknown as PackedEvent;
  expect(() => unpackOperation(newer)).toThrow('does not know events of format 2');
});
