/**
 * Commit batches of different shards at the same time.
 *
 * Against a real Postgres: the waits of one for another, and their common result.
 */
import type { Operation } from '@sluice/domain/operations/operation';
import {
  identify,
  identifyObject,
  merge,
  metric,
  relate,
  remove,
  suppress,
  track,
  unsuppress,
} from '@sluice/domain/testing/sample-operations';
import { beforeAll, describe, expect, it } from 'vitest';
import {
  createCommitBatchWorld,
  inEnvironment,
  type CommitBatchWorld,
} from '../support/commit-batch-world.ts';

let world: CommitBatchWorld;

beforeAll(async () => {
  world = await createCommitBatchWorld();
});

describe('two shards and one person', () => {
  it('loses no update when a person is written by id and by email at the same time', async () => {
    const environmentId = world.newEnvironment();
    await world.process(inEnvironment(environmentId, identify('id:1', { email: 'a@x' })));
    const rounds = 40;
    const write = async (who: string, prefix: string) => {
      for (let round = 0; round < rounds; round++) {
        await world.process(
          inEnvironment(
            environmentId,
            identify(who, { [`${prefix}${round}`]: round }),
            track(who, 'seen'),
          ),
        );
      }
    };
    await Promise.all([
      write('id:1', 'byId'),
      write('email:A@x', 'byEmail'),
      write('id:1', 'byIdAgain'),
    ]);
    const [person] = await world.rowsOf('people', environmentId);
    expect(Object.keys(person?.['attributes'] as object)).toHaveLength(3 * rounds);
    expect(await world.eventNames(environmentId)).toHaveLength(3 * rounds);
  });

  it('makes one person of identifiers that two shards meet first at the same time', async () => {
    const environmentId = world.newEnvironment();
    for (let round = 0; round < 30; round++) {
      const [id, email] = [`id:${round}`, `email:p${round}@x`];
      await Promise.all([
        world.process(inEnvironment(environmentId, identify(id, { email: `p${round}@x`, a: 1 }))),
        world.process(inEnvironment(environmentId, identify(email, { id: String(round), b: 1 }))),
        world.process(inEnvironment(environmentId, track(email, 'seen'))),
      ]);
    }
    const people = await world.rowsOf('people', environmentId, 'id, email, attributes');
    expect(people).toHaveLength(30);
    for (const person of people) expect(person['attributes']).toEqual({ a: 1, b: 1 });
    expect(await world.countOf('person_identifiers', environmentId)).toBe(60);
  });

  it('ends all writes, merges, deletions and suppressions at the same time with consistent rows', async () => {
    const environmentId = world.newEnvironment();
    const ids = ['1', '2', '3', '4'];
    let seed = 7;
    const random = (below: number) => (seed = (seed * 48271) % 2147483647) % below;
    const who = () => (random(2) === 0 ? `id:${ids[random(4)]}` : `email:p${ids[random(4)]}@x`);
    const anyOperation = (): Operation => {
      const choices: (() => Operation)[] = [
        () =>
          identify(
            who(),
            { email: `p${ids[random(4)]}@x`, n: random(100) },
            { anonymousId: `z${random(3)}` },
          ),
        () => identify(who(), { id: ids[random(4)] as string }),
        () => track(who(), 'seen'),
        () => track(`anonymous_id:z${random(3)}`, 'seen'),
        () => relate(who(), `object-${random(3)}`),
        () => identifyObject(`object-${random(3)}`, { n: random(10) }),
        () => merge(who(), who()),
        () => remove(who()),
        () => suppress(who()),
        () => unsuppress(who()),
        () => metric(`d${random(3)}`, 'opened', { recipient: `p${ids[random(4)]}@x` }),
      ];
      return (choices[random(choices.length)] as () => Operation)();
    };
    const work = async () => {
      for (let round = 0; round < 40; round++) {
        await world.process(
          inEnvironment(environmentId, ...Array.from({ length: 1 + random(6) }, anyOperation)),
        );
      }
    };
    await Promise.all([work(), work(), work()]);

    const people = await world.rowsOf('people', environmentId);
    const identifiers = await world.rowsOf('person_identifiers', environmentId);
    const present = new Set(people.map((row) => row['person_id']));
    for (const row of identifiers.filter(
      (identifier) => identifier['suppressed'] === false && identifier['person_id'] !== null,
    )) {
      expect(present).toContain(row['person_id']);
    }
    for (const row of identifiers.filter((identifier) => identifier['suppressed'] === true))
      expect(present).not.toContain(row['person_id']);
    const owned = (kind: string) =>
      identifiers
        .filter((row) => row['kind'] === kind && row['suppressed'] === false)
        .map((row) => `${String(row['person_id'])} ${String(row['value'])}`)
        .toSorted();
    for (const kind of ['id', 'email']) {
      const shown = people
        .filter((row) => row[kind] !== null)
        .map((row) => `${String(row['person_id'])} ${String(row[kind])}`);
      expect(owned(kind)).toEqual(shown.toSorted());
    }
    for (const table of ['relationships', 'devices']) {
      for (const row of await world.rowsOf(table, environmentId))
        expect(present).toContain(row['person_id']);
    }
    // An anonymous event waits only while its anonymous id has no owner.
    const waiting = (await world.rowsOf('events', environmentId)).filter(
      (row) => row['person_id'] === null && row['anonymous_id'] !== null,
    );
    for (const row of waiting) {
      const owner = identifiers.find(
        (identifier) =>
          identifier['kind'] === 'anonymous_id' && identifier['value'] === row['anonymous_id'],
      );
      expect(owner).toMatchObject({ person_id: null });
    }
  }, 240_000);
});

describe('anonymous events', () => {
  it("become the person's when both happen at the same time on different shards", async () => {
    const environmentId = world.newEnvironment();
    for (let round = 0; round < 30; round++) {
      await Promise.all([
        world.process(inEnvironment(environmentId, track(`anonymous_id:z${round}`, 'seen'))),
        world.process(
          inEnvironment(environmentId, identify(`id:${round}`, {}, { anonymousId: `z${round}` })),
        ),
      ]);
    }
    const events = await world.rowsOf('events', environmentId, 'name, person_id, processed_at');
    const seen = events.filter((row) => row['name'] === 'seen');
    expect(seen).toHaveLength(30);
    for (const row of seen) {
      expect(row['person_id']).not.toBeNull();
      expect(row['processed_at']).not.toBeNull();
    }
  });
});
