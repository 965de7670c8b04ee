/** Late calls by names that others have since, on a real database. */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Operation } from '@sluice/domain/operations/operation';
import { describe as describePerson, peopleIn } from '@sluice/domain/testing/names-over-time';
import { NamedSequence, type CallDraft } from '@sluice/domain/testing/named-sequences';
import { identify, merge, NOW_MS, remove, track } from '@sluice/domain/testing/sample-operations';
import { svcId } from '@sluice/domain/values/svc-id';
import fc from 'fast-check';
import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { processCommitBatch } from '../../../src/events/process-commit-batch.ts';
import { inEnvironment } from '../support/commit-batch-world.ts';
import { useWorkspace } from '../support/open-commit-batch.ts';
import { createShardsWorld } from '../support/shards-world.ts';

const RUNS = 60;
const SEED = 36;
const LENGTH_MAX = 25;
const TEST_TIMEOUT_MS = 60_000;
/** More than are remembered of one name. */
const ENDS = 120;

const { world, environmentId, runAndKeepOpen, untilWaiting } = useWorkspace();

async function apply(
  workspace: number,
  { isReplayed, ...operation }: Operation,
  atMs = operation.receivedAtMs - NOW_MS,
): Promise<void> {
  const { deps, newId } = world();
  const received = { ...operation, receivedAtMs: NOW_MS + atMs } as Operation;
  await processCommitBatch(deps, {
    id: newId(),
    operations: inEnvironment(workspace, received),
    ...(isReplayed && { isReplayed }),
  });
}

const late = (operation: Operation): Operation => ({ ...operation, isReplayed: true });

async function numberOf(workspace: number, name: string): Promise<number> {
  const { rows } = await sql<{ personId: string }>`
    select person_id as "personId" from person_identifiers
     where environment_id = ${workspace} and kind || ':' || value = ${name}`.execute(
    world().database,
  );
  return Number(rows[0]?.personId ?? 0);
}

const rename = async (workspace: number, from: string, to: string): Promise<Operation> =>
  identify(`svc_id:${svcId(await numberOf(workspace, from))}`, { id: to });

async function peopleOf(workspace: number): Promise<readonly string[]> {
  const { rows } = await sql<{ names: string[]; labels: string[] }>`
    select array(select i.kind || ':' || i.value from person_identifiers i
                  where i.environment_id = p.environment_id and i.person_id = p.person_id) as names,
           array(select jsonb_object_keys(p.attributes)
                 union all
                 select e.name from events e
                  where e.environment_id = p.environment_id and e.person_id = p.person_id and e.kind = 'event'
                 union all
                 select d.token from devices d
                  where d.environment_id = p.environment_id and d.person_id = p.person_id) as labels
      from people p where p.environment_id = ${workspace}`.execute(world().database);
  return rows.map(({ names, labels }) => describePerson(names, labels)).toSorted();
}

test('a late deletion by a name that its owner gave up since deletes them, and leaves the present owner', async () => {
  const workspace = world().newEnvironment();
  await apply(workspace, identify('id:x', { email: 'owner@x.example' }));
  await apply(workspace, identify('email:other@x.example'));
  await apply(workspace, await rename(workspace, 'id:x', 'y'), 100);
  await apply(workspace, identify('email:other@x.example', { id: 'x' }), 200);
  await apply(workspace, late(remove('id:x')), 50);
  expect(await world().rowsOf('people', workspace, 'id, email')).toEqual([
    { id: 'x', email: 'other@x.example' },
  ]);
  expect(await world().countOf('person_identifiers', workspace)).toBe(2);
});

test('a late call by a name that a person gave up before two merges and a deletion makes no person', async () => {
  const workspace = world().newEnvironment();
  for (const name of ['id:x', 'id:p', 'id:q']) await apply(workspace, identify(name));
  await apply(workspace, await rename(workspace, 'id:x', 'y'), 100);
  await apply(workspace, merge('id:p', 'id:y'), 200);
  await apply(workspace, merge('id:q', 'id:p'), 300);
  await apply(workspace, late(track('id:x', 'seen')), 50);
  const number = await numberOf(workspace, 'id:q');
  expect(
    (await world().rowsOf('events', workspace, 'name, person_id, kind')).filter(
      ({ kind }) => kind === 'event',
    ),
  ).toMatchObject([{ name: 'seen', person_id: String(number) }]);
  await apply(workspace, remove('id:q'), 400);
  await apply(workspace, late(identify('id:x')), 60);
  expect(await world().countOf('people', workspace)).toBe(0);
});

test('a name that a person gave up twice by clocks that differ is theirs before both', async () => {
  const workspace = world().newEnvironment();
  await apply(workspace, identify('id:x', { email: 'a@x.example' }));
  await apply(workspace, await rename(workspace, 'id:x', ''), 100);
  await apply(workspace, identify('email:a@x.example', { id: 'x' }), 30);
  await apply(workspace, await rename(workspace, 'id:x', ''), 50);
  await apply(workspace, late(identify('id:x', { plan: 'old' })), 70);
  expect(await world().rowsOf('people', workspace, 'id, attributes')).toEqual([
    { id: null, attributes: { plan: 'old' } },
  ]);
});

test(
  'if a name had too many owners since, a late deletion by it changes no person and is an issue',
  async () => {
    const workspace = world().newEnvironment();
    await apply(workspace, identify('id:x', { email: 'a@x.example' }));
    const giveUp = await rename(workspace, 'id:x', '');
    await apply(workspace, giveUp, 10);
    await apply(workspace, identify('email:b@x.example'));
    for (let index = 1; index <= ENDS; index++) {
      await apply(workspace, identify('email:b@x.example', { id: 'x' }), 10 * index + 1);
      await apply(workspace, await rename(workspace, 'id:x', ''), 10 * index + 5);
    }
    await apply(workspace, late(remove('id:x')), 5);
    expect(await world().countOf('people', workspace)).toBe(2);
    const issues = await world().rowsOf('ingestion_issues', workspace, 'code, field, message');
    expect(issues).toMatchObject([{ code: 'person_not_found', field: 'id' }]);
    // The last owner is remembered.
    await apply(workspace, late(remove('id:x')), 10 * ENDS + 3);
    expect(await world().rowsOf('people', workspace, 'email')).toEqual([{ email: 'a@x.example' }]);
  },
  TEST_TIMEOUT_MS,
);

/** The name has as many ends as are kept. */
const fillEnds = (workspace: number, id: string): Promise<unknown> =>
  sql`
    update deleted_identifiers set owners = owners || jsonb_build_object(repeat('-', 6001), 0)
     where environment_id = ${workspace} and kind = 'id' and value = ${id}`.execute(
    world().database,
  );

test('a late call of before the forgotten owners of a name is not about a later owner, also if an earlier end is kept', async () => {
  const workspace = world().newEnvironment();
  await apply(workspace, identify('id:x', { email: 'a@x.example' }));
  await apply(workspace, identify('email:b@x.example'));
  await apply(workspace, await rename(workspace, 'id:x', ''), 60);
  await fillEnds(workspace, 'x');
  await apply(workspace, identify('email:b@x.example', { id: 'x' }), 70);
  // The end has the time of its receipt, and takes the place of the others.
  await apply(workspace, late(remove('email:b@x.example')), 50);
  await apply(workspace, identify('id:x', { email: 'c@x.example' }), 80);
  await apply(workspace, await rename(workspace, 'id:x', ''), 300);
  await apply(workspace, late(remove('id:x')), 55);
  const people = await world().rowsOf('people', workspace, 'email');
  expect(new Set(people.map(({ email }) => email))).toEqual(
    new Set(['a@x.example', 'c@x.example']),
  );
  const issues = await world().rowsOf('ingestion_issues', workspace, 'code, field, message');
  expect(issues).toMatchObject([
    { code: 'person_not_found', field: 'id', message: expect.stringContaining('so many owners') },
  ]);
  // The owners since then are remembered.
  await apply(workspace, late(remove('id:x')), 90);
  expect(await world().rowsOf('people', workspace, 'email')).toEqual([{ email: 'a@x.example' }]);
});

test('a late deletion by a name that its owner gives up meanwhile deletes them', async () => {
  await apply(environmentId(), identify('id:x'));
  const giveUp = await rename(environmentId(), 'id:x', 'y');
  const renaming = await runAndKeepOpen({ ...giveUp, receivedAtMs: NOW_MS + 100 });
  const removal = apply(environmentId(), late(remove('id:x')), 50);
  // Beside the transaction that is kept open.
  await untilWaiting(2);
  await renaming.end();
  await removal;
  expect(await world().countOf('people', environmentId())).toBe(0);
});

test('a late deletion by a name whose owner is merged meanwhile deletes the person they became, and leaves its present owner', async () => {
  await apply(environmentId(), identify('id:x'));
  await apply(environmentId(), await rename(environmentId(), 'id:x', 'y'), 100);
  await apply(environmentId(), identify('id:x'), 200);
  await apply(environmentId(), identify('id:q'), 250);
  const merging = await runAndKeepOpen({ ...merge('id:q', 'id:y'), receivedAtMs: NOW_MS + 300 });
  const removal = apply(environmentId(), late(remove('id:x')), 50);
  // Beside the transaction that is kept open.
  await untilWaiting(2);
  await merging.end();
  await removal;
  expect(await world().rowsOf('people', environmentId(), 'id')).toEqual([{ id: 'x' }]);
});

test('a late deletion by a name that its owner gave up comes after earlier calls by their other names', async () => {
  const shards = await createShardsWorld('postgres');
  onTestFinished(() => shards.close());
  const workspace = shards.newEnvironment();
  await shards.process(inEnvironment(workspace, identify('id:x')));
  const [row] = await shards.rowsOf('people', workspace, 'person_id');
  const giveUp = identify(`svc_id:${svcId(Number(row?.['person_id']))}`, { id: 'y' });
  await shards.process(inEnvironment(workspace, { ...giveUp, receivedAtMs: NOW_MS + 100 }));
  const [update, removal] = (await shards.add([
    inEnvironment(workspace, identify('id:y', { plan: 'pro' })),
    inEnvironment(workspace, { ...remove('id:x'), receivedAtMs: NOW_MS + 50 }),
  ])) as [CommitBatch, CommitBatch];
  const pending = shards.newPending();
  await shards.processToEnd({ ...removal, isReplayed: true }, pending);
  await shards.processToEnd(update, pending);
  expect(await shards.countOf('people', workspace)).toBe(0);
});

const draft: fc.Arbitrary<CallDraft> = fc.record({
  type: fc.constantFrom('identify', 'identify', 'rename', 'merge', 'delete', 'event', 'device'),
  isLate: fc.boolean(),
  who: fc.nat(),
  other: fc.nat(),
  hasOther: fc.boolean(),
  time: fc.nat(),
  isJoined: fc.constant(false),
  clock: fc.constant(0),
});

test(
  'random late calls are about the owners of their names when they were received',
  async () => {
    const drafts = fc.array(draft, { minLength: 3, maxLength: LENGTH_MAX, size: 'max' });
    const property = fc.asyncProperty(drafts, async (all) => {
      const workspace = world().newEnvironment();
      const sequence = new NamedSequence();
      for (const each of all) {
        const next = sequence.next(each);
        if (!next) continue;
        await apply(workspace, next.operation);
        const state = next.after(await numberOf(workspace, next.who));
        expect(await peopleOf(workspace)).toEqual(peopleIn(state));
      }
    });
    // A failure is not made smaller: each try costs many transactions.
    await fc.assert(property, { numRuns: RUNS, seed: SEED, endOnFailure: true });
  },
  TEST_TIMEOUT_MS,
);
