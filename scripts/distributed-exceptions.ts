/** Tests that fail on Citus, each with its reason (`test-distributed.ts`). */
export interface DistributedException {
  /** The end of its path. */
  readonly file: string;
  /** Part of its name. */
  readonly test: string;
  readonly reason: string;
}

const TRIGGER = 'the test has a trigger refuse rows, which a distributed table cannot have';
const RAW_PEOPLE =
  'the test inserts people by itself; on Citus the code counts them, and no trigger';
const QUEUES = 'the queues of this test are in Postgres, which is refused on Citus';

export const DISTRIBUTED_EXCEPTIONS: readonly DistributedException[] = [
  {
    file: 'people/read-plans.test.ts',
    test: 'the months that came before the time asked for are not looked at',
    reason: 'the plan of the coordinator does not show what the nodes do',
  },
  {
    file: 'schema/schema-version.test.ts',
    test: 'an empty database is behind, not broken',
    reason: 'the test drops the schema that the extension needs',
  },
  {
    file: 'events/dead-lettered-operations.test.ts',
    test: 'for a cause outside their values',
    reason: TRIGGER,
  },
  {
    file: 'apart/node-away.test.ts',
    test: 'other workspaces go on in all shards',
    reason: TRIGGER,
  },
  { file: 'apart/node-away.test.ts', test: 'workers that are killed', reason: TRIGGER },
  {
    file: 'apart/refused-parts.test.ts',
    test: 'answers reads and refuses writes',
    reason: TRIGGER,
  },
  { file: 'apart/refused-parts.test.ts', test: 'an error of no node', reason: TRIGGER },
  { file: 'imports/imports.test.ts', test: 'need not be a value’s', reason: TRIGGER },
  { file: 'process/refused-statements.test.ts', test: 'cannot apply any batch', reason: TRIGGER },
  {
    file: 'events/people-counts.test.ts',
    test: 'a transaction that is rolled back is not counted',
    reason: RAW_PEOPLE,
  },
  { file: 'events/people-counts.test.ts', test: 'do not wait for each other', reason: RAW_PEOPLE },
  {
    file: 'events/people-counts.test.ts',
    test: 'many people in one statement are counted at once',
    reason: RAW_PEOPLE,
  },
  {
    file: 'events/people-counts.test.ts',
    test: 'the migration counts existing people',
    reason: 'the triggers that the migration makes are gone where people are distributed',
  },
  {
    file: 'events/people-counts.test.ts',
    test: 'names a workspace whose number',
    reason: RAW_PEOPLE,
  },
  {
    file: 'events/workspaces.test.ts',
    test: 'shows only the workspace of the key',
    reason: RAW_PEOPLE,
  },
  {
    file: 'events/workspaces.test.ts',
    test: 'counted again after ten seconds',
    reason: RAW_PEOPLE,
  },
  {
    file: 'billing/billing-profile.test.ts',
    test: 'is shown beside the included amount',
    reason: RAW_PEOPLE,
  },
  {
    file: 'accounts/existence.test.ts',
    test: 'I35',
    reason:
      'an audit entry of the call before, which is written later there, is among the statements that are compared',
  },
  { file: 'delivery/event-to-webhook.test.ts', test: 'queues on postgres', reason: QUEUES },
  { file: 'process/killed-worker.test.ts', test: 'on postgres', reason: QUEUES },
  { file: 'process/many-workers.test.ts', test: 'on postgres', reason: QUEUES },
  { file: 'process/work-moves.test.ts', test: 'on postgres', reason: QUEUES },
];
