/** Late calls on a real database end as in time. */
import type { Operation } from '@sluice/domain/operations/operation';
import {
  identify,
  NOW_MS,
  remove,
  suppress,
  track,
  unsuppress,
} from '@sluice/domain/testing/sample-operations';
import { svcId } from '@sluice/domain/values/svc-id';
import fc from 'fast-check';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { processCommitBatch } from '../../../src/events/process-commit-batch.ts';
import { inEnvironment } from '../support/commit-batch-world.ts';
import { useWorkspace } from '../support/open-commit-batch.ts';

const RUNS = 25;
const SEED = 36;
const TEST_TIMEOUT_MS = 60_000;
const IDS = ['1', '2', '3'];
const EMAILS = ['a@x.example', 'b@x.example'];
const PHONES = ['+15550100', '+15550101'];
const VISITORS = ['v', 'w'];

const { world } = useWorkspace();

const namesOf = (kind: string, values: readonly string[]) =>
  fc.constantFrom(...values).map((value) => `${kind}:${value}`);
const maybe = (values: readonly string[]) =>
  fc.option(fc.constantFrom(...values), { nil: undefined });
const person = fc.oneof(
  namesOf('id', IDS),
  namesOf('email', EMAILS),
  namesOf('phone', PHONES),
  namesOf('anonymous_id', VISITORS),
);
const brought = fc.record({ id: maybe(IDS), email: maybe(EMAILS), anonymous_id: maybe(VISITORS) });
const call = fc.oneof(
  fc.tuple(person, brought).map(([who, all]): Operation => {
    const entries = Object.entries(all).filter(
      ([kind, value]) => value !== undefined && !who.startsWith(`${kind}:`),
    );
    return identify(who, Object.fromEntries(entries) as Record<string, string>);
  }),
  person.map((who): Operation => track(who, 'seen')),
);
const calls = (maxLength: number) => fc.array(call, { minLength: 1, maxLength });

const at = (operations: readonly Operation[], atMs: number): Operation[] =>
  operations.map((operation, index) => ({ ...operation, receivedAtMs: atMs + index }));

async function apply(
  environmentId: number,
  operations: readonly Operation[],
  isReplayed?: true,
): Promise<void> {
  const { deps, newId } = world();
  for (const [index, operation] of operations.entries()) {
    const [own] = inEnvironment(environmentId, operation);
    const named = own?.type === 'event.track' ? { ...own, eventId: `${newId()} ${index}` } : own;
    const commitBatch = { id: newId(), operations: [named as Operation] };
    await processCommitBatch(deps, { ...commitBatch, ...(isReplayed && { isReplayed }) });
  }
}

/** People with their names and number of events, blocked names and the events of visitors. */
async function stateOf(environmentId: number): Promise<unknown> {
  const { rows } = await sql<{ state: unknown }>`
    with named as (
      select person_id, suppressed, kind || ':' || value as name
        from person_identifiers where environment_id = ${environmentId}
    )
    select jsonb_build_object(
      'people', (select jsonb_agg(p.row order by p.row::text) from (
        select jsonb_build_object('id', id, 'email', email, 'phone', phone, 'attributes', attributes,
            'names', (select jsonb_agg(n.name order by n.name) from named n where n.person_id = p.person_id),
            'events', (select count(*) from events e where e.environment_id = p.environment_id
                         and e.person_id = p.person_id and e.kind = 'event')) as row
          from people p where environment_id = ${environmentId}) as p),
      'blocked', (select jsonb_agg(name order by name) from named where suppressed),
      'waiting', (select jsonb_agg(anonymous_id order by anonymous_id) from events
                   where environment_id = ${environmentId} and person_id is null and kind = 'event')
    ) as state`.execute(world().database);
  return rows[0]?.state;
}

async function hasPerson(environmentId: number, name: string): Promise<boolean> {
  const { rows } = await sql`
    select from person_identifiers where environment_id = ${environmentId}
       and kind || ':' || value = ${name} and person_id is not null and not suppressed`.execute(
    world().database,
  );
  return rows.length > 0;
}

test(
  'random late calls of before a deletion or suppression end as in time',
  async () => {
    const removals = fc.constantFrom('delete', 'suppress', 'unsuppress');
    const property = fc.asyncProperty(
      calls(5),
      calls(5),
      person,
      removals,
      async (before, late, whom, how) => {
        const stored = at(before, NOW_MS);
        const delayed = at(late, NOW_MS + 1_000);
        const removal: Operation[] = [
          { ...(how === 'delete' ? remove(whom) : suppress(whom)), receivedAtMs: NOW_MS + 2_000 },
        ];
        if (how === 'unsuppress')
          removal.push({ ...unsuppress(whom), receivedAtMs: NOW_MS + 3_000 });
        const [inTime, tooLate] = [world().newEnvironment(), world().newEnvironment()];
        await apply(tooLate, stored);
        fc.pre(await hasPerson(tooLate, whom));
        await apply(inTime, [...stored, ...delayed, ...removal]);
        await apply(tooLate, removal);
        await apply(tooLate, delayed, true);
        expect(await stateOf(tooLate)).toEqual(await stateOf(inTime));
      },
    );
    await fc.assert(property, { numRuns: RUNS, seed: SEED });
  },
  TEST_TIMEOUT_MS,
);

test('a late call under the svc_id of a deleted person gives them a name, and the next call by it makes no person', async () => {
  const environmentId = world().newEnvironment();
  await apply(environmentId, [identify('phone:+15550100')]);
  const [row] = await world().rowsOf('people', environmentId, 'person_id');
  const who = `svc_id:${svcId(Number(row?.['person_id']))}`;
  await apply(environmentId, at([remove('phone:+15550100')], NOW_MS + 1_000));
  await apply(
    environmentId,
    [identify(who, { email: 'a@x.example' }), track('email:A@x.example', 'seen')],
    true,
  );
  expect(await world().countOf('people', environmentId)).toBe(0);
  await apply(environmentId, [identify('email:a@x.example')]);
  expect(await world().countOf('people', environmentId)).toBe(1);
});

test('events of a visitor after the deletion of a person wait, though a late call gives that person the visitor', async () => {
  const environmentId = world().newEnvironment();
  await apply(environmentId, [identify('id:1'), track('anonymous_id:v', 'early')]);
  await apply(environmentId, [
    { ...remove('id:1'), receivedAtMs: NOW_MS + 1_000 },
    { ...track('anonymous_id:v', 'later'), receivedAtMs: NOW_MS + 2_000 },
  ]);
  await apply(environmentId, [identify('id:1', { anonymous_id: 'v' })], true);
  await apply(environmentId, at([identify('id:2', { anonymous_id: 'v' })], NOW_MS + 3_000));
  const [{ person_id: personId } = {}] = await world().rowsOf('people', environmentId);
  const events = await world().rowsOf('events', environmentId, 'name, person_id, kind');
  expect(events.filter((event) => event['kind'] === 'event')).toEqual([
    expect.objectContaining({
      name: 'early',
      person_id: expect.not.stringMatching(String(personId)),
    }),
    expect.objectContaining({ name: 'later', person_id: personId }),
  ]);
});

test('a deletion by a worker of an earlier version, beside the memory of a newer one, lets no late call make the person', async () => {
  const environmentId = world().newEnvironment();
  await apply(environmentId, [identify('id:1'), remove('id:1'), identify('id:1')]);
  // As that worker writes it: it leaves the owners as they are.
  await sql`delete from person_identifiers where environment_id = ${environmentId}`.execute(
    world().database,
  );
  await sql`delete from people where environment_id = ${environmentId}`.execute(world().database);
  await sql`
    insert into deleted_identifiers (environment_id, kind, value, deleted_at)
    values (${environmentId}, 'id', '1', ${new Date(NOW_MS + 1_000)})
    on conflict (environment_id, kind, value) do update set deleted_at = excluded.deleted_at`.execute(
    world().database,
  );
  await apply(environmentId, at([identify('email:a@x.example', { id: '1' })], NOW_MS + 500), true);
  expect(await world().countOf('people', environmentId)).toBe(0);
});
