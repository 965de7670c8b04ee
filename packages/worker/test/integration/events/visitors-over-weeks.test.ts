/** Rows of visitors move to the week of their last write. */
import { weekOf } from '@sluice/domain/state/visitor-profile';
import { identify, NOW_MS } from '@sluice/domain/testing/sample-operations';
import { statementsSentBy } from '@sluice/database/testing/statements-sent';
import { beforeAll, expect, test } from 'vitest';
import {
  createCommitBatchWorld,
  inEnvironment,
  type CommitBatchWorld,
} from '../support/commit-batch-world.ts';

let world: CommitBatchWorld;
beforeAll(async () => {
  world = await createCommitBatchWorld();
});

const WEEK_MS = 7 * 86_400_000;
const weeksOf = (environmentId: number) =>
  world.rowsOf('visitors', environmentId, 'anonymous_id, week::text');

const writeTrait = (environmentId: number, visitor: string, trait: string, nowMs: number) =>
  world.process(inEnvironment(environmentId, identify(`anonymous_id:${visitor}`, { [trait]: 1 })), {
    ...world.deps,
    now: () => nowMs,
  });

test('a visitor who writes in a later week moves there with the earlier data, and another visitor stays', async () => {
  const environmentId = world.newEnvironment();
  const later = NOW_MS + WEEK_MS;
  await writeTrait(environmentId, 'comes again', 'early', NOW_MS);
  await writeTrait(environmentId, 'stays away', 'early', NOW_MS);
  await writeTrait(environmentId, 'comes again', 'late', later);
  const rows = await weeksOf(environmentId);
  expect(rows).toHaveLength(2);
  expect(rows).toContainEqual({ anonymous_id: 'comes again', week: weekOf(later) });
  expect(rows).toContainEqual({ anonymous_id: 'stays away', week: weekOf(NOW_MS) });

  await world.process(
    inEnvironment(environmentId, identify('id:p', {}, { anonymousId: 'comes again' })),
  );
  expect(await world.rowsOf('people', environmentId, 'attributes')).toEqual([
    { attributes: { early: 1, late: 1 } },
  ]);
  expect(await weeksOf(environmentId)).toEqual([
    { anonymous_id: 'stays away', week: weekOf(NOW_MS) },
  ]);
});

test('a visitor who moves and is identified in one commit batch leaves no row', async () => {
  const environmentId = world.newEnvironment();
  await writeTrait(environmentId, 'v', 'early', NOW_MS);
  const operations = inEnvironment(
    environmentId,
    identify('anonymous_id:v', { late: 1 }),
    identify('id:p', {}, { anonymousId: 'v' }),
  );
  await world.process(operations, { ...world.deps, now: () => NOW_MS + WEEK_MS });
  expect(await weeksOf(environmentId)).toEqual([]);
  expect(await world.rowsOf('people', environmentId, 'attributes')).toEqual([
    { attributes: { early: 1, late: 1 } },
  ]);
});

test('another write in the same week updates the row in its place', async () => {
  const environmentId = world.newEnvironment();
  await writeTrait(environmentId, 'v', 'one', NOW_MS);
  const sent = await statementsSentBy(() => writeTrait(environmentId, 'v', 'two', NOW_MS + 1));
  expect(sent.filter(({ text }) => text.includes('delete from visitors'))).toEqual([]);
  expect(await weeksOf(environmentId)).toEqual([{ anonymous_id: 'v', week: weekOf(NOW_MS) }]);
});
