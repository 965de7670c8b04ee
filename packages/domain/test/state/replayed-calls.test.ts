/**
 * A late call from a disk buffer makes no deleted person anew.
 *
 * The call waited there, and was taken before its person was deleted.
 */
import { beforeEach, describe, expect, it } from 'vitest';
import type { Operation } from '../../src/operations/operation.ts';
import {
  addDevice,
  form,
  identify,
  identifyObject,
  merge,
  NOW_MS,
  relate,
  remove,
  track,
} from '../../src/testing/sample-operations.ts';
import { MemoryStore, WAYS } from '../support/memory-store.ts';

let store: MemoryStore;
beforeEach(() => {
  store = new MemoryStore();
});

const DELETED_AT_MS = NOW_MS + 1_000;
const replayed = (operation: Operation, receivedAtMs: number): Operation => ({
  ...operation,
  receivedAtMs,
  isReplayed: true,
});

describe.each(WAYS)('%s', (_, isTogether) => {
  const deletePerson = () =>
    store.applyEach(isTogether, identify('id:1', { email: 'a@example.com' }), {
      ...remove('id:1'),
      receivedAtMs: DELETED_AT_MS,
    });

  it.each([
    ['an identify', identify('id:1')],
    ['an identify by the email', identify('email:A@example.com')],
    ['an identify that brings the email', identify('id:2', { email: 'a@example.com' })],
    ['an event', track('id:1', 'seen')],
    ['a device', addDevice('id:1', 'token')],
    ['a relationship', relate('id:1', 'acme')],
    ['a form', form('email:a@example.com', 'f', {})],
  ])('%s of before the deletion creates no person', (_name, call) => {
    deletePerson();
    store.apply(replayed(call, DELETED_AT_MS - 1));
    expect(store.people).toEqual([]);
    expect(store.events.filter(({ kind }) => kind === 'event')).toEqual([]);
    store.apply(
      replayed({ ...call, ...('eventId' in call && { eventId: 'another' }) }, DELETED_AT_MS + 1),
    );
    expect(store.people).toHaveLength(1);
  });

  it('leaves a person unchanged who has the identifier since', () => {
    deletePerson();
    store.apply({ ...identify('id:1', { plan: 'new' }), receivedAtMs: DELETED_AT_MS + 1 });
    store.apply(replayed(identify('id:1', { plan: 'old' }), DELETED_AT_MS - 1));
    store.apply(replayed(merge('id:1', 'id:1'), DELETED_AT_MS - 1));
    expect(store.people).toMatchObject([{ id: '1', attributes: { plan: 'new' } }]);
  });
});

it('a call that did not wait comes after the deletion, with any clock of its intake', () => {
  store.apply(identify('id:1'));
  store.apply({ ...remove('id:1'), receivedAtMs: DELETED_AT_MS });
  store.apply({ ...identify('id:1'), receivedAtMs: DELETED_AT_MS - 60_000 });
  expect(store.people).toHaveLength(1);
});

it('a person who is made and deleted twice in one commit batch is remembered once', () => {
  const changes = store.apply(identify('id:1'), remove('id:1'), identify('id:1'), remove('id:1'));
  expect(changes.deletedIdentifiers).toHaveLength(1);
});

it('others are left as they are', () => {
  store.apply(identify('id:1'), identify('id:2'));
  store.apply({ ...remove('id:1'), receivedAtMs: DELETED_AT_MS });
  store.apply(replayed(identify('id:2', { plan: 'pro' }), DELETED_AT_MS - 1));
  store.apply(replayed(identifyObject('acme', { name: 'A' }), DELETED_AT_MS - 1));
  expect(store.people).toMatchObject([{ id: '2', attributes: { plan: 'pro' } }]);
  expect(store.objects).toHaveLength(1);
});
