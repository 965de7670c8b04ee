/**
 * Rules of the reference model about visitors, each with its section.
 * `spec` is ingestion-webhooks.md, `§` are sections of ingestion-conventions.md.
 */
import { expect, test } from 'vitest';
import type { Body, Call } from '../../src/order/model/call.ts';
import {
  after,
  device,
  entity,
  pipelines,
  put,
  relate,
  sortedPeople,
  person,
} from '../support/model-calls.ts';

const traits = (anonymousId: string, sent: Body): Call =>
  pipelines('identify', { anonymousId, traits: sent as never });
const group = (ids: Body, role: number): Call =>
  pipelines('group', { ...ids, groupId: 'g', traits: { relationship_traits: { role } } });
const command = (ids: Body, event: string): Call =>
  pipelines('track', {
    ...ids,
    event,
    properties: event.startsWith('Relationship') ? { objectId: 'g' } : {},
    context: { device: { token: 't', type: 'ios' } },
  });
const identified = put('p', { anonymous_id: 'v' });
const onlyPerson = (...calls: Call[]) => after(...calls).people[0];

test('§1.2: a trait with an older _timestamp never replaces a newer one, of a person or of the visitor', () => {
  expect(
    sortedPeople(
      put('p', { plan: 1, _timestamp: 5 }),
      traits('v', { plan: 2, city: 2, _timestamp: 4 }),
      identified,
    ),
  ).toEqual([person('anonymous:v id:p', { plan: 1 })]);
  expect(
    sortedPeople(
      traits('v', { plan: 1, _timestamp: 5 }),
      traits('v', { plan: 2, _timestamp: 4 }),
      put('p', { anonymous_id: 'v', city: 3, _timestamp: 4 }),
      put('p', { step: 4, _timestamp: 5 }),
    ),
  ).toEqual([person('anonymous:v id:p', { plan: 1, step: 4 })]);
});

test('§3.4: a device of a visitor waits for the identification, and one that is removed does not come', () => {
  const add = command({ anonymousId: 'v' }, 'Device Created or Updated');
  expect(onlyPerson(add, identified)?.devices).toEqual({ t: { platform: 'ios', attributes: {} } });
  const remove = command({ anonymousId: 'v' }, 'Device Deleted');
  expect(onlyPerson(add, remove, identified)?.devices).toEqual({});
});

test('H 3: a device or group that the person removes later stays away, also after a merge', () => {
  const add = [
    command({ anonymousId: 'v' }, 'Device Created or Updated'),
    group({ anonymousId: 'v' }, 1),
    put('p'),
    put('q'),
  ];
  const remove = (userId: string) => [
    command({ userId }, 'Device Deleted'),
    command({ userId }, 'Relationship Deleted'),
  ];
  const alias = pipelines('alias', { previousId: 'q', userId: 'p' });
  const calls = [
    [...add, ...remove('p'), identified],
    [...add, ...remove('q'), alias, identified],
    [...add, ...remove('p'), alias, identified],
  ];
  const ofP = (each: readonly Call[]) =>
    after(...each).people.find(({ names }) => names.includes('id:p'));
  for (const each of calls) {
    expect(ofP(each)?.devices).toEqual({});
    expect(ofP(each)?.relationships).toEqual({});
  }
  const earlier = ofP([...remove('p'), ...add, ...remove('q'), identified]);
  expect(Object.keys(earlier?.devices ?? {})).toEqual(['t']);
  expect(Object.keys(earlier?.relationships ?? {})).toEqual(['1/g']);
});

test('§3.4: the events of an application change a device and stay events', () => {
  const opened = onlyPerson(command({ userId: 'p' }, 'Application Opened'));
  expect(opened?.devices).toEqual({ t: { platform: 'ios', attributes: {} } });
  const gone = onlyPerson(
    command({ userId: 'p' }, 'Application Opened'),
    command({ userId: 'p' }, 'Application Uninstalled'),
  );
  expect(gone?.devices).toEqual({});
  expect(gone?.events.map(({ name }) => name)).toEqual([
    'Application Opened',
    'Application Uninstalled',
  ]);
});

test('decided: a group or a device that names a person and a visitor is no identification', () => {
  const both = { userId: 'p', anonymousId: 'v' };
  for (const call of [group(both, 1), command(both, 'Device Created or Updated')])
    expect(sortedPeople(pipelines('track', { anonymousId: 'v', event: 'e' }), call)).toEqual([
      person('id:p'),
    ]);
});

test('decided: relationships and devices that the person has stay as they are', () => {
  const kept = onlyPerson(
    relate('p', 1),
    device('p', '1'),
    group({ anonymousId: 'v' }, 2),
    command({ anonymousId: 'v' }, 'Device Created or Updated'),
    command({ anonymousId: 'v' }, 'Relationship Deleted'),
    command({ anonymousId: 'v' }, 'Device Deleted'),
    group({ anonymousId: 'v' }, 3),
    identified,
  );
  expect(kept?.relationships).toEqual({ '1/g': { role: 1 } });
  expect(kept?.devices).toEqual({ t: { platform: 'ios', attributes: { v: '1' } } });
});

test('§3.5: an identify with objectId relates the visitor, and then the person', () => {
  const call = traits('v', { plan: 1, objectId: 'g', relationshipAttributes: { role: 2 } });
  const related = onlyPerson(call, identified);
  expect(related?.relationships).toEqual({ '1/g': { role: 2 } });
  expect(Object.keys(related?.values ?? {})).toEqual(['plan']);
});

test('§1.3: a call changes the preferences that it names, by dots or in an object', () => {
  const topic = 'svc_subscription_preferences.topics';
  const object = { svc_subscription_preferences: { topics: { topic_1: false, topic_2: true } } };
  expect(
    sortedPeople(
      put('p', object),
      entity({
        type: 'person',
        action: 'identify',
        identifiers: { id: 'p' },
        attributes: { [`${topic}.topic_1`]: true },
      }),
    ),
  ).toEqual([person('id:p', { [`${topic}.topic_1`]: true, [`${topic}.topic_2`]: true })]);
});

test('decided: of two people with preferences, a merge keeps the primary’s', () => {
  const preferences = (name: string) => ({ [`svc_subscription_preferences.${name}`]: false });
  expect(
    sortedPeople(
      put('p', preferences('topics.topic_1')),
      put('q', preferences('channels.sms')),
      pipelines('alias', { previousId: 'q', userId: 'p' }),
    ),
  ).toEqual([person('id:p', preferences('topics.topic_1'))]);
});

test('§1.2: after a merge, a _timestamp older than the newest of both people is skipped', () => {
  const calls = [
    put('p'),
    put('q', { city: 1, _timestamp: 5 }),
    pipelines('alias', { previousId: 'q', userId: 'p' }),
    put('p', { city: 2, _timestamp: 4 }),
  ];
  expect(sortedPeople(...calls)).toEqual([person('id:p', { city: 1 })]);
});

test('H 4: a removal stays newer than a visitor’s trait, also after a merge', () => {
  for (const plan of [null, 1])
    expect(
      sortedPeople(
        put('q', { plan }),
        traits('v', { plan: 2 }),
        put('p', { plan: null }),
        pipelines('alias', { previousId: 'q', userId: 'p' }),
        identified,
      ),
    ).toEqual([person('anonymous:v id:p', plan === null ? {} : { plan })]);
});
