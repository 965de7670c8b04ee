/**
 * Events that read identities without a lock, beside merges.
 *
 * Also beside all other changes of people: in both orders, the first transaction still open while the second comes.
 */
import type { DatabaseOrTransaction } from '@sluice/database/connection/connection';
import { svcId } from '@sluice/domain/values/svc-id';
import { identify, merge, remove, suppress, track } from '@sluice/domain/testing/sample-operations';
import { sql } from 'kysely';
import { beforeEach, describe, expect, it, test } from 'vitest';
import { useWorkspace } from '../support/open-commit-batch.ts';

const { world, environmentId, run, runAndKeepOpen, untilWaiting } = useWorkspace();

const peopleById = async () =>
  new Map(
    (await world().rowsOf('people', environmentId())).map((row) => [row['id'], row['person_id']]),
  );

/** Whose the events of this name are. */
const ownersOf = async (name: string) =>
  (await world().rowsOf('events', environmentId()))
    .filter((row) => row['name'] === name)
    .map((row) => row['person_id']);

const identifiers = async () =>
  (await world().rowsOf('person_identifiers', environmentId()))
    .map((row) => `${String(row['kind'])}:${String(row['value'])}=${String(row['person_id'])}`)
    .toSorted();

const lockAllIdentifiers = (transaction: DatabaseOrTransaction) =>
  sql`select 1 from person_identifiers where environment_id = ${environmentId()} for update`.execute(
    transaction,
  );

describe('an event of somebody who is there', () => {
  it('waits for no holder of the person’s identifiers, and does not block them', async () => {
    await run(identify('id:1'));
    await world()
      .database.transaction()
      .execute(async (other) => {
        await lockAllIdentifiers(other);
        await run(track('id:1', 'seen'));
      });
    const event = await runAndKeepOpen(track('id:1', 'seen'));
    await sql`
      select 1 from person_identifiers where environment_id = ${environmentId()} for update nowait`.execute(
      world().database,
    );
    await event.end();
    expect(await ownersOf('seen')).toHaveLength(2);
  });
});

describe('a merge', () => {
  beforeEach(async () => {
    await run(identify('id:1'), identify('email:b@x'), identify('id:3'), identify('email:d@x'));
  });

  it('waits for an event that has read who its person is, and takes it along', async () => {
    const event = await runAndKeepOpen(track('email:b@x', 'seen'));
    const merging = run(merge('id:1', 'email:b@x'));
    await untilWaiting(2);
    await event.end();
    await merging;
    expect(await ownersOf('seen')).toEqual([(await peopleById()).get('1')]);
  });

  it('is waited for by an event of its people that comes while it goes on', async () => {
    const merging = await runAndKeepOpen(merge('id:1', 'email:b@x'));
    const event = run(track('email:b@x', 'seen'));
    await untilWaiting(2);
    await merging.end();
    await event;
    expect(await ownersOf('seen')).toEqual([(await peopleById()).get('1')]);
  });

  it('one after the other takes along an event that read its person before the first of them', async () => {
    const event = await runAndKeepOpen(track('email:b@x', 'seen'));
    const merging = [run(merge('email:d@x', 'email:b@x')), run(merge('id:1', 'id:3'))];
    await untilWaiting(3);
    await event.end();
    await Promise.all(merging);
    await run(merge('id:1', 'email:d@x'));
    expect(await ownersOf('seen')).toEqual([(await peopleById()).get('1')]);
  });

  it('that waits does not block events of others, and later events do not block it', async () => {
    const event = await runAndKeepOpen(track('email:b@x', 'seen'));
    const merging = run(merge('id:1', 'email:b@x'));
    await untilWaiting(2);
    await run(track('id:3', 'meanwhile'));
    const later = await runAndKeepOpen(track('id:3', 'later'));
    await event.end();
    await merging;
    await later.end();
    const { 1: first, 3: third } = Object.fromEntries(await peopleById());
    expect(await ownersOf('seen')).toEqual([first]);
    expect(await ownersOf('meanwhile')).toEqual([third]);
    expect(await ownersOf('later')).toEqual([third]);
  });

  it('waits for no merge of others', async () => {
    const merging = await runAndKeepOpen(merge('id:1', 'email:b@x'));
    await run(merge('id:3', 'email:d@x'));
    await merging.end();
    expect((await peopleById()).size).toBe(2);
  });

  test('of the version before, which does not know the gate, is kept off too, and keeps events from reading', async () => {
    const claim = (id: string) => sql`
      insert into envelopes (envelope_id, operation_count) values (${id}, 1)`;
    const event = await runAndKeepOpen(track('email:b@x', 'seen'));
    const claiming = claim('old-1').execute(world().database);
    await untilWaiting(2);
    await event.end();
    await claiming;
    let later: Promise<unknown> | undefined;
    await world()
      .database.transaction()
      .execute(async (old) => {
        await claim('old-2').execute(old);
        await lockAllIdentifiers(old);
        later = run(track('email:b@x', 'later'));
        await untilWaiting(1);
      });
    await later;
    expect(await ownersOf('later')).toEqual(await ownersOf('seen'));
  });
});

describe.each([
  ['deleted', remove, []],
  ['suppressed', suppress, ['id:1']],
] as const)('somebody who is %s', (_, goes, kept) => {
  const names = async () => (await identifiers()).map((text) => text.split('=')[0]);

  it('keeps an event that had read who they are, and does not come back by it', async () => {
    await run(identify('id:1'));
    const personId = (await peopleById()).get('1');
    const event = await runAndKeepOpen(track('id:1', 'seen'));
    await run(goes('id:1'));
    await event.end();
    expect(await ownersOf('seen')).toEqual([personId]);
    expect(await world().countOf('people', environmentId())).toBe(0);
    expect(await names()).toEqual(kept);
  });

  it('keeps one that reads who they are before that is certain', async () => {
    await run(identify('id:1'));
    const personId = (await peopleById()).get('1');
    const going = await runAndKeepOpen(goes('id:1'));
    await run(track('id:1', 'seen'));
    await going.end();
    expect(await ownersOf('seen')).toEqual([personId]);
    expect(await world().countOf('people', environmentId())).toBe(0);
    expect(await names()).toEqual(kept);
  });

  it('is given no anonymous id by an event that comes meanwhile', async () => {
    await run(identify('id:1'));
    const gone = (await peopleById()).get('1');
    const going = await runAndKeepOpen(goes('id:1'));
    const event = run(track('id:1', 'seen', { anonymousId: 'z' }));
    await untilWaiting(2);
    await going.end();
    await event;
    expect(await identifiers()).not.toContain(`anonymous_id:z=${String(gone)}`);
    expect(await ownersOf('seen')).not.toContain(gone);
  });
});

test('the anonymous event that comes while its id is being given to somebody becomes theirs', async () => {
  await run(identify('id:1'), track('anonymous_id:z', 'before'));
  const naming = await runAndKeepOpen(identify('id:1', {}, { anonymousId: 'z' }));
  const event = run(track('anonymous_id:z', 'seen'));
  await untilWaiting(2);
  await naming.end();
  await event;
  expect(await ownersOf('seen')).toEqual([(await peopleById()).get('1')]);
});

test('if one name of a person is held within a commit batch, the other names are held too', async () => {
  await run(identify('id:1', { email: 'a@x' }));
  await run(remove('id:1'), track('email:a@x', 'seen'));
  const people = await world().rowsOf('people', environmentId());
  expect(people).toMatchObject([{ id: null, email: 'a@x' }]);
  expect(await ownersOf('seen')).toEqual([people[0]?.['person_id']]);
});

test('a commit batch that finds names moved when it has waited for one of them looks anew at all of them', async () => {
  await run(identify('id:9'), identify('email:a@x'), identify('id:3'));
  const named = Object.fromEntries(await peopleById()) as Record<string, string>;
  const svc = (name: string) => `svc_id:${svcId(Number(named[name]))}`;
  const moving = await runAndKeepOpen(
    identify(svc('9'), { id: '' }),
    identify(svc('null'), { id: '9', email: 'new@x' }),
    identify(svc('3'), { email: 'a@x' }),
  );
  const event = run(remove('id:9'), track('email:a@x', 'seen'));
  await untilWaiting(2);
  await moving.end();
  await event;
  expect(await ownersOf('seen')).toEqual([named['3']]);
  expect(await identifiers()).toEqual([`email:a@x=${named['3']}`, `id:3=${named['3']}`]);
});

test('after any merges while events come from all shards, each event belongs to a person who is there', async () => {
  const ids = ['1', '2', '3', '4', '5', '6'];
  let seed = 11;
  const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
  const who = () => `email:p${ids[random(6)]}@x`;
  let tracked = 0;
  const trackSome = async () => {
    for (let round = 0; round < 60; round++) {
      const events = Array.from({ length: 1 + random(4) }, () => track(who(), 'seen'));
      tracked += events.length;
      await run(...events, ...(random(4) === 0 ? [identify(who(), { n: random(9) })] : []));
    }
  };
  const mergeSome = async () => {
    for (let round = 0; round < 60; round++) await run(merge(who(), who()));
  };
  await Promise.all([trackSome(), trackSome(), trackSome(), mergeSome(), mergeSome()]);
  const present = new Set([
    ...(await world().rowsOf('people', environmentId())).map((row) => row['person_id']),
  ]);
  const owners = await ownersOf('seen');
  expect(owners).toHaveLength(tracked);
  expect(owners.filter((owner) => !present.has(owner))).toEqual([]);
}, 240_000);
