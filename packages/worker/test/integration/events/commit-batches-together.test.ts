/**
 * The contents of a commit batch by chance must not matter.
 *
 * Operations together leave the same rows as each in a commit batch of its own.
 */
import type { Database } from '@sluice/database/connection/connection';
import { NumberStock } from '@sluice/database/people/numbers';
import { createTestDatabase } from '@sluice/database/testing/testing';
import type { Operation } from '@sluice/domain/operations/operation';
import {
  identify,
  NOW_MS,
  suppress,
  track,
  unsuppress,
} from '@sluice/domain/testing/sample-operations';
import { createIdGenerator } from '@sluice/platform/process/new-id';
import fc from 'fast-check';
import { beforeAll, expect, it } from 'vitest';
import {
  processCommitBatch,
  type ProcessCommitBatchDeps,
} from '../../../src/events/process-commit-batch.ts';
import { TakenIdWatch } from '../../../src/events/taken-id-watch.ts';
import { everythingIn, someOperations } from '../support/random-operations.ts';

let database: Database;
let deps: ProcessCommitBatchDeps;
const newId = createIdGenerator(Date.now);
let lastEnvironment = 1;

/** Data that waited under an anonymous id when it was suppressed never get a person, also within one transaction. */
const suppressedVisitor = [
  track('anonymous_id:z', 'seen'),
  identify('anonymous_id:z', { plan: 1 }),
  suppress('anonymous_id:z'),
  unsuppress('anonymous_id:z'),
];
const returningVisitor = [track('anonymous_id:z', 'seen'), identify('id:1', { anonymous_id: 'z' })];

beforeAll(async () => {
  ({ database } = await createTestDatabase());
  deps = {
    database,
    numbers: new NumberStock(),
    takenIds: new TakenIdWatch(),
    newId,
    now: () => NOW_MS,
  };
});

it('operations in one commit batch, and commit batches in one transaction, leave the same rows as each operation in its own', async () => {
  await fc.assert(
    // The second commit batch meets the rows of the first.
    fc.asyncProperty(someOperations, someOperations, async (first, second) => {
      const together = ++lastEnvironment;
      const behind = ++lastEnvironment;
      const apart = ++lastEnvironment;
      await process(together, first);
      await process(together, second);
      await process(behind, first.slice(0, 1));
      await process(behind, first.slice(1), second);
      for (const single of [...first, ...second]) await process(apart, [single]);
      const expected = await everythingIn(database, apart);
      expect(await everythingIn(database, together)).toEqual(expected);
      expect(await everythingIn(database, behind)).toEqual(expected);
    }),
    { numRuns: 60, examples: [[suppressedVisitor, returningVisitor]] },
  );
}, 180_000);

/** Commit batches in one transaction; one without operations is left out. */
async function process(
  environmentId: number,
  ...commitBatches: readonly (readonly Operation[])[]
): Promise<void> {
  const [first, ...behind] = commitBatches
    .filter((operations) => operations.length > 0)
    .map((operations) => ({
      id: newId(),
      operations: operations.map((given) => ({ ...given, environmentId })),
    }));
  if (first) await processCommitBatch(deps, first, behind);
}
