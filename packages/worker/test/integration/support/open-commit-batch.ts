/** Commit batches whose transactions are kept open while others come. */
import { recordIssues } from '@sluice/database/events/ingestion-issues';
import { lockWaiterCount, untilLockWaiters } from '@sluice/database/testing/testing';
import type { Operation } from '@sluice/domain/operations/operation';
import { NOW_MS } from '@sluice/domain/testing/sample-operations';
import { beforeEach } from 'vitest';
import {
  createCommitBatchWorld,
  inEnvironment,
  type CommitBatchWorld,
} from './commit-batch-world.ts';

/** A workspace of each test's own, in a database of its own. Call it once a file. */
export function useWorkspace() {
  let world: CommitBatchWorld;
  let environmentId: number;
  beforeEach(async () => {
    world = await createCommitBatchWorld();
    environmentId = world.newEnvironment();
  });
  return {
    world: () => world,
    environmentId: () => environmentId,
    run: (...operations: Operation[]) => world.process(inEnvironment(environmentId, ...operations)),
    runAndKeepOpen: (...operations: Operation[]) =>
      runAndKeepOpen(world, environmentId, ...operations),
    untilWaiting: (count: number) => untilLockWaiters(world.database, count),
  };
}

let lastPause = 0;

/**
 * Runs operations up to the end of their transaction and keeps it open: the row of their issue, written last, is
 * another's.
 */
async function runAndKeepOpen(
  world: CommitBatchWorld,
  environmentId: number,
  ...operations: Operation[]
): Promise<{ end(): Promise<void> }> {
  const source = `pause ${++lastPause}`;
  const issue = { code: 'invalid', field: null, message: 'A pause.' } as const;
  const taken = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const holder = world.database.transaction().execute(async (transaction) => {
    await recordIssues(transaction, [{ environmentId, source, issue, count: 1, atMs: NOW_MS }]);
    taken.resolve();
    await released.promise;
  });
  await taken.promise;
  const before = await lockWaiterCount(world.database);
  const record = { type: 'issue.record', receivedAtMs: NOW_MS, source, issue, count: 1 } as const;
  const done = world.process(
    inEnvironment(environmentId, ...operations, { ...record, environmentId }),
  );
  await untilLockWaiters(world.database, before + 1);
  return {
    async end() {
      released.resolve();
      await holder;
      await done;
    },
  };
}
