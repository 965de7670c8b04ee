/**
 * Data of a visitor take effect once the id has an owner.
 *
 * They count as if the person had sent them, but never replace later data of the person.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import type { MergePeople, Operation } from '../../src/operations/operation.ts';
import {
  addDevice,
  deleteDevice,
  identify,
  merge,
  NOW_MS,
  relateObject,
  remove,
  track,
} from '../../src/testing/sample-operations.ts';
import { DAY_MS, MemoryStore, WAYS } from '../support/memory-store.ts';

let store: MemoryStore;
beforeEach(() => {
  store = new MemoryStore();
});

const alias = (primary: string, secondary: string): Operation =>
  ({ ...merge(primary, secondary), isAlias: true }) as MergePeople;
const attributesOf = (id: string) => store.people.find((row) => row.id === id)?.attributes;
const activities = () =>
  store.events.filter(({ kind }) => kind !== 'event').map(({ kind, data }) => [kind, data]);

describe.each(WAYS)('%s', (_, isTogether) => {
  const apply = (...operations: Operation[]) => store.applyEach(isTogether, ...operations);

  it.each([
    ['an identify', identify('id:p', {}, { anonymousId: 'z' })],
    ['an event', track('id:p', 'seen', { anonymousId: 'z' })],
    ['an alias', alias('id:p', 'id:z')],
  ])('traits become attributes at %s, and are then in the history', (_name, identification) => {
    apply(identify('anonymous_id:z', { plan: 'pro', unsubscribed: true }));
    expect(activities()).toEqual([]);
    apply(identification);
    expect(store.people).toMatchObject([
      { id: 'p', attributes: { plan: 'pro' }, unsubscribed: true },
    ]);
    expect(store.visitors).toEqual([]);
    const noted = activities().map(([, data]) => data);
    expect(noted).toContainEqual(expect.objectContaining({ plan: { from: null, to: 'pro' } }));
  });

  it('a trait replaces an older value of the person, and never a newer one', () => {
    apply(
      identify('id:p', { older: 'person', same: 'person' }),
      identify('anonymous_id:z', { older: 'visitor', newer: 'visitor', same: 'visitor' }),
      identify('id:p', { newer: 'person', same: 'person' }),
      identify('id:p', {}, { anonymousId: 'z' }),
    );
    expect(attributesOf('p')).toEqual({ older: 'visitor', newer: 'person', same: 'person' });
  });

  it.each([
    ['an event', track('id:p', 'seen', { anonymousId: 'z' })],
    ['an alias', alias('id:p', 'id:z')],
  ])('the newest trait of three visitors stays, also if it came with %s', (_name, newest) => {
    apply(
      identify('anonymous_id:x', { plan: 1 }),
      identify('anonymous_id:y', { plan: 2 }),
      identify('anonymous_id:z', { plan: 3 }),
      track('id:p', 'seen', { anonymousId: 'x' }),
      newest,
      identify('id:p', {}, { anonymousId: 'y' }),
    );
    expect(attributesOf('p')).toEqual({ plan: 3 });
  });

  it('the traits of two visitors are compared by when they were sent', () => {
    apply(
      identify('anonymous_id:one', { plan: 'first' }),
      identify('anonymous_id:two', { plan: 'second' }),
      identify('id:p', {}, { anonymousId: 'two' }),
      identify('id:p', {}, { anonymousId: 'one' }),
    );
    expect(attributesOf('p')).toEqual({ plan: 'second' });
  });

  it('a removed trait removes an older value and no newer one', () => {
    apply(
      identify('id:p', { older: 1, newer: 1 }),
      identify('anonymous_id:z', { older: null, newer: '' }),
      identify('id:p', { newer: 2 }),
      identify('id:p', {}, { anonymousId: 'z' }),
    );
    expect(attributesOf('p')).toEqual({ newer: 2 });
  });

  it('preferences are compared value by value', () => {
    apply(
      identify('anonymous_id:z', {
        svc_subscription_preferences: { topics: { a: false, b: false } },
      }),
      identify('id:p', { 'svc_subscription_preferences.topics.a': true }),
      identify('id:p', {}, { anonymousId: 'z' }),
    );
    expect(attributesOf('p')).toEqual({
      svc_subscription_preferences: { topics: { a: true, b: false } },
    });
  });

  it('a removed group of preferences leaves preferences that were set later', () => {
    apply(
      identify('id:p', { svc_subscription_preferences: { topics: { a: true, b: true } } }),
      identify('anonymous_id:z', { svc_subscription_preferences: { topics: null } }),
      identify('id:p', { 'svc_subscription_preferences.topics.b': true }),
      identify('id:p', {}, { anonymousId: 'z' }),
    );
    expect(attributesOf('p')).toEqual({ svc_subscription_preferences: { topics: { b: true } } });
  });

  it('a value that a merge brings is as old as it was', () => {
    apply(
      identify('id:s', { plan: 'secondary' }),
      identify('anonymous_id:z', { plan: 'visitor' }),
      identify('id:p'),
      merge('id:p', 'id:s'),
      identify('id:p', {}, { anonymousId: 'z' }),
    );
    expect(attributesOf('p')).toEqual({ plan: 'visitor' });
  });

  it.each([
    ['a removed value', null],
    ['a value', 'secondary'],
  ])('a merge with somebody who had %s leaves the place of a later removal', (_name, plan) => {
    apply(
      // Another visitor, whose traits make the workspace record places.
      identify('anonymous_id:other', { plan: 'other' }),
      identify('id:s', { plan }),
      identify('anonymous_id:z', { plan: 'visitor' }),
      identify('id:p', { plan: null }),
      merge('id:p', 'id:s'),
      identify('id:p', {}, { anonymousId: 'z' }),
    );
    expect(attributesOf('p')).toEqual(plan === null ? {} : { plan });
  });

  it('the identifying call overrides the visitor’s earlier attributes', () => {
    apply(
      identify('anonymous_id:z', { plan: 'visitor', kept: true }),
      identify('id:p', { plan: 'call' }, { anonymousId: 'z' }),
    );
    expect(attributesOf('p')).toEqual({ plan: 'call', kept: true });
    expect(activities()).toContainEqual([
      'profile_create',
      expect.objectContaining({ plan: { from: null, to: 'call' } }),
    ]);
  });

  it('relationships and devices become the person’s, and those the person has stay', () => {
    apply(
      relateObject('acme', 'anonymous_id:z', { role: 'visitor' }),
      relateObject('umbrella', 'anonymous_id:z', { role: 'visitor' }),
      relateObject('umbrella', 'id:p', { role: 'person' }),
      addDevice('anonymous_id:z', 'token'),
      identify('id:p', {}, { anonymousId: 'z' }),
    );
    expect(new Set(store.relationships.map(({ attributes }) => attributes.role))).toEqual(
      new Set(['person', 'visitor']),
    );
    expect(store.devices).toMatchObject([{ token: 'token', personId: store.people[0]?.personId }]);
  });

  it('a device that was deleted before is not the person’s', () => {
    apply(
      addDevice('anonymous_id:z', 'gone'),
      addDevice('anonymous_id:z', 'kept'),
      deleteDevice('anonymous_id:z', 'gone'),
      identify('id:p', {}, { anonymousId: 'z' }),
    );
    expect(store.devices.map(({ token }) => token)).toEqual(['kept']);
  });

  it('a relationship or device that the person removed after the visitor added it stays away', () => {
    apply(
      relateObject('acme', 'anonymous_id:z'),
      relateObject('umbrella', 'anonymous_id:z'),
      addDevice('anonymous_id:z', 'token'),
      addDevice('anonymous_id:z', 'other'),
      identify('id:p'),
      // The person never had them.
      relateObject('acme', 'id:p', {}, 'delete'),
      deleteDevice('id:p', 'token'),
      identify('id:p', {}, { anonymousId: 'z' }),
    );
    expect(store.relationships).toHaveLength(1);
    expect(store.devices.map(({ token }) => token)).toEqual(['other']);
  });

  it('a relationship or device that the visitor added after the person removed it comes back', () => {
    apply(
      // So that places are recorded.
      identify('anonymous_id:other', { plan: 'pro' }),
      relateObject('acme', 'id:p'),
      addDevice('id:p', 'token'),
      relateObject('acme', 'id:p', {}, 'delete'),
      deleteDevice('id:p', 'token'),
      relateObject('acme', 'anonymous_id:z'),
      addDevice('anonymous_id:z', 'token'),
      identify('id:p', {}, { anonymousId: 'z' }),
    );
    expect(store.relationships).toHaveLength(1);
    expect(store.devices).toHaveLength(1);
  });

  it('an entry that an older version kept takes effect as it did there', () => {
    apply(
      identify('anonymous_id:other', { plan: 'pro' }),
      addDevice('anonymous_id:z', 'token'),
      identify('id:p'),
      deleteDevice('id:p', 'token'),
    );
    store.visitors = store.visitors.map((row) => ({
      ...row,
      profile: {
        ...row.profile,
        devices: Object.fromEntries(
          Object.entries(row.profile.devices).map(([token, { place: _place, ...device }]) => [
            token,
            device,
          ]),
        ),
      },
    }));
    apply(identify('id:p', {}, { anonymousId: 'z' }));
    expect(store.devices.map(({ token }) => token)).toEqual(['token']);
  });

  it('the later removal of either person counts after their merge', () => {
    apply(
      relateObject('acme', 'anonymous_id:z'),
      addDevice('anonymous_id:z', 'token'),
      identify('id:p'),
      identify('id:q'),
      relateObject('acme', 'id:q', {}, 'delete'),
      deleteDevice('id:p', 'token'),
      merge('id:p', 'id:q'),
      identify('id:p', {}, { anonymousId: 'z' }),
    );
    expect(store.relationships).toEqual([]);
    expect(store.devices).toEqual([]);
  });

  it('an object that was deleted meanwhile gets no relationship', () => {
    apply(relateObject('acme', 'anonymous_id:z'));
    store.apply({
      type: 'object.delete',
      environmentId: 1,
      receivedAtMs: NOW_MS,
      object: { objectTypeId: 1, objectId: 'acme' },
    });
    apply(identify('id:p', {}, { anonymousId: 'z' }));
    expect(store.relationships).toEqual([]);
  });

  it('after a deletion a new visit has only its own attributes', () => {
    apply(
      identify('anonymous_id:z', { plan: 'first' }),
      identify('id:p', {}, { anonymousId: 'z' }),
      remove('id:p'),
      identify('anonymous_id:z', { other: 'second' }),
      identify('id:q', {}, { anonymousId: 'z' }),
    );
    expect(store.people).toMatchObject([{ id: 'q', attributes: { other: 'second' } }]);
    expect(attributesOf('q')).toEqual({ other: 'second' });
  });

  it('an alias gives a new id to the person who has the former one', () => {
    apply(identify('id:old', { plan: 'pro' }), alias('id:new', 'id:old'));
    expect(store.people).toMatchObject([{ id: 'new', attributes: { plan: 'pro' } }]);
  });
});

it('an unsubscription is reported once, when it takes effect', () => {
  const kept = store.apply(identify('anonymous_id:z', { unsubscribed: true }));
  expect(kept.reports).toEqual([]);
  const taken = store.apply(identify('id:p', {}, { anonymousId: 'z' }));
  expect(taken.reports.map(({ eventType }) => eventType)).toEqual(['customer_unsubscribed']);
  expect(store.apply(identify('id:p', {}, { anonymousId: 'z' })).reports).toEqual([]);
});

it('attributes that are older than 30 days do not take effect', () => {
  store.apply({
    ...identify('anonymous_id:z', { plan: 'old' }),
    receivedAtMs: NOW_MS - 31 * DAY_MS,
  });
  store.apply(identify('anonymous_id:z', { other: 'young' }));
  store.apply(identify('id:p', {}, { anonymousId: 'z' }));
  expect(attributesOf('p')).toEqual({ other: 'young' });
});

it('a value beyond a bound of a visitor is an issue, and the rest is kept', () => {
  const many = Object.fromEntries(Array.from({ length: 301 }, (_, index) => [`a${index}`, index]));
  const { issues } = store.apply(identify('anonymous_id:z', many));
  expect(issues.map(({ issue }) => [issue.code, issue.field, issue.sample])).toEqual([
    ['too_large', 'attributes', 'a300'],
  ]);
  const large = store.apply(identify('anonymous_id:y', { kept: 1, large: 'x'.repeat(100_000) }));
  expect(large.issues.map(({ issue }) => issue.sample)).toEqual(['large']);
  store.apply(identify('id:p', {}, { anonymousId: 'y' }));
  expect(attributesOf('p')).toEqual({ kept: 1 });
  for (let index = 0; index < 51; index++)
    store.apply(relateObject(`object ${index}`, 'anonymous_id:x'));
  expect(
    Object.keys(store.visitors.find((row) => row.anonymousId === 'x')?.profile.relationships ?? {}),
  ).toHaveLength(50);
  const ofDevices = Array.from({ length: 51 }, (_, index) =>
    store.apply(addDevice('anonymous_id:w', `token ${index}`)),
  );
  expect(ofDevices.flatMap(({ issues: all }) => all.map(({ issue }) => issue.sample))).toEqual([
    'token 50',
  ]);
  store.apply(identify('id:q', {}, { anonymousId: 'w' }));
  expect(store.devices).toHaveLength(50);
});

it('a workspace without visitors records no attribute places for its people', () => {
  store.apply(identify('id:p', { plan: 'pro' }));
  store.apply(identify('id:p', { plan: 'free' }));
  expect(store.people).toMatchObject([{ attributePlaces: null }]);
});
