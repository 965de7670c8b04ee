/** Events, anonymous ids, merges: ingestion-conventions.md §1.4 to §1.6. */
import { beforeEach, describe, expect, it } from 'vitest';
import type { StateChanges } from '../../src/state/loaded-state.ts';
import { svcId } from '../../src/values/svc-id.ts';
import { DAY_MS, MemoryStore, WAYS } from '../support/memory-store.ts';
import {
  addDevice,
  identify,
  merge,
  metric,
  NOW_MS,
  relate,
  segment,
  suppress,
  track,
  unsubscribeDelivery,
} from '../../src/testing/sample-operations.ts';

let store: MemoryStore;
beforeEach(() => {
  store = new MemoryStore();
});

const codes = (changes: StateChanges): string[] => changes.issues.map((row) => row.issue.code);
const named = (name: string) => store.events.find((event) => event.name === name);
const TIMES = ['occurredAtMs', 'receivedAtMs'] as const;

describe('events', () => {
  it('creates the person that an event names by id or email', () => {
    store.apply(track('id:1', 'a'), track('email:b@x', 'b'));
    expect(store.people).toMatchObject([{ id: '1' }, { email: 'b@x' }]);
    expect(named('a')).toMatchObject({ personId: 1, processedAtMs: NOW_MS, kind: 'event' });
  });

  it.each(WAYS)('counts an event id once, %s, and once in each workspace', (_, isTogether) => {
    const event = track('id:1', 'first', { eventId: 'x' });
    store.applyEach(
      isTogether,
      event,
      { ...event, name: 'second' },
      { ...event, name: 'elsewhere', environmentId: 2 },
    );
    expect(store.events.filter((row) => row.kind === 'event').map((row) => row.name)).toEqual([
      'first',
      'elsewhere',
    ]);
  });

  it('records the duplicate', () => {
    const event = track('id:1', 'first', { eventId: 'x' });
    expect(codes(store.apply(event, event))).toEqual(['duplicate_event']);
    expect(codes(store.apply(event))).toEqual(['duplicate_event']);
  });

  it('does not create a person for an unknown svc_id, and stores no event', () => {
    expect(codes(store.apply(track('svc_id:a3000007', 'a')))).toEqual(['person_not_found']);
    expect(store.events).toEqual([]);
  });

  it('keeps an invite without a person, an anonymous id or a processing time', () => {
    store.apply(track(null, 'invite', { data: { recipient: 'a@x' } }));
    expect(named('invite')).toMatchObject({
      personId: null,
      anonymousId: null,
      processedAtMs: null,
      data: { recipient: 'a@x' },
    });
  });
});

describe('anonymous ids', () => {
  it.each(WAYS)('attaches the events of 30 days when the id is identified, %s', (_, isTogether) => {
    store.applyEach(
      isTogether,
      track('anonymous_id:z', 'old', { occurredAtMs: NOW_MS - 31 * DAY_MS }),
      track('anonymous_id:z', 'recent', { occurredAtMs: NOW_MS - 29 * DAY_MS }),
      track('anonymous_id:other', 'unrelated'),
      identify('id:1', {}, { anonymousId: 'z' }),
      track('anonymous_id:z', 'later'),
    );
    expect(named('old')).toMatchObject({ personId: null, processedAtMs: null });
    expect(named('recent')).toMatchObject({ personId: 1, anonymousId: 'z', processedAtMs: NOW_MS });
    expect(named('unrelated')).toMatchObject({ personId: null });
    expect(named('later')).toMatchObject({ personId: 1 });
    expect(store.events.filter((row) => row.kind === 'anon_merge')).toHaveLength(1);
  });

  it.each(WAYS)('attaches them when an event names both, %s', (_, isTogether) => {
    store.applyEach(
      isTogether,
      track('anonymous_id:z', 'before'),
      track('id:1', 'both', { anonymousId: 'z' }),
    );
    expect(named('before')).toMatchObject({ personId: 1 });
  });

  it('never gives an anonymous id to a second person', () => {
    store.apply(identify('id:1', {}, { anonymousId: 'z' }));
    const changes = store.apply(identify('id:2', { anonymous_id: 'z' }));
    expect(changes.issues.map((row) => row.issue)).toMatchObject([
      { code: 'identifier_conflict', field: 'anonymous_id' },
    ]);
    store.apply(track('anonymous_id:z', 'whose'));
    expect(named('whose')?.personId).toBe(1);
  });

  it('finds the person of an anonymous id, and creates no person for an anonymous id alone', () => {
    store.apply(
      identify('id:1', {}, { anonymousId: 'z' }),
      identify('anonymous_id:z', { plan: 'pro' }),
    );
    expect(store.people).toMatchObject([{ id: '1', attributes: { plan: 'pro' } }]);
    expect(codes(store.apply(identify('anonymous_id:y', { plan: 'free' })))).toEqual([]);
    expect(store.people).toHaveLength(1);
  });

  it('makes a person of an anonymous id with an email', () => {
    store.apply(track('anonymous_id:z', 'before'), identify('anonymous_id:z', { email: 'a@x' }));
    expect(store.people).toMatchObject([{ email: 'a@x' }]);
    expect(named('before')?.personId).toBe(1);
  });

  it('blocks the anonymous ids of somebody who is suppressed', () => {
    store.apply(identify('id:1', {}, { anonymousId: 'z' }));
    store.apply(suppress('id:1'));
    expect(codes(store.apply(track('anonymous_id:z', 'a')))).toEqual(['suppressed']);
  });
});

describe('merging', () => {
  it.each(WAYS)(
    'fills the gaps of the primary and moves the rows of the secondary, %s',
    (_, isTogether) => {
      store.applyEach(
        isTogether,
        identify('id:1', { plan: 'pro', both: 'primary' }),
        identify(
          'id:2',
          { email: 'b@x', both: 'secondary', extra: 1, unsubscribed: true },
          { anonymousId: 'z' },
        ),
        track('id:2', 'recent'),
        track('id:2', 'long ago', {
          occurredAtMs: NOW_MS - 31 * DAY_MS,
          receivedAtMs: NOW_MS - 31 * DAY_MS,
        }),
        addDevice('id:2', 't'),
        relate('id:2', 'acme', { role: 'boss' }),
        segment('add', 7, 'id:2'),
        metric('d1', 'sent', { recipient: 'b@x' }),
        merge('id:1', 'id:2'),
        track('anonymous_id:z', 'later'),
        unsubscribeDelivery('d1'),
      );
      const [primary] = store.people;
      expect(store.people).toHaveLength(1);
      expect(primary).toMatchObject({
        id: '1',
        email: 'b@x',
        unsubscribed: true,
        attributes: { plan: 'pro', both: 'primary', extra: 1 },
      });
      const personId = primary?.personId;
      expect(named('recent')?.personId).toBe(personId);
      expect(named('later')?.personId).toBe(personId);
      for (const rows of [
        store.devices,
        store.relationships,
        store.segmentMembers,
        store.messageDeliveries,
      ]) {
        expect(rows).toMatchObject([{ personId }]);
      }
      expect(store.identifiers.map((row) => `${row.kind}:${row.value}`).toSorted()).toEqual([
        'anonymous_id:z',
        'email:b@x',
        'id:1',
      ]);
      store.apply(identify('id:2'));
      expect(store.people).toHaveLength(2);
    },
  );

  it.each(
    WAYS.flatMap(([way, isTogether]) => TIMES.map((time) => [time, way, isTogether] as const)),
  )(
    'leaves events whose %s is more than 30 days ago with the secondary, %s',
    (time, _, isTogether) => {
      store.applyEach(
        isTogether,
        identify('id:1'),
        identify('id:2'),
        track('id:2', 'new'),
        track('id:2', 'old', { [time]: NOW_MS - 31 * DAY_MS }),
        merge('id:1', 'id:2'),
      );
      expect(named('new')?.personId).toBe(1);
      expect(named('old')?.personId).toBe(2);
    },
  );

  it('follows merges of merges, and ignores a merge of a person with themselves', () => {
    store.apply(identify('id:1'), identify('id:2'), identify('id:3'), track('id:3', 'seen'));
    store.apply(merge('id:2', 'id:3'), merge('id:1', 'id:2'), merge('id:1', 'id:1'));
    expect(store.people).toMatchObject([{ id: '1' }]);
    expect(named('seen')?.personId).toBe(1);
  });

  it.each(WAYS)('leaves the svc_id of the merged person without an owner, %s', (_, isTogether) => {
    const svcIds = [1, 2].map((personId) => `svc_id:${svcId(personId)}`);
    store.applyEach(
      isTogether,
      identify('id:1'),
      identify('id:2'),
      merge('id:1', 'id:2'),
      ...svcIds.map((who) => track(who, `of ${who}`)),
      ...svcIds.map((who) => identify(who, { [who]: true })),
    );
    expect(store.events.flatMap(({ kind, name }) => (kind === 'event' ? [name] : []))).toEqual([
      `of ${svcIds[0]}`,
    ]);
    expect(store.people).toMatchObject([{ attributes: { [String(svcIds[0])]: true } }]);
    expect(store.people[0]?.attributes).not.toHaveProperty(String(svcIds[1]));
  });

  it('changes no person if either is missing', () => {
    store.apply(identify('id:1'));
    expect(codes(store.apply(merge('id:1', 'id:2')))).toEqual(['person_not_found']);
    expect(codes(store.apply(merge('id:2', 'id:1')))).toEqual(['person_not_found']);
    expect(store.people).toHaveLength(1);
  });

  it('takes an anonymous id as the secondary', () => {
    store.apply(track('anonymous_id:z', 'before'), identify('id:1'));
    store.apply(merge('id:1', 'anonymous_id:z'));
    expect(named('before')?.personId).toBe(1);
  });
});
