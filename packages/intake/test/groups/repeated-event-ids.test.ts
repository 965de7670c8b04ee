/**
 * Of two events with one id, the first counts.
 *
 * The second names the person of the first too, so it waits for it.
 */
import type { TrackEvent } from '@sluice/domain/operations/operation';
import { keyHashOf } from '@sluice/domain/operations/shard';
import { CommitBatchBuffers } from '@sluice/platform/queue/commit-batch-writer';
import { expect, test } from 'vitest';
import { RepeatedEventIds } from '../../src/groups/repeated-event-ids.ts';
import { CommitGroup } from '../../src/groups/commit-group.ts';
import { FastTrackParser } from '../../src/groups/fast-track-parser.ts';
import { OperationWriter } from '../../src/groups/operation-writer.ts';

const ENVIRONMENT_ID = 7;
const NOW_MS = 1_800_000_000_000;
/** Of any length, since four bytes are hashed at a time. */
const EVENT_IDS = ['m', 'me', 'mes', 'msg1', 'msg12', '8c0f6a0e-3c3f-4f0e-9d55-6c1f0a4be001'];

type Way = (group: CommitGroup, person: string, eventId: string) => void;

const done = (): void => undefined;
const event = (person: string, eventId: string): TrackEvent => ({
  type: 'event.track',
  kind: 'event',
  environmentId: ENVIRONMENT_ID,
  receivedAtMs: NOW_MS,
  person: { kind: 'id', value: person },
  eventId,
  name: 'e',
  data: {},
  occurredAtMs: NOW_MS,
});
const parser = new FastTrackParser();
const WAYS: Readonly<Record<string, Way>> = {
  'a call': (group, person, eventId) => group.add([event(person, eventId)], 1, done),
  'a batch': (group, person, eventId) =>
    group.add([event(person, eventId), event('other', 'x')], 1, done),
  'a large batch': (group, person, eventId) => {
    const writer = new OperationWriter(false);
    writer.add(event(person, eventId));
    group.addWritten(writer, 1, { committed: done });
  },
  'the fast path': (group, person, eventId) => {
    const body = Buffer.from(
      JSON.stringify({ userId: person, event: 'e', messageId: eventId, properties: {} }),
    );
    const parsed = parser.parse(body, false, ENVIRONMENT_ID, NOW_MS);
    if (!parsed) throw new Error('the fast path declined a simple call');
    group.addParsed(ENVIRONMENT_ID, parsed, 1, { committed: done });
  },
};
const pairs = Object.keys(WAYS).flatMap((one) =>
  Object.keys(WAYS).map((other) => [one, other] as const),
);

/** The flush that a call of that way is alone in: its keys, and whether it is free of order. */
function flushOf(ids: RepeatedEventIds, way: Way, person: string, eventId: string) {
  let id = 0;
  const group = new CommitGroup(1, () => `id-${id++}`, new CommitBatchBuffers(), false, ids);
  way(group, person, eventId);
  return group.parts.map(({ writer }) => ({
    isOrderFree: writer.isOrderFree,
    keys: [...writer.finish().keys],
  }));
}

test.each(pairs)('%s, then %s', (one, other) => {
  const first = WAYS[one] as Way;
  const second = WAYS[other] as Way;
  const key = keyHashOf(ENVIRONMENT_ID, 'ann');
  for (const eventId of EVENT_IDS) {
    const ids = new RepeatedEventIds();
    expect(flushOf(ids, first, 'ann', eventId)).toMatchObject([{ isOrderFree: true }]);
    // The same call again, as of a client that got no answer.
    expect(flushOf(ids, second, 'ann', eventId)).toMatchObject([{ isOrderFree: true }]);
    const [part] = flushOf(ids, second, 'bob', eventId);
    expect(part?.isOrderFree).toBe(false);
    expect(part?.keys).toContain(key);
    const [unlike] = flushOf(ids, second, 'bob', `${eventId}-2`);
    expect(unlike?.isOrderFree).toBe(true);
  }
});
