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
import { svcId } from '@sluice/domain/values/svc-id';
import { createIdGenerator } from '@sluice/platform/process/new-id';
import fc from 'fast-check';
import { sql } from 'kysely';
import { beforeAll, expect, it } from 'vitest';
import {
  processCommitBatch,
  type ProcessCommitBatchDeps,
} from '../../../src/events/process-commit-batch.ts';
import { TakenIdWatch } from '../../../src/events/taken-id-watch.ts';
import { everythingIn, someOperations, withSvcIds } from '../support/random-operations.ts';

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

/** The svc_id alone leads to the suppressed id: the event beside it loads other names. */
const suppressedPerson = [suppress('id:1')];
const returningPerson = [track('id:2', 'seen'), unsuppress('svc_id:#1')];

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
      const together = await workspaceOfTwo();
      const behind = await workspaceOfTwo();
      const apart = await workspaceOfTwo();
      await process(together, first);
      await process(together, second);
      await process(behind, first.slice(0, 1));
      await process(behind, first.slice(1), second);
      for (const single of [...first, ...second]) await process(apart, [single]);
      const expected = await everythingIn(database, apart.environmentId);
      expect(await everythingIn(database, together.environmentId)).toEqual(expected);
      expect(await everythingIn(database, behind.environmentId)).toEqual(expected);
    }),
    {
      numRuns: 60,
      examples: [
        [suppressedVisitor, returningVisitor],
        [suppressedPerson, returningPerson],
      ],
    },
  );
}, 600_000);

interface Workspace {
  readonly environmentId: number;
  readonly svcIds: readonly [string, string];
}

/** People 1 and 2, whom operations name by svc_id too. */
async function workspaceOfTwo(): Promise<Workspace> {
  const environmentId = ++lastEnvironment;
  const none = { environmentId, svcIds: ['', ''] } as const;
  await process(none, [identify('id:1'), identify('id:2')]);
  const { rows } = await sql<{ personId: string }>`
    select person_id as "personId" from people where environment_id = ${environmentId} order by id`.execute(
    database,
  );
  const [first = '', second = ''] = rows.map(({ personId }) => svcId(Number(personId)));
  return { environmentId, svcIds: [first, second] };
}

/** Commit batches in one transaction; one without operations is left out. */
async function process(
  { environmentId, svcIds }: Workspace,
  ...commitBatches: readonly (readonly Operation[])[]
): Promise<void> {
  const [first, ...behind] = commitBatches
    .filter((operations) => operations.length > 0)
    .map((operations) => ({
      id: newId(),
      operations: withSvcIds(operations, svcIds).map((given) => ({ ...given, environmentId })),
    }));
  if (first) await processCommitBatch(deps, first, behind);
}
