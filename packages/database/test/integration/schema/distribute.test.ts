/** Tables on nodes. Tests that need a Citus run by `npm run test:distributed` alone. */
import { sql } from 'kysely';
import { expect, inject, test } from 'vitest';
import { createDatabase } from '../../../src/connection/connection.ts';
import { isDistributed } from '../../../src/connection/tenant-statements.ts';
import { distribute, requireCoordinator } from '../../../src/schema/distribute.ts';
import { requireReadyCitus } from '../../../src/schema/installation.ts';
import { DISTRIBUTED_TABLES } from '../../../src/schema/table-places.ts';
import { pretendCitus } from '../../../src/testing/pretend-citus.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

const isOnCitus = inject('testNodeUrls').length > 1;

test.skipIf(isOnCitus)(
  'a Postgres without Citus distributes no tables and may keep its queues',
  async () => {
    const { database } = await createTestDatabase();
    expect(await isDistributed(database)).toBe(false);
    expect(await distribute(database)).toEqual([]);
    await expect(requireReadyCitus(database, undefined)).resolves.toBeUndefined();
  },
);

test('queues in the tables of a coordinator are refused, and the setting is named', async () => {
  const { database } = await createTestDatabase();
  await pretendCitus(database);
  await expect(requireReadyCitus(database, undefined)).rejects.toMatchObject({
    code: 'CONFIG_INVALID',
    message: expect.stringContaining('set REDIS_URL'),
  });
  await expect(requireReadyCitus(database, 'redis://redis:6379')).resolves.toBeUndefined();
});

// A distributed table can have no such trigger.
test.skipIf(isOnCitus)(
  'a process starts only after the migration that puts the tables on the nodes',
  async () => {
    const { database } = await createTestDatabase();
    await pretendCitus(database);
    await expect(requireReadyCitus(database, 'redis://redis:6379')).resolves.toBeUndefined();
    // The state between `create extension citus` and `npm run migrate`: each person would count twice.
    await sql`
      create trigger people_inserted after insert on people
        referencing new table as changed_people for each statement execute function count_people()`.execute(
      database,
    );
    await expect(requireReadyCitus(database, 'redis://redis:6379')).rejects.toMatchObject({
      code: 'MIGRATION_MISMATCH',
      message: expect.stringContaining('run npm run migrate'),
    });
  },
);

test.runIf(isOnCitus)(
  'tables are distributed with their rows, and distributed tables stay as they are',
  async () => {
    const { database } = await createTestDatabase();
    expect(await distribute(database)).toEqual([]);
    await sql`
    insert into events (environment_id, event_id, kind, name, data, occurred_at, received_at)
    select n % 3, 'event ' || n, 'event', 'bought', '{}', now(), now() from generate_series(1, 300) n`.execute(
      database,
    );
    await sql`
    insert into devices (environment_id, person_id, token, platform, attributes, created_at, updated_at)
    select n % 3, n, 'token', 'ios', '{}', now(), now() from generate_series(1, 30) n`.execute(
      database,
    );
    for (const table of ['events', 'devices'])
      await sql`select undistribute_table(${table})`.execute(database);
    expect((await distribute(database)).toSorted()).toEqual(['devices', 'events']);
    const { rows } = await sql<{ events: number; devices: number }>`
    select (select count(*)::int from events) as events, (select count(*)::int from devices) as devices`.execute(
      database,
    );
    expect(rows).toEqual([{ events: 300, devices: 30 }]);
    const { rows: left } = await sql<{ size: string }>`
    select pg_relation_size('devices') as size`.execute(database);
    expect(left[0]?.size).toBe('0');
    // A run that was stopped before it removed the coordinator's copy.
    await sql`select undistribute_table('devices')`.execute(database);
    await sql`select create_distributed_table('devices', 'environment_id', colocate_with => 'people')`.execute(
      database,
    );
    expect(await distribute(database)).toEqual([]);
    const { rows: again } = await sql<{ size: string; count: number }>`
    select pg_relation_size('devices') as size, (select count(*)::int from devices) as count`.execute(
      database,
    );
    expect(again).toEqual([{ size: '0', count: 30 }]);
    const { rows: places } = await sql<{ name: string }>`
    select logicalrelid::text as name from pg_dist_partition p
     where partmethod = 'h' and not (select relispartition from pg_class where oid = logicalrelid) order by 1`.execute(
      database,
    );
    expect(places.map(({ name }) => name)).toEqual([...DISTRIBUTED_TABLES].toSorted());
  },
);

test.runIf(isOnCitus)(
  'a node that is not the coordinator is not migrated, and the setting is named',
  async () => {
    const { database, name } = await createTestDatabase();
    await expect(requireCoordinator(database)).resolves.toBeUndefined();
    const url = new URL(inject('testNodeUrls')[1] ?? '');
    url.pathname = `/${name}`;
    const node = createDatabase({
      url: url.href,
      poolMax: 1,
      applicationName: 'test',
      onError: () => {},
    });
    await expect(requireCoordinator(node)).rejects.toMatchObject({
      code: 'CONFIG_INVALID',
      message: expect.stringContaining('DATABASE_URL'),
    });
    await node.destroy();
  },
);
