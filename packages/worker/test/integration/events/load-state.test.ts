/** Rows of a person that are loaded for an operation: the named ones, out of any number. */
import { waitingForEach } from '@sluice/database/connection/pipelined-transaction';
import { findStateNeeds } from '@sluice/domain/state/find-state-needs';
import { addDevice, deleteDevice, identify, merge } from '@sluice/domain/testing/sample-operations';
import type { Operation } from '@sluice/domain/operations/operation';
import { expect, test } from 'vitest';
import { loadState, SAFEST } from '../../../src/events/state/load-state.ts';
import { inEnvironment } from '../support/commit-batch-world.ts';
import { useWorkspace } from '../support/open-commit-batch.ts';

const { world, environmentId, run } = useWorkspace();

async function tokensLoadedFor(...operations: Operation[]): Promise<string[]> {
  const needs = findStateNeeds(inEnvironment(environmentId(), ...operations));
  const { devices } = await world()
    .database.transaction()
    .execute((transaction) => loadState(waitingForEach(transaction), needs, SAFEST));
  return devices.map(({ token }) => token).toSorted();
}

test('of a person’s devices only the named ones are loaded, and all of them for a merge', async () => {
  await run(
    identify('id:2'),
    ...['t-1', 't-2', 't-3', 't-4'].map((token) => addDevice('id:1', token)),
  );
  expect(await tokensLoadedFor(addDevice('id:1', 't-2'))).toEqual(['t-2']);
  expect(
    await tokensLoadedFor(deleteDevice('id:1', 't-3'), addDevice('id:1', 't-5'), identify('id:2')),
  ).toEqual(['t-3']);
  expect(await tokensLoadedFor(identify('id:1'))).toEqual([]);
  expect(await tokensLoadedFor(merge('id:2', 'id:1'))).toEqual(['t-1', 't-2', 't-3', 't-4']);
});
