/**
 * An import whose worker dies, is slow, stops, or finds it cancelled.
 *
 * Every row is written once, and no row after that.
 */
import { cancelImport } from '@sluice/database/imports/import-changes';
import { BY_TEST, untilLockWaiters } from '@sluice/database/testing/testing';
import { claimImport } from '@sluice/database/imports/import-claims';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import { ImportsWorld } from '../support/imports-world.ts';

let world: ImportsWorld;
beforeEach(async () => {
  world = await ImportsWorld.create();
});

/** How workers before `held_until` took the next import: they read every file as UTF-8 with commas. */
const claimedByOlderWorkers = async () => {
  const { rows } = await sql<{ importId: number }>`
    select import_id as "importId" from imports
     where state not in ('imported', 'failed', 'canceled') and (lease_until is null or lease_until < clock_timestamp())
       and (state <> 'preprocessing' or data_file_url is not null)`.execute(world.database);
  return rows;
};

test('a worker of an older version leaves an import to workers that read the form of its file', async () => {
  await world.people('p-1');
  const key = await world.upload(
    Buffer.from('\ufeff_svc_name;_svc_customer_id\na;p-1\n', 'utf16le'),
  );
  expect(await claimedByOlderWorkers()).toEqual([]);
  expect(await claimImport(world.database, 60_000)).toMatchObject({ importId: key.importId });
  expect(await claimedByOlderWorkers()).toEqual([]);
  await world.endLeases();
  expect(await claimedByOlderWorkers()).toEqual([]);
  await world.run();
  expect(await world.shown(key)).toMatchObject({ state: 'imported', rowsImported: 1 });
});

test('an import that a worker of an older version holds is waited for', async () => {
  await world.people('p-1');
  const key = await world.upload('_svc_name,_svc_customer_id\na,p-1\n');
  const hold = (until: string) =>
    sql`update imports set lease_until = clock_timestamp() + ${until}::interval`.execute(
      world.database,
    );
  await hold('1 minute');
  await world.run();
  expect(await world.shown(key)).toMatchObject({ state: 'preprocessed' });
  await hold('-1 minute');
  await world.run();
  expect(await world.shown(key)).toMatchObject({ state: 'imported' });
});

describe('a worker', () => {
  const LINES = 5_000;
  const file = () =>
    `_svc_name,_svc_customer_id,note\n${Array.from({ length: LINES }, (_, n) => `e-${n},p-${n % 7},"a, ""b""\n${'x'.repeat(n % 90)}"\n`).join('')}`;
  const PEOPLE = Array.from({ length: 7 }, (_, n) => `p-${n}`);

  // Lines without a row are read for minutes, and other workers would take the import one after another.
  test('keeps the lease while it reads empty lines, and gives the import back if it has to stop', async () => {
    await world.people(...PEOPLE);
    const names = '_svc_name,_svc_customer_id\n';
    const key = await world.upload(`${names}a,p-1\n${'\n'.repeat(3_000_000)}b,p-2\n`);
    let nowMs = 0;
    let advanceCount = 0;
    const counting = world.database.withPlugin({
      transformQuery: ({ node }) => {
        if (JSON.stringify(node).includes('rows_warned = rows_warned')) return node;
        if (node.kind === 'RawNode' && /update imports set/.test(JSON.stringify(node)))
          advanceCount++;
        return node;
      },
      transformResult: ({ result }) => Promise.resolve(result),
    });
    const stopping = AbortSignal.abort();
    const slowly = { leaseMs: 8_000, monotonicNow: () => (nowMs += 1_000) };
    await world.run({ ...slowly, stopping });
    expect(await world.shown(key)).toMatchObject({ state: 'preprocessed', rowsRead: 0 });
    // It need not wait until a lease ends.
    while (await world.run({ ...slowly, database: counting }));
    expect(await world.shown(key)).toMatchObject({ state: 'imported', rowsImported: 2 });
    // Of thirty pieces each, when it is checked and when it is imported.
    expect(advanceCount).toBeGreaterThanOrEqual(20);
  });

  test('that checks a large file keeps its lease, however slow it is', async () => {
    await world.people(...PEOPLE);
    const key = await world.upload(file());
    await sql`create table renewals (held_until timestamptz)`.execute(world.database);
    await sql`
      create function note_renewal() returns trigger language plpgsql as $$
      begin
        insert into renewals values (new.held_until);
        return new;
      end $$`.execute(world.database);
    await sql`
      create trigger note_renewal before update on imports for each row
      when (old.state = 'validating' and new.state = 'validating') execute function note_renewal()`.execute(
      world.database,
    );
    const leaseMs = 8_000;
    let nowMs = 0;
    // A millisecond a row.
    await world.run({ leaseMs, monotonicNow: () => nowMs++ });
    const { rows } = await sql<{ count: number }>`select count(*)::int from renewals`.execute(
      world.database,
    );
    expect(rows[0]?.count).toBeGreaterThanOrEqual(Math.floor(LINES / (leaseMs / 4)));
    expect(await world.shown(key)).toMatchObject({ state: 'imported', rowsImported: LINES });
  });

  test.each([
    ['UTF-8', (text: string) => Buffer.from(text)],
    ['UTF-16', (text: string) => Buffer.from(`\ufeffsep=,\n${text}`, 'utf16le')],
  ])(
    'that dies anywhere is followed by one that goes on: every row once (%s)',
    async (_, encode) => {
      await world.people(...PEOPLE);
      const key = await world.upload(encode(file()));
      let statementsLeft = 0;
      // As a kill does: work in progress is rolled back, without a message.
      const dying = world.database.withPlugin({
        transformQuery: ({ node }) => {
          if (statementsLeft-- <= 0) throw new Error('killed');
          return node;
        },
        transformResult: ({ result }) => Promise.resolve(result),
      });
      for (let statements = 4, runs = 0; runs < 40; statements += 2, runs++) {
        statementsLeft = statements;
        await world.run({ database: dying }).catch(() => undefined);
        // Its lease has to end first.
        expect(await claimImport(world.database, 0)).toBeUndefined();
        await world.endLeases();
      }
      await world.run();
      expect(await world.shown(key)).toMatchObject({
        state: 'imported',
        rowsRead: LINES,
        rowsImported: LINES,
      });
      const { rows } = await sql<{ count: string; distinct: string }>`
    select count(*), count(distinct event_id) as distinct from events where kind = 'event'`.execute(
        world.database,
      );
      expect(rows[0]).toEqual({ count: String(LINES), distinct: String(LINES) });
    },
    180_000,
  );

  // Two workers fetched one file, each throwing away the bytes of the other.
  test('whose clock is days ahead, or behind, has the same mind as others about who has an import', async () => {
    const LEASE_MS = 60_000;
    const key = await world.upload(file());
    const held = await claimImport(world.database, LEASE_MS);
    expect(held?.importId).toBe(key.importId);
    world.nowMs += 2 * 86_400_000;
    expect(await world.run()).toBe(false);
    world.nowMs -= 4 * 86_400_000;
    await world.endLeases();
    expect(await world.run()).toBe(true);
  });

  test('that was away while another took its import writes no more rows', async () => {
    await world.people(...PEOPLE);
    const key = await world.upload(file());
    let hasBeenAway = false;
    let isOver: Promise<void> | undefined;
    const first = world.run({
      stopping: {
        get aborted() {
          if (!hasBeenAway) {
            hasBeenAway = true;
            // Between two batches: its lease ends.
            isOver = world.endLeases();
          }
          return false;
        },
      } as AbortSignal,
    });
    await expect.poll(() => hasBeenAway, { timeout: 60_000 }).toBe(true);
    await isOver;
    const second = world.run();
    await Promise.all([first, second]);
    expect(await world.shown(key)).toMatchObject({ state: 'imported', rowsImported: LINES });
    expect(await world.events()).toHaveLength(LINES);
  });

  test.each([
    ['its workspace is deleted', sql`update environments set deleted_at = now()`],
    ['its account is closed', sql`update accounts set status = 'closed'`],
  ])('brings in no more rows once %s, and takes no such import', async (_, end) => {
    await world.people(...PEOPLE);
    const key = await world.upload(file());
    let isBetweenBatches = false;
    let ended: Promise<unknown> | undefined;
    const database = world.database.withPlugin({
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        if (isBetweenBatches) await (ended ??= end.execute(world.database));
        return result;
      },
    });
    const stopping = {
      get aborted() {
        isBetweenBatches = true;
        return false;
      },
    } as AbortSignal;
    await world.run({ database, stopping });
    const brought = (await world.events()).length;
    expect(brought).toBeLessThan(LINES);
    await world.endLeases();
    expect(await world.run()).toBe(false);
    expect(await world.events()).toHaveLength(brought);
    expect(await world.shown(key)).toMatchObject({ state: 'importing', rowsImported: brought });
  });

  // Each took it from the one before, whose batch was then wasted, and no worker came to its end.
  test('whose batch takes longer than its lease keeps the import for it', async () => {
    await world.people(...PEOPLE);
    const key = await world.upload(file());
    const released = Promise.withResolvers<void>();
    const locked = Promise.withResolvers<void>();
    const other = world.database.transaction().execute(async (transaction) => {
      await sql`select 1 from person_identifiers where environment_id = 1 for update`.execute(
        transaction,
      );
      locked.resolve();
      await released.promise;
    });
    await locked.promise;
    const slow = world.run({ leaseMs: 1 });
    await untilLockWaiters(world.database, 1);
    expect(await claimImport(world.database, 15_000)).toBeUndefined();
    released.resolve();
    await Promise.all([other, slow]);
    expect(await world.shown(key)).toMatchObject({ state: 'imported', rowsImported: LINES });
  });

  test('that has to stop finishes its batch and gives the import back at once', async () => {
    await world.people(...PEOPLE);
    const key = await world.upload(file());
    const stopping = AbortSignal.abort();
    await world.run({ stopping });
    expect(await world.shown(key)).toMatchObject({ state: 'importing', rowsRead: 1_000 });
    world.nowMs += 1;
    await world.run();
    expect(await world.shown(key)).toMatchObject({ state: 'imported', rowsImported: LINES });
  });

  test.each([
    ['a newline', '\n', 'a\rb'],
    ['both', '\r\n', 'a\rb'],
    ['a carriage return', '\r', '"a\nb"'],
  ])(
    'that goes on finds the same rows as the worker before, if each row ends with %s',
    async (_, end, cell) => {
      await world.people(...PEOPLE);
      const row = (n: number) => `e-${n},p-${n % 7},${n === 1_000 ? cell : 'x'}${end}`;
      const rows = Array.from({ length: 1_500 }, (__, n) => row(n));
      const key = await world.upload(`_svc_name,_svc_customer_id,note${end}${rows.join('')}`);
      await world.run({ stopping: AbortSignal.abort() });
      expect(await world.shown(key)).toMatchObject({ state: 'importing', rowsRead: 1_000 });
      world.nowMs += 1;
      await world.run();
      expect(await world.shown(key)).toMatchObject({ state: 'imported', rowsImported: 1_500 });
      const notes = (await world.events()).map(({ data }) => (data as { note: string }).note);
      expect(notes.filter((note) => note !== 'x')).toEqual([cell.replaceAll('"', '')]);
    },
  );

  test('stops at a cancelled import, whose rows until then stay', async () => {
    await world.people(...PEOPLE);
    const key = await world.upload(file());
    await world.run({ stopping: AbortSignal.abort() });
    expect(await cancelImport(world.database, key, BY_TEST, world.nowMs)).toMatchObject({
      state: 'canceled',
    });
    world.nowMs += 1;
    expect(await world.run()).toBe(false);
    expect(await world.events()).toHaveLength(1_000);
    expect(await world.chunkCount()).toBe(0);
    expect(await cancelImport(world.database, key, BY_TEST, world.nowMs)).toBeUndefined();
  });
});
