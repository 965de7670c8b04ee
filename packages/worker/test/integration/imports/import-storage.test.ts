/** Shared resources of all workspaces for imports: the storage for files, and the turns of the workers. */
import { Readable } from 'node:stream';
import { cancelImport } from '@sluice/database/imports/import-changes';
import { claimImport } from '@sluice/database/imports/import-claims';
import { insertTestWorkspace } from '@sluice/database/testing/test-tenants';
import { BY_TEST } from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { ImportTurns } from '../../../src/imports/import-turns.ts';
import { ImportsWorld } from '../support/imports-world.ts';

const dataFileUrl = 'https://files.example/events.csv';
const storage = { sizeBytesMax: 1_000, sharePercent: 25 };
const NAMES = '_svc_name,_svc_customer_id\n';

let world: ImportsWorld;
beforeEach(async () => {
  world = await ImportsWorld.create();
});

function* piecesOf(file: Buffer): Generator<Buffer, void, undefined> {
  for (let at = 0; at < file.length; at += 500_000) yield file.subarray(at, at + 500_000);
}

const fetching = (sizeBytes: number) => ({
  storage,
  fetchFile: () => Readable.from(piecesOf(Buffer.from(NAMES.padEnd(sizeBytes, '\n')))),
});

const closeOthers = () =>
  sql`update environments set deleted_at = now() where environment_id <> 1`.execute(world.database);

test('a workspace beyond its share waits without stored bytes, while the last share takes another’s file', async () => {
  const sent = await world.insert();
  expect(await world.keep(sent, Buffer.alloc(700))).toBe('kept');
  const waiting = await world.insert({ dataFileUrl });
  expect(await world.run(fetching(60))).toBe(true);
  expect(await world.shown(waiting)).toMatchObject({
    state: 'preprocessing',
    sizeBytes: 0,
    error: expect.stringMatching(/^waits until the file can be stored/),
  });
  expect(await world.run(fetching(60))).toBe(false);
  const other = await world.insert({ dataFileUrl, environmentId: 2 });
  expect(await world.run(fetching(240))).toBe(true);
  expect(await world.shown(other)).toMatchObject({ state: 'imported' });

  await cancelImport(world.database, sent, BY_TEST, world.nowMs);
  await world.endLeases();
  expect(await world.run(fetching(60))).toBe(true);
  expect(await world.shown(waiting)).toMatchObject({ state: 'imported', error: null });
});

test('if a workspace has no storage left, its file is not even asked for', async () => {
  const sent = await world.insert();
  await world.keep(sent, Buffer.alloc(750));
  await world.insert({ dataFileUrl });
  const fetchFile = () => expect.unreachable();
  expect(await world.run({ storage, fetchFile })).toBe(true);
});

test('the only workspace of an installation takes all of the storage', async () => {
  await closeOthers();
  const key = await world.insert({ dataFileUrl });
  expect(await world.run(fetching(1_000))).toBe(true);
  expect(await world.shown(key)).toMatchObject({ state: 'imported' });
});

test.each([
  { isAlone: false, sizeBytes: 3_000_001 },
  { isAlone: true, sizeBytes: 4_000_001 },
])(
  'a file of $sizeBytes bytes, which would never find storage, fails and leaves no bytes',
  async ({ isAlone, sizeBytes }) => {
    if (isAlone) await closeOthers();
    const key = await world.insert({ dataFileUrl });
    const large = { ...storage, sizeBytesMax: 4_000_000 };
    expect(await world.run({ ...fetching(sizeBytes), storage: large })).toBe(true);
    expect(await world.shown(key)).toMatchObject({
      state: 'failed',
      error: expect.stringMatching(/larger than the share of a workspace in the 4000000 bytes/),
    });
    expect(await world.chunkCount()).toBe(0);
  },
);

test('of four workers at the same moment one takes an import of a workspace, and another takes the next workspace’s', async () => {
  for (let n = 0; n < 4; n++) await world.insert({ dataFileUrl });
  await world.insert({ dataFileUrl, environmentId: 2 });
  const claimed = await Promise.all(
    Array.from({ length: 4 }, () => claimImport(world.database, 60_000)),
  );
  const owners = claimed.flatMap((row) => row?.environmentId ?? []);
  expect(owners.toSorted((a, b) => a - b)).toEqual([1, 2]);
});

// Four workspaces with a hundred files each kept the file of another one waiting for days.
test('a workspace that had a turn waits behind the others, however many older imports it has', async () => {
  await insertTestWorkspace(world.database, 3);
  for (const environmentId of [1, 1, 1, 2, 3]) {
    world.nowMs += 1_000;
    await world.insert({ dataFileUrl, environmentId });
  }
  const turns = new ImportTurns();
  const served = async (): Promise<number | undefined> => {
    await world.run({ turns, fetchFile: () => Readable.from([Buffer.from(NAMES)]) });
    return turns.servedEnvironmentIds(0).at(-1);
  };
  expect([await served(), await served(), await served(), await served()]).toEqual([1, 2, 3, 1]);
});

test('a workspace whose import found no storage has its former place once the wait is over', async () => {
  const sent = await world.insert();
  await world.keep(sent, Buffer.alloc(750));
  await world.insert({ dataFileUrl });
  const turns = new ImportTurns();
  expect(await world.run({ turns, ...fetching(60) })).toBe(true);
  expect(turns.servedEnvironmentIds(59_999)).toEqual([1]);
  expect(turns.servedEnvironmentIds(60_000)).toEqual([]);
});

test('a turn that is kept for files that are here takes no file from a URL', async () => {
  await world.insert({ dataFileUrl, environmentId: 2 });
  const sent = await world.upload(NAMES);
  const fetchFile = () => expect.unreachable();
  expect(await world.run({ takes: 'here', fetchFile })).toBe(true);
  expect(await world.shown(sent)).toMatchObject({ state: 'imported' });
  expect(await world.run({ takes: 'here', fetchFile })).toBe(false);
});
