/** The person that a call is about: of its own workspace, and the one with the message when the call is applied. */
import { svcId } from '@sluice/domain/values/svc-id';
import {
  identify,
  merge,
  metric,
  remove,
  track,
  unsubscribeDelivery,
} from '@sluice/domain/testing/sample-operations';
import { expect, test } from 'vitest';
import { inEnvironment } from '../support/commit-batch-world.ts';
import { useWorkspace } from '../support/open-commit-batch.ts';

const { world, environmentId, run, runAndKeepOpen, untilWaiting } = useWorkspace();

const personIdOf = async (id: string) =>
  (await world().rowsOf('people', environmentId())).find((row) => row['id'] === id)?.['person_id'];

/** Each one's id, and whether they are unsubscribed. */
const unsubscribed = async () =>
  (await world().rowsOf('people', environmentId(), 'id, unsubscribed'))
    .map((row) => `${String(row['id'])} ${String(row['unsubscribed'])}`)
    .toSorted();

test('a message of a person who is merged meanwhile belongs to the primary: unsubscribed, and reported about', async () => {
  await run(identify('id:1'), identify('email:b@x'), identify('id:3'));
  await run(metric('m', 'sent', { recipient: 'b@x' }));
  const merging = await runAndKeepOpen(merge('id:1', 'email:b@x'));
  const reported = run(metric('m', 'opened'));
  const unsubscribing = run(unsubscribeDelivery('m'));
  await untilWaiting(3);
  await merging.end();
  await Promise.all([reported, unsubscribing]);
  expect(await world().rowsOf('message_deliveries', environmentId(), 'person_id')).toEqual([
    { person_id: await personIdOf('1') },
  ]);
  expect(await unsubscribed()).toEqual(['1 true', '3 null']);
});

test('a message that goes from hand to hand while it is waited for ends with the last', async () => {
  await run(identify('id:1'), identify('email:b@x'), identify('id:3'));
  await run(metric('m', 'sent', { recipient: 'b@x' }));
  const merging = await runAndKeepOpen(merge('id:3', 'email:b@x'), merge('id:1', 'id:3'));
  const unsubscribing = run(unsubscribeDelivery('m'));
  await untilWaiting(2);
  await merging.end();
  await unsubscribing;
  expect(await unsubscribed()).toEqual(['1 true']);
});

test('an unsubscribe by a message of a person who is deleted meanwhile is recorded as an issue', async () => {
  await run(identify('email:b@x'));
  await run(metric('m', 'sent', { recipient: 'b@x' }));
  const removing = await runAndKeepOpen(remove('email:b@x'));
  const unsubscribing = run(unsubscribeDelivery('m'));
  await untilWaiting(2);
  await removing.end();
  expect(await unsubscribing).toMatchObject({ outcome: 'applied', counts: { issues: 1 } });
});

test('calls of another workspace with the number of a person do not affect that person’s own calls', async () => {
  const other = world().newEnvironment();
  await run(identify('id:1'));
  const who = `svc_id:${svcId(Number(await personIdOf('1')))}`;
  await world().process([
    ...inEnvironment(environmentId(), identify(who, { plan: 'pro' }), track(who, 'seen')),
    ...inEnvironment(other, identify(who, { plan: 'theirs' }), track(who, 'theirs')),
  ]);
  expect(await world().rowsOf('people', environmentId(), 'attributes')).toEqual([
    { attributes: { plan: 'pro' } },
  ]);
  expect(await world().eventNames(environmentId())).toEqual(['seen']);
  expect(await world().countOf('people', other)).toBe(0);
  expect(await world().countOf('events', other)).toBe(0);
});

test('an attribute that a merge brought is not replaced by an older _timestamp', async () => {
  const at = (seconds: number) => ({ attributesAtMs: 1_000 * seconds });
  await run(identify('id:p'), identify('id:s', { city: 'newer' }, at(1_600_000_005)));
  await run(merge('id:p', 'id:s'));
  await run(identify('id:p', { city: 'older' }, at(1_600_000_004)));
  expect(await world().rowsOf('people', environmentId(), 'id, attributes')).toEqual([
    { id: 'p', attributes: { city: 'newer' } },
  ]);
});

test('a removal stays newer than a visitor’s trait after a merge with somebody who removed it before', async () => {
  // Another visitor, whose traits make the workspace record places.
  await run(identify('anonymous_id:other', { plan: 'other' }));
  await run(identify('id:s', { plan: null }));
  await run(identify('anonymous_id:z', { plan: 'visitor' }));
  await run(identify('id:p', { plan: null }));
  await run(merge('id:p', 'id:s'));
  await run(identify('id:p', {}, { anonymousId: 'z' }));
  expect(await world().rowsOf('people', environmentId(), 'id, attributes')).toEqual([
    { id: 'p', attributes: {} },
  ]);
});
