/** Rows of a person that are loaded for an operation: the named ones, out of any number. */
import { waitingForEach } from '@sluice/database/connection/pipelined-transaction';
import { findStateNeeds } from '@sluice/domain/state/find-state-needs';
import { addDevice, deleteDevice, identify, merge } from '@sluice/domain/testing/sample-operations';
import type { Operation } from '@sluice/domain/operations/operation';
import { expect, test } from 'vitest';
import { loadState, SAFEST, type LoadOptions } from '../../../src/events/state/load-state.ts';
import { inEnvironment } from '../support/commit-batch-world.ts';
import { useWorkspace } from '../support/open-commit-batch.ts';

const { world, environmentId, run } = useWorkspace();

function load(operations: readonly Operation[], options: Partial<LoadOptions> = {}) {
  const needs = findStateNeeds(inEnvironment(environmentId(), ...operations));
  return world()
    .database.transaction()
    .execute((transaction) =>
      loadState(waitingForEach(transaction), needs, { ...SAFEST, ...options }),
    );
}

async function tokensLoadedFor(...operations: Operation[]): Promise<string[]> {
  const { devices } = await load(operations);
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

test('names of merged people that were looked up before are locked as they are, and not looked up again', async () => {
  await run(identify('id:1', { email: 'a@x.y' }, { anonymousId: 'v' }), identify('id:2'));
  const namesLoaded = async (options?: Partial<LoadOptions>): Promise<string[]> => {
    const { identifiers } = await load([merge('id:2', 'id:1')], options);
    return identifiers.map(({ kind }) => kind).toSorted();
  };
  expect(await namesLoaded()).toEqual(['anonymous_id', 'email', 'id', 'id']);
  const email = { environmentId: environmentId(), kind: 'email', value: 'a@x.y' } as const;
  expect(await namesLoaded({ released: [email] })).toEqual(['email', 'id', 'id']);
});
