/**
 * Statements of several tenants. On many nodes rows are locked one tenant after another, and people are counted without
 * triggers; on one server as ever.
 */
import type { PersonRow } from '@sluice/domain/state/loaded-state';
import { EMPTY_VISITOR_PROFILE } from '@sluice/domain/state/visitor-profile';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../../src/connection/connection.ts';
import { isDistributed } from '../../../src/connection/tenant-statements.ts';
import { claimEventIds } from '../../../src/events/event-ids.ts';
import { listIngestionIssues } from '../../../src/events/ingestion-issue-reads.ts';
import { recordIssues } from '../../../src/events/ingestion-issues.ts';
import { lockObjects, writeObjects } from '../../../src/people/objects.ts';
import { deletePeople, insertPeople, lockPeople } from '../../../src/people/people.ts';
import { lockIdentifiers, writeIdentifiers } from '../../../src/people/person-identifiers.ts';
import { listNewestVisitorPlaces, writeVisitors } from '../../../src/people/visitors.ts';
import { pretendCitus } from '../../../src/testing/pretend-citus.ts';
import { statementsSentBy } from '../../../src/testing/statements-sent.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';
import { listPeopleCounts } from '../../../src/verify/verify-people.ts';

const TENANTS = [9, 3, 5];
const AT_MS = Date.UTC(2026, 10, 26);

const personOf = (environmentId: number, personId: number): PersonRow => ({
  environmentId,
  personId,
  id: `person ${personId}`,
  email: null,
  phone: null,
  attributes: { of: environmentId },
  unsubscribed: null,
  attributesAtMs: null,
  attributePlaces: null,
  createdAtMs: AT_MS,
  updatedAtMs: AT_MS,
});
const people = TENANTS.flatMap((environmentId) => [
  personOf(environmentId, environmentId * 10),
  personOf(environmentId, environmentId * 10 + 1),
]);
const identifiers = people.map(({ environmentId, personId, id }) => ({
  environmentId,
  kind: 'id' as const,
  value: id ?? '',
  personId,
  suppressed: false,
}));
const objects = TENANTS.map((environmentId) => ({
  environmentId,
  objectNumber: environmentId,
  objectTypeId: 1,
  objectId: 'acme',
  attributes: {},
  attributesAtMs: null,
  createdAtMs: AT_MS,
  updatedAtMs: AT_MS,
}));
const claims = TENANTS.map((environmentId) => ({
  environmentId,
  eventId: 'event',
  receivedAtMs: AT_MS,
  envelopeNumber: 1,
  source: 'track_api',
}));
const visitors = TENANTS.map((environmentId) => ({
  environmentId,
  anonymousId: 'visitor',
  week: '2026-11-23',
  newestPlace: `place ${environmentId}`,
  profile: EMPTY_VISITOR_PROFILE,
}));

const everyIssue = {
  ...{ code: undefined, source: undefined, field: undefined, sinceMs: undefined },
  ...{ after: undefined, limit: 10 },
};
const noChanges = { inserted: [], updated: [], deleted: [] };

describe.each([
  ['on many nodes', true],
  ['on one server', false],
])('%s', (_, isOnNodes) => {
  let database: Database;
  beforeAll(async () => {
    ({ database } = await createTestDatabase());
    if (isOnNodes) await pretendCitus(database);
    // Without it `npm run test:distributed` would have no plain server to look at.
    if ((await isDistributed(database)) !== isOnNodes) return;
    await insertPeople(database, people);
    await writeIdentifiers(database, { ...noChanges, inserted: identifiers });
    await writeObjects(database, { ...noChanges, inserted: objects });
    await writeVisitors(database, { ...noChanges, inserted: visitors });
  });

  const counted = async <Row>(use: () => Promise<Row[]>): Promise<[number, Row[]]> => {
    let rows: Row[] = [];
    const sent = await statementsSentBy(async () => (rows = await use()));
    return [sent.length, rows];
  };
  const expectedCount = isOnNodes ? TENANTS.length : 1;

  test.for<[string, () => Promise<{ readonly environmentId: number }[]>, number]>([
    ['people', () => lockPeople(database, people), people.length],
    ['identifiers', () => lockIdentifiers(database, identifiers), identifiers.length],
    ['objects', () => lockObjects(database, objects, []), objects.length],
    ['objects by number', () => lockObjects(database, [], objects), objects.length],
    [
      'places of visitors',
      async () => [...(await listNewestVisitorPlaces(database, TENANTS))],
      TENANTS.length,
    ],
  ])(
    '%s are found, in the order of their tenants, by a statement a part',
    async ([, use, count], context) => {
      if ((await isDistributed(database)) !== isOnNodes) return context.skip();
      const [sent, rows] = await counted(use);
      expect(sent).toBe(expectedCount);
      expect(rows).toHaveLength(count);
      const tenants = [...new Set(rows.map(({ environmentId }) => environmentId))];
      expect(tenants.toSorted((one, other) => one - other)).toEqual([3, 5, 9]);
      if (isOnNodes) expect(tenants).toEqual([3, 5, 9]);
    },
  );

  test('an event id is taken once in each workspace', async (context) => {
    if ((await isDistributed(database)) !== isOnNodes) return context.skip();
    const [sent, none] = await counted(() => claimEventIds(database, claims));
    // On nodes the look does not write.
    expect([sent, none]).toEqual([isOnNodes ? TENANTS.length + 1 : 1, []]);
    const again = [...claims, { ...claims[0]!, environmentId: 5, eventId: 'another' }];
    const [, taken] = await counted(() => claimEventIds(database, again));
    expect(taken.toSorted((one, other) => one.environmentId - other.environmentId)).toEqual(
      [3, 5, 9].map((environmentId) => ({ environmentId, eventId: 'event' })),
    );
  });

  // Each of both looks went to all shards of the log.
  test('fields of issues are looked for and counted by a statement a part', async (context) => {
    if ((await isDistributed(database)) !== isOnNodes) return context.skip();
    const issue = { code: 'value_corrected', field: 'traits.x', message: 'corrected' } as const;
    const issues = TENANTS.map((environmentId) => ({
      ...{ environmentId, source: 'pipelines.identify', issue, count: 1, atMs: AT_MS },
    }));
    const record = () => counted(async () => (await recordIssues(database, issues), []));
    expect((await record())[0]).toBe(2 * expectedCount + 1);
    // The log has the fields.
    expect((await record())[0]).toBe(expectedCount + 1);
    for (const environmentId of TENANTS)
      expect(await listIngestionIssues(database, { ...everyIssue, environmentId })).toEqual([
        expect.objectContaining({ field: 'traits.x', count: '2' }),
      ]);
  });

  test('people are counted as they come and go', async (context) => {
    if ((await isDistributed(database)) !== isOnNodes) return context.skip();
    const gone = people.filter(({ environmentId }) => environmentId !== 5).slice(0, 3);
    await deletePeople(database, gone);
    const counts = await listPeopleCounts(database);
    expect(counts).toHaveLength(TENANTS.length);
    for (const { kept, counted: there } of counts) expect(kept).toBe(there);
    expect(counts.reduce((sum, { kept }) => sum + kept, 0)).toBe(people.length - gone.length);
  });
});
