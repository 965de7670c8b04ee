/** A node of Citus that is away: the workspaces of the other nodes go on. `npm run test:distributed` runs it. */
import { listTenantNodes } from '@sluice/database/events/tenant-nodes';
import { startTcpProxyTo } from '@sluice/database/testing/tcp-proxy';
import { NOW_MS, track } from '@sluice/domain/testing/sample-operations';
import fc from 'fast-check';
import { sql } from 'kysely';
import { expect, inject, onTestFinished, test } from 'vitest';
import { createCommitBatchWorld, inEnvironment } from '../support/commit-batch-world.ts';
import { someOperations } from '../support/random-operations.ts';

const nodeUrls = inject('testNodeUrls');

test.runIf(nodeUrls.length > 1)(
  'no commit batch of a workspace needs another node than its own',
  async () => {
    const world = await createCommitBatchWorld();
    const { database, deps } = world;
    const url = nodeUrls.at(-1) ?? '';
    const way = await startTcpProxyTo(url);
    onTestFinished(() => way.close());
    // In two statements: in one with the table, the server crashed (Citus 13.2.2).
    const { rows: nodes } = await sql<{ id: number }>`
      select nodeid as id from pg_dist_node where nodeport = ${Number(new URL(url).port)}::int`.execute(
      database,
    );
    await sql`select citus_update_node(${nodes[0]?.id}::int, '127.0.0.1', ${way.port}::int)`.execute(
      database,
    );
    const { rows } = await sql<{ environmentId: number; isAway: boolean }>`
      select id as "environmentId", p.nodeport = ${way.port}::int as "isAway"
        from generate_series(101, 140) as id
        join pg_dist_shard_placement p on p.shardid = get_shard_id_for_distribution_column('people', id)`.execute(
      database,
    );
    const [there, away] = [false, true].map(
      (isAway) => rows.find((row) => row.isAway === isAway)?.environmentId ?? 0,
    ) as [number, number];
    const nodesOf = await listTenantNodes(database, [there, away]);
    expect(nodesOf.size).toBe(2);
    expect(nodesOf.get(there)).not.toBe(nodesOf.get(away));
    const waiting = inEnvironment(away, track('id:waiting', 'waited'));

    way.cut();
    await expect(world.process(waiting)).rejects.toThrow(/connection/);
    await fc.assert(
      fc.asyncProperty(someOperations, async (operations) => {
        fc.pre(operations.length > 0);
        // After a repeated id, each id is looked up before it is taken.
        deps.takenIds.proved(NOW_MS);
        expect(await world.process(inEnvironment(there, ...operations))).toMatchObject({
          outcome: 'applied',
          counts: { parked: 0 },
        });
      }),
      { numRuns: 60 },
    );

    way.restore();
    expect(await world.process(waiting)).toMatchObject({ outcome: 'applied' });
  },
  600_000,
);
