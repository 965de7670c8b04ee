/** Event ids are taken without a look until one was taken already: the stored rows must not depend on it. */
import type { Operation } from '@sluice/domain/operations/operation';
import { identify, NOW_MS, track } from '@sluice/domain/testing/sample-operations';
import { isDistributed } from '@sluice/database/connection/tenant-statements';
import { statementsSentBy } from '@sluice/database/testing/statements-sent';
import { beforeAll, expect, test } from 'vitest';
import {
  processCommitBatch,
  type ProcessCommitBatchDeps,
} from '../../../src/events/process-commit-batch.ts';
import { TakenIdWatch } from '../../../src/events/taken-id-watch.ts';
import {
  createCommitBatchWorld,
  inEnvironment,
  type CommitBatchWorld,
} from '../support/commit-batch-world.ts';

let world: CommitBatchWorld;

beforeAll(async () => {
  world = await createCommitBatchWorld();
});

/** A process that has met no repetition yet, and its clock. */
function newProcess() {
  const clock = { nowMs: NOW_MS };
  const takenIds = new TakenIdWatch();
  const deps: ProcessCommitBatchDeps = { ...world.deps, takenIds, now: () => clock.nowMs };
  const process = (...operations: Operation[]) => world.process(operations, deps);
  /** How many statements on event ids were sent, and how many of those looked first. */
  const idStatements = async (...operations: Operation[]) => {
    const sent = await statementsSentBy(() => process(...operations));
    const onIds = sent.filter(({ text }) => /(?:insert into|from) event_ids/.test(text));
    return {
      sent: onIds.length,
      looked: onIds.filter(({ text }) => text.includes('from event_ids')).length,
    };
  };
  return { clock, deps, takenIds, process, idStatements };
}

const event = (environmentId: number, eventId: string) =>
  inEnvironment(environmentId, track('id:1', eventId, { eventId }));

const sorted = (texts: unknown[]): string[] => texts.map(String).toSorted();

test('an event that comes again is dropped and reported, and its neighbours are kept', async () => {
  const environmentId = world.newEnvironment();
  await newProcess().process(...event(environmentId, 'a'), ...event(environmentId, 'b'));
  const { process, takenIds } = newProcess();
  await process(
    ...event(environmentId, 'c'),
    ...event(environmentId, 'a'),
    ...inEnvironment(environmentId, identify('id:1', { plan: 'pro' })),
    ...event(environmentId, 'd'),
  );
  expect(sorted(await world.eventNames(environmentId))).toEqual(['a', 'b', 'c', 'd']);
  expect(await world.rowsOf('people', environmentId, 'attributes')).toMatchObject([
    { attributes: { plan: 'pro' } },
  ]);
  expect(await world.rowsOf('ingestion_issues', environmentId, 'code, count')).toEqual([
    { code: 'duplicate_event', count: '1' },
  ]);
  expect(takenIds.looks(NOW_MS)).toBe(true);
});

test('transactions look for ids only in the minute after a repetition', async () => {
  const environmentId = world.newEnvironment();
  const { clock, idStatements } = newProcess();
  expect(await idStatements(...event(environmentId, 'a'))).toEqual({ sent: 1, looked: 0 });
  expect(await idStatements(...event(environmentId, 'b'))).toEqual({ sent: 1, looked: 0 });
  expect(await idStatements(...event(environmentId, 'a'))).toEqual({ sent: 2, looked: 1 });
  clock.nowMs += 59_999;
  expect(await idStatements(...event(environmentId, 'b'))).toEqual({ sent: 1, looked: 1 });
  clock.nowMs += 59_999;
  // On Citus the look does not write.
  const sent = (await isDistributed(world.database)) ? 2 : 1;
  expect(await idStatements(...event(environmentId, 'c'))).toEqual({ sent, looked: 1 });
  clock.nowMs += 1;
  expect(await idStatements(...event(environmentId, 'd'))).toEqual({ sent: 1, looked: 0 });
});

test('commit batches that are applied together stay together if one brings a repetition', async () => {
  const environmentId = world.newEnvironment();
  const { deps, process } = newProcess();
  await process(...event(environmentId, 'a'));
  const [first, ...behind] = ['b', 'a', 'c'].map((eventId) => ({
    id: world.newId(),
    operations: event(environmentId, eventId),
  }));
  expect(await processCommitBatch(deps, first!, behind)).toMatchObject({
    outcome: 'applied',
    envelopes: 3,
  });
  expect(sorted(await world.eventNames(environmentId))).toEqual(['a', 'b', 'c']);
});

test('beside an operation that cannot be applied, a repetition is dropped and only that one dead-lettered', async () => {
  const environmentId = world.newEnvironment();
  await newProcess().process(...event(environmentId, 'a'));
  // Attributes that no parser lets through: the apply step throws a TypeError.
  const fault = { ...identify('id:2', {}), attributes: null as never };
  const operations = [
    ...event(environmentId, 'b'),
    ...inEnvironment(environmentId, fault),
    ...event(environmentId, 'a'),
    ...event(environmentId, 'c'),
  ];
  expect(await newProcess().process(...operations)).toMatchObject({
    outcome: 'applied',
    counts: { parked: 1 },
  });
  expect(sorted(await world.eventNames(environmentId))).toEqual(['a', 'b', 'c']);
  const issues = await world.rowsOf('ingestion_issues', environmentId, 'code');
  expect(sorted(issues.map(({ code }) => code))).toEqual(['duplicate_event', 'parked']);
});
