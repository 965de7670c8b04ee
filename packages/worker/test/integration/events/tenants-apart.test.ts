/**
 * Locks of a tenant's rows by its own statement, on many nodes.
 *
 * A commit batch of several tenants leaves the same rows as each operation by itself. `npm run test:distributed` runs
 * it on Citus, `npm test` on a Postgres taken for one.
 */
import { pretendCitus } from '@sluice/database/testing/pretend-citus';
import { listPeopleCounts } from '@sluice/database/verify/verify-people';
import type { Operation } from '@sluice/domain/operations/operation';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import {
  createCommitBatchWorld,
  inEnvironment,
  type CommitBatchWorld,
} from '../support/commit-batch-world.ts';
import { everythingIn, someOperations } from '../support/random-operations.ts';

it('commit batches of three tenants leave the rows of each operation in a commit batch of its own', async () => {
  const world = await createCommitBatchWorld();
  await pretendCitus(world.database);
  const tenantOf = fc.array(fc.nat(2), { minLength: 20, maxLength: 20 });
  await fc.assert(
    fc.asyncProperty(someOperations, someOperations, tenantOf, async (first, second, tenants) => {
      const together = [0, 1, 2].map(() => world.newEnvironment());
      const apart = [0, 1, 2].map(() => world.newEnvironment());
      const placed = (operations: readonly Operation[], environments: readonly number[]) =>
        operations.flatMap((each, place) =>
          inEnvironment(environments[tenants[place] ?? 0] ?? 0, each),
        );
      for (const operations of [first, second]) {
        await world.process(placed(operations, together));
        for (const single of placed(operations, apart)) await world.process([single]);
      }
      for (const [place, environmentId] of together.entries())
        expect(await everythingOf(world, environmentId)).toEqual(
          await everythingOf(world, apart[place] ?? 0),
        );
    }),
    { numRuns: 25 },
  );
  const counts = await listPeopleCounts(world.database);
  expect(counts.filter(({ kept, counted }) => kept !== counted)).toEqual([]);
  expect(counts.reduce((sum, { counted }) => sum + counted, 0)).toBeGreaterThan(0);
}, 600_000);

const everythingOf = ({ database }: CommitBatchWorld, environmentId: number) =>
  everythingIn(database, environmentId);
