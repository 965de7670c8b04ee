/** Tries of one commit batch, and batches before it. */
import { insertTestWebhook, insertTestWorkspace } from '@sluice/database/testing/test-tenants';
import { statementsSentBy, type SentStatement } from '@sluice/database/testing/statements-sent';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { identify, remove, track } from '@sluice/domain/testing/sample-operations';
import { sql } from 'kysely';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { processCommitBatch } from '../../../src/events/process-commit-batch.ts';
import { TakenIdWatch } from '../../../src/events/taken-id-watch.ts';
import { inEnvironment } from '../support/commit-batch-world.ts';
import { createShardsWorld, shardOfBatch, type ShardsWorld } from '../support/shards-world.ts';

let world: ShardsWorld;
beforeAll(async () => {
  world = await createShardsWorld('redis');
});
afterAll(() => world.close());

const batchOf = (environmentId: number, ...names: string[]): CommitBatch => ({
  id: world.newId(),
  operations: inEnvironment(environmentId, ...names.map((name) => track('id:a', name))),
});

const claimsIn = (sent: readonly SentStatement[]): number =>
  sent.filter(({ text }) => text.includes('insert into envelopes')).length;

describe('a try', () => {
  /** Applies a batch about a new person. So many tries meet a fault of ours at their claim. */
  async function applyWithFaults(faultCount: number): Promise<readonly SentStatement[]> {
    let faults = 0;
    const database = world.database.withPlugin({
      transformQuery: ({ node }) => {
        const isClaim = JSON.stringify(node).includes('insert into envelopes');
        if (isClaim && faults++ < faultCount) throw new TypeError('a fault of ours');
        return node;
      },
      transformResult: ({ result }) => Promise.resolve(result),
    });
    const batch = batchOf(world.newEnvironment(), 'a');
    return statementsSentBy(async () => {
      const result = await processCommitBatch({ ...world.deps, database }, batch);
      expect(result).toMatchObject({ outcome: 'applied', counts: { parked: 0 } });
    });
  }

  test('that meets a fault is made again as a whole; only a second fault isolates operations', async () => {
    const savepointCount = async (faultCount: number) =>
      (await applyWithFaults(faultCount)).filter(({ text }) => /^savepoint/i.test(text)).length;
    expect(await savepointCount(0)).toBe(0);
    expect(await savepointCount(1)).toBe(0);
    expect(await savepointCount(2)).toBeGreaterThan(0);
  });

  test('asks once whether a name is free; made again, it looks a second time, once it has waited', async () => {
    const looksAfterLocks = async (faultCount: number) => {
      const sent = await applyWithFaults(faultCount);
      const lastLock = sent.findLastIndex(({ text }) => text.includes('for update of i'));
      expect(lastLock).toBeGreaterThan(0);
      const after = sent.slice(lastLock + 1);
      return after.filter(({ text }) => text.includes('join person_identifiers')).length;
    };
    expect(await looksAfterLocks(0)).toBe(0);
    expect(await looksAfterLocks(1)).toBe(1);
  });

  test('looks for event ids only in the minute after a repetition, and else when it is made again', async () => {
    const environmentId = world.newEnvironment();
    const clock = { nowMs: 1_800_000_000_000 };
    const deps = { ...world.deps, takenIds: new TakenIdWatch(), now: () => clock.nowMs };
    const idStatements = async (eventId: string) => {
      const operations = inEnvironment(environmentId, track('id:a', eventId, { eventId }));
      const sent = await statementsSentBy(() =>
        processCommitBatch(deps, { id: world.newId(), operations }),
      );
      const onIds = sent.filter(({ text }) => /(?:insert into|from) event_ids/.test(text));
      return onIds.map(({ text }) => (text.includes('from event_ids') ? 'looks' : 'takes'));
    };
    expect(await idStatements('a')).toEqual(['takes']);
    expect(await idStatements('b')).toEqual(['takes']);
    expect(await idStatements('a')).toEqual(['takes', 'looks']);
    expect(await idStatements('c')).toEqual(['looks']);
    clock.nowMs += 60_000;
    expect(await idStatements('d')).toEqual(['takes']);
  });

  test('that brings a value which the database refuses isolates it at the next one', async () => {
    const operations = inEnvironment(world.newEnvironment(), track('id:a', 'a'), {
      ...track('id:a', 'never'),
      occurredAtMs: 'never' as never,
    });
    const sent = await statementsSentBy(async () => {
      const result = await processCommitBatch(world.deps, { id: world.newId(), operations });
      expect(result).toMatchObject({ outcome: 'applied', counts: { parked: 1 } });
    });
    expect(claimsIn(sent)).toBe(2);
  });

  test('that fails by no conflict is the last one', async () => {
    const environmentId = world.newEnvironment();
    await sql`
      create function refuse() returns trigger language plpgsql as
        $$begin raise exception 'refused by the test' using errcode = '55000'; end$$`.execute(
      world.database,
    );
    await sql`create trigger refuse before insert on people for each row execute function refuse()`.execute(
      world.database,
    );
    const sent = await statementsSentBy(async () => {
      await expect(processCommitBatch(world.deps, batchOf(environmentId, 'a'))).rejects.toThrow(
        'refused by the test',
      );
    });
    await sql`drop function refuse cascade`.execute(world.database);
    expect(claimsIn(sent)).toBe(1);
  });
});

test('the lanes of a batch are woken, with the time before its transaction', async () => {
  const environmentId = world.newEnvironment();
  await insertTestWorkspace(world.database, environmentId);
  const { webhookId } = await insertTestWebhook(world.database, environmentId, {
    events: ['customer_subscribed'],
  });
  const woken: unknown[] = [];
  let nowMs = 7;
  const lanes = {
    taking: () => undefined,
    monotonicNow: () => nowMs++,
    wake: async (...given: unknown[]) => void woken.push(given),
  };
  const batch = {
    id: world.newId(),
    operations: inEnvironment(
      environmentId,
      identify('id:1', { unsubscribed: true }),
      identify('id:1', { unsubscribed: false }),
    ),
  };
  expect(await processCommitBatch({ ...world.deps, lanes }, batch)).toMatchObject({
    outcome: 'applied',
  });
  expect(woken).toEqual([[[expect.objectContaining({ environmentId, webhookId })], 7]]);
  await processCommitBatch({ ...world.deps, lanes }, batch);
  expect(woken).toHaveLength(1);
});

describe('batches that were logged before', () => {
  /** Each of a shard of its own, all about one person. */
  async function addOfSeveralShards(counts: readonly [number, number]) {
    for (;;) {
      const environmentId = world.newEnvironment();
      await world.process(
        inEnvironment(environmentId, identify('id:a', { email: 'a@x.y', anonymous_id: 'v' })),
      );
      const [first, second] = counts.map((count, index) =>
        inEnvironment(
          environmentId,
          ...Array.from({ length: count }, (_, n) =>
            identify(index === 0 ? 'email:a@x.y' : 'anonymous_id:v', { [`a${index}`]: n }),
          ),
        ),
      );
      const batches = await world.add([
        first ?? [],
        second ?? [],
        inEnvironment(environmentId, remove('id:a')),
      ]);
      if (new Set(batches.map(shardOfBatch)).size === batches.length)
        return batches as [CommitBatch, CommitBatch, CommitBatch];
    }
  }

  test('are applied before it, in several transactions if they are large, and counted with it', async () => {
    const [first, second, own] = await addOfSeveralShards([1_000, 1_000]);
    const pending = world.newPending();
    const result = await processCommitBatch(world.deps, own, [], pending);
    expect(result).toMatchObject({ outcome: 'applied', envelopes: 1, operations: 2_001 });
    for (const batch of [first, second])
      expect(await processCommitBatch(world.deps, batch, [], pending)).toEqual({
        outcome: 'already-applied',
      });
  });

  test('by its own shard are applied by themselves, and both results are summed', async () => {
    const environmentId = world.newEnvironment();
    const [first, second] = (await world.add([
      inEnvironment(environmentId, identify('id:a', { step: 1 }), track('id:a', '1')),
      inEnvironment(environmentId, identify('id:a', { step: 2 })),
    ])) as [CommitBatch, CommitBatch];
    const pending = world.newPending();
    const sent = await statementsSentBy(async () => {
      expect(await processCommitBatch(world.deps, second, [], pending)).toMatchObject({
        outcome: 'applied',
        envelopes: 1,
        operations: 3,
        counts: { parked: 0 },
      });
    });
    // The log alone shows it, before a transaction of its own.
    expect(claimsIn(sent)).toBe(2);
    expect(await world.rowsOf('people', environmentId, `attributes -> 'step' as step`)).toEqual([
      { step: 2 },
    ]);
    expect(await processCommitBatch(world.deps, first, [], pending)).toEqual({
      outcome: 'already-applied',
    });
  });

  test('are applied in the same transaction if they are small, and counted as one batch', async () => {
    const [, , own] = await addOfSeveralShards([1, 1]);
    const sent = await statementsSentBy(async () => {
      // A higher number would end batches behind it in its queue, unapplied.
      expect(await processCommitBatch(world.deps, own, [], world.newPending())).toMatchObject({
        outcome: 'applied',
        envelopes: 1,
        operations: 3,
      });
    });
    expect(claimsIn(sent)).toBe(2);
  });

  test('by its own shard and applied already leave its own operations to be counted', async () => {
    const environmentId = world.newEnvironment();
    const [first, second] = (await world.add([
      inEnvironment(environmentId, identify('id:a', { step: 1 })),
      inEnvironment(environmentId, identify('id:a', { step: 2 }), track('id:a', '1')),
    ])) as [CommitBatch, CommitBatch];
    // By a worker that died before it took the batch out of the log.
    await processCommitBatch(world.deps, first);
    expect(await processCommitBatch(world.deps, second, [], world.newPending())).toMatchObject({
      outcome: 'applied',
      envelopes: 1,
      operations: 2,
    });
  });

  test('of which some are applied meanwhile are looked at again', async () => {
    const [first, second, own] = await addOfSeveralShards([1, 1]);
    const stale = world.newPending();
    await stale.find(own.id);
    await world.processToEnd(first, world.newPending());
    expect(await processCommitBatch(world.deps, own, [], stale)).toEqual({ outcome: 'waiting' });
    await world.processToEnd(own, stale);
    expect(await processCommitBatch(world.deps, second, [], stale)).toEqual({
      outcome: 'already-applied',
    });
  });
});

test('batches that were applied together are waited for no more', async () => {
  const environmentId = world.newEnvironment();
  const [first, second] = (await world.add([
    inEnvironment(environmentId, identify('id:a', { step: 1 })),
    inEnvironment(environmentId, identify('id:a', { step: 2 })),
  ])) as [CommitBatch, CommitBatch];
  const pending = world.newPending();
  expect(await pending.find(second.id)).toBeDefined();
  expect(await processCommitBatch(world.deps, first, [second], pending)).toMatchObject({
    outcome: 'applied',
    envelopes: 2,
  });
  expect(await pending.find(second.id)).toBeUndefined();
});
