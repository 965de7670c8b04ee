/**
 * Places of workspaces and accounts in one worker's work at imports.
 *
 * The loops are the worker's own, and the files come from a server that never ends some of them.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { claimImport } from '@sluice/database/imports/import-claims';
import { type ImportKey } from '@sluice/database/imports/imports';
import { findDueWork } from '@sluice/database/maintenance/due-work';
import { statementsSentBy } from '@sluice/database/testing/statements-sent';
import { createLogger } from '@sluice/platform/process/logger';
import { sql } from 'kysely';
import { beforeEach, expect, onTestFinished, test, vi } from 'vitest';
import { FetchPlaces, type PlacedFetch } from '../../../src/imports/fetch-places.ts';
import { ImportTurns } from '../../../src/imports/import-turns.ts';
import { createImportReconcileLoops } from '../../../src/imports/reconcile-imports.ts';
import { startReconcileLoops } from '../../../src/process/reconcile-loops.ts';
import { ImportsWorld } from '../support/imports-world.ts';

const NAMES = '_svc_name,_svc_customer_id\n';
const TIMEOUT = { timeout: 60_000, interval: 20 };

let world: ImportsWorld;
beforeEach(async () => {
  world = await ImportsWorld.create();
});

/** Workspaces of an account, whose ids are hundreds of the account's and up. */
async function insertWorkspaces(accountId: number, count: number): Promise<number[]> {
  await sql`insert into accounts (account_id, name) values (${accountId}, 'Test')`.execute(
    world.database,
  );
  const ids = Array.from({ length: count }, (_, index) => accountId * 100 + index);
  for (const id of ids)
    await sql`
      insert into environments (account_id, environment_id, name, webhook_signing_key)
      values (${accountId}, ${id}, 'Test', 'key')`.execute(world.database);
  return ids;
}

/** `slow`: the server sends a line, and no end. `listed`: the workspaces whose slow files it was asked for. */
async function startServer() {
  const listed = new Set<number>();
  const server = createServer((request, response) => {
    response.write(NAMES);
    if (!request.url?.startsWith('/slow')) return void response.end();
    const environmentId = Number(request.url.slice('/slow/'.length));
    listed.add(environmentId);
    response.once('close', () => listed.delete(environmentId));
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, listed };
}

/** Runs the loops as the worker does, to the end of the test. */
function startWorker(): void {
  const stopping = new AbortController();
  const loops = startReconcileLoops({
    findDueWork: () => findDueWork(world.database, Date.now(), 1_000),
    reconcileLoops: createImportReconcileLoops({
      ...world.deps(),
      leaseMs: 600_000,
      monotonicNow: () => performance.now(),
      stopping: stopping.signal,
      outgoing: { allowPrivateAddresses: true, allowedNetworks: [], proxy: undefined },
      intervalMs: 20,
    }),
    intervalMs: 20,
    monotonicNow: () => performance.now(),
    logger: createLogger('test', 'silent'),
  });
  onTestFinished(async () => {
    stopping.abort();
    await loops.stop();
  });
}

// Four workspaces with slow servers kept the file of a newcomer waiting for two hours.
test('a newcomer has its file fetched at once, though the slow servers of other accounts have all other places', async () => {
  const { url, listed } = await startServer();
  const countsOfAccounts = () => {
    const accounts = [...listed].map((id) => Math.floor(id / 100));
    return Object.values(Object.groupBy(accounts, (id) => id))
      .map((ids) => ids?.length ?? 0)
      .toSorted((a, b) => a - b);
  };
  for (const accountId of [11, 12, 13, 14])
    for (const environmentId of await insertWorkspaces(accountId, 6))
      await world.insert({ environmentId, dataFileUrl: `${url}/slow/${environmentId}` });
  startWorker();
  await vi.waitFor(() => expect(countsOfAccounts()).toEqual([3, 4, 4, 4]), TIMEOUT);
  const [environmentId = 0] = await insertWorkspaces(15, 1);
  const key = await world.insert({ environmentId, dataFileUrl: `${url}/quick` });
  await vi.waitFor(
    async () => expect(await world.shown(key)).toMatchObject({ state: 'imported' }),
    TIMEOUT,
  );
  expect(countsOfAccounts()).toEqual([3, 4, 4, 4]);
});

// A statement behind the claim failed, and the import waited for the end of its lease.
test('the claim of a fetch returns the account too, as its last statement', async () => {
  const { url } = await startServer();
  const [environmentId = 0] = await insertWorkspaces(11, 1);
  await world.insert({ environmentId, dataFileUrl: `${url}/quick` });
  let taken: PlacedFetch | undefined;
  const sent = await statementsSentBy(async () => {
    taken = await new FetchPlaces(16).take((withoutAccountIds) =>
      claimImport(world.database, 600_000, { withoutAccountIds, file: 'remote' }),
    );
  });
  expect(taken?.row).toMatchObject({ environmentId, accountId: 11 });
  expect(sent.at(-1)?.text).toContain('update imports');
});

// Each waited for the other file of its workspace to come, which may take two hours.
test('a slow server keeps no other file of its workspace waiting, be it fetched or sent', async () => {
  const { url, listed } = await startServer();
  const quick = await world.insert({ dataFileUrl: `${url}/quick` });
  world.nowMs += 1_000;
  await world.insert({ dataFileUrl: `${url}/slow/1` });
  startWorker();
  const isImported = (key: ImportKey) =>
    vi.waitFor(
      async () => expect(await world.shown(key)).toMatchObject({ state: 'imported' }),
      TIMEOUT,
    );
  await isImported(quick);
  await vi.waitFor(() => expect([...listed]).toEqual([1]), TIMEOUT);
  await isImported(await world.upload(NAMES));
  expect([...listed]).toEqual([1]);
});

test('an upload without a piece for an hour is ended by a running worker', async () => {
  const abandoned = await world.insert();
  await sql`update imports set updated_at = now() - interval '61 minutes'`.execute(world.database);
  startWorker();
  await vi.waitFor(
    async () => expect(await world.shown(abandoned)).toMatchObject({ state: 'failed' }),
    TIMEOUT,
  );
});

// The rows of 10 GB take hours, and a worker imports four files at a time.
test('a file of many rows lets another workspace pass after half a minute, and goes on after it', async () => {
  await world.people('p-1');
  const rows = Array.from({ length: 2_500 }, (_, index) => `e-${index},p-1\n`);
  const large = await world.upload(NAMES + rows.join(''));
  world.nowMs += 1_000;
  const small = await world.upload(NAMES, { environmentId: 2 });
  let nowMs = 0;
  const turns = new ImportTurns();
  const run = () =>
    world.run({ takes: 'here', turns, leaseMs: 3_600_000, monotonicNow: () => (nowMs += 31_000) });
  await run();
  expect(await world.shown(large)).toMatchObject({ state: 'importing', rowsRead: 1_000 });
  await run();
  expect(await world.shown(small)).toMatchObject({ state: 'imported' });
  while (await run());
  expect(await world.shown(large)).toMatchObject({ state: 'imported', rowsImported: 2_500 });
  expect(await world.events()).toHaveLength(2_500);
});
