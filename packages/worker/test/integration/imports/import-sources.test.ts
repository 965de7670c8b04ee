/** Sources of an import's bytes: a URL that breaks off or is not there, an upload that stops. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Readable } from 'node:stream';
import { cancelImport } from '@sluice/database/imports/import-changes';
import { lockImport } from '@sluice/database/imports/import-claims';
import { BY_TEST } from '@sluice/database/testing/testing';
import { parseNetwork } from '@sluice/domain/delivery/network-address';
import { sql } from 'kysely';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { FetchFault } from '../../../src/http/fetch-file.ts';
import {
  createImportReconcileLoops,
  type ImportReconcileLoopsDeps,
} from '../../../src/imports/reconcile-imports.ts';
import { parseProxy, type Proxy } from '@sluice/platform/outgoing/proxy-tunnel';
import type { RunImportDeps } from '../../../src/imports/run-import.ts';
import { startConnectProxy } from '../../support/connect-proxy.ts';
import { ImportsWorld } from '../support/imports-world.ts';

let world: ImportsWorld;
beforeEach(async () => {
  world = await ImportsWorld.create();
});

/** One loop that fetches files, and then one that imports them. */
async function runOnce(deps: ImportReconcileLoopsDeps): Promise<void> {
  const loops = createImportReconcileLoops(deps);
  for (const loop of [loops.at(0), loops.at(-1)]) await loop?.run(() => false);
}

describe('a file behind a URL', () => {
  const fromUrl = () =>
    world.insert({
      dataToProcess: 'only_existing',
      dataFileUrl: 'https://files.example/events.csv',
    });
  const TEXT = '_svc_name,_svc_customer_id\na,ann\n';

  test('is fetched once more if that may help, from its start, and imported', async () => {
    await world.people('ann');
    const key = await fromUrl();
    let tries = 0;
    async function* fetchFile() {
      yield Buffer.from(TEXT.slice(0, 20));
      if (++tries < 3) throw new FetchFault('the file broke off: reset', true);
      yield Buffer.from(TEXT.slice(20));
    }
    await world.run({ fetchFile });
    expect(await world.shown(key)).toMatchObject({
      state: 'imported',
      rowsImported: 1,
      sizeBytes: TEXT.length,
    });
  });

  test('that a stopping worker fetches is given back at once', async () => {
    const key = await fromUrl();
    const stopping = new AbortController();
    async function* fetchFile() {
      yield Buffer.from(TEXT.slice(0, 20));
      stopping.abort();
      throw new FetchFault('the file broke off: aborted', true);
    }
    await world.run({ fetchFile, stopping: stopping.signal });
    world.nowMs += 1;
    await world.run({ fetchFile: () => Readable.from([Buffer.from(TEXT)]) });
    expect(await world.shown(key)).toMatchObject({ state: 'imported', sizeBytes: TEXT.length });
  });

  test('of which bytes still come when a worker stops is given back at once too', async () => {
    const key = await fromUrl();
    const stopping = new AbortController();
    async function* fetchFile() {
      stopping.abort();
      yield Buffer.from(TEXT.slice(0, 20));
    }
    await world.run({ fetchFile, stopping: stopping.signal });
    await world.run({ fetchFile: () => Readable.from([Buffer.from(TEXT)]) });
    expect(await world.shown(key)).toMatchObject({ state: 'imported', sizeBytes: TEXT.length });
  });

  test('is reached as webhooks are: in a network that is on the list, and through the egress proxy', async () => {
    const server = createServer((_, response) => response.end(TEXT)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const egress = await startConnectProxy();
    const { proxy, asked } = egress;
    onTestFinished(() => {
      server.close();
      egress.close();
    });
    const { port } = server.address() as AddressInfo;
    const dataFileUrl = `http://127.0.0.1:${port}/events.csv`;
    const key = await world.insert({ dataToProcess: 'only_existing', dataFileUrl });
    const network = parseNetwork('127.0.0.0/8');
    await runOnce({
      ...world.deps(),
      outgoing: { allowPrivateAddresses: false, allowedNetworks: network ? [network] : [], proxy },
      intervalMs: 1_000,
    });
    expect(await world.shown(key)).toMatchObject({ error: null, state: 'imported' });
    expect(asked).toEqual([`127.0.0.1:${port}`]);
  });

  const throughProxy = async (
    proxy: Proxy,
    logger: RunImportDeps['logger'] = world.deps().logger,
  ) => {
    await runOnce({
      ...world.deps(),
      logger,
      outgoing: { allowPrivateAddresses: true, allowedNetworks: [], proxy },
      intervalMs: 1_000,
    });
  };

  test('that the egress proxy refuses waits without blocking others, and is imported once the proxy allows it', async () => {
    const server = createServer((_, response) => response.end(TEXT)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    const [refusing, egress] = [
      await startConnectProxy(407, 'by 10.1.2.3'),
      await startConnectProxy(),
    ];
    onTestFinished(() => {
      server.close();
      refusing.close();
      egress.close();
    });
    const { port } = server.address() as AddressInfo;
    const key = await world.insert({ dataFileUrl: `http://127.0.0.1:${port}/events.csv` });
    world.nowMs += 1;
    const sent = await world.upload(TEXT);
    const causes: unknown[] = [];
    const warn = ({ error }: { error: Error }) => void causes.push(error.message);

    await throughProxy(parseProxy('http://127.0.0.1:9'), { warn });
    expect(await world.shown(key)).toMatchObject({
      state: 'preprocessing',
      error: 'waits until the file can be fetched: the egress proxy: ECONNREFUSED',
    });
    expect(causes).toEqual([expect.stringMatching(/^the egress proxy 127.0.0.1:9: /)]);
    expect(await world.shown(sent)).toMatchObject({ state: 'imported' });

    await world.endLeases();
    await throughProxy(refusing.proxy);
    expect(await world.shown(key)).toMatchObject({
      state: 'preprocessing',
      error: 'waits until the file can be fetched: the egress proxy: it answered 407',
    });
    await throughProxy(egress.proxy);
    expect(egress.asked).toEqual([]);

    await world.endLeases();
    await throughProxy(egress.proxy);
    expect(await world.shown(key)).toMatchObject({ state: 'imported', error: null });
  });

  test('to which the egress proxy finds no way fails after some tries, without the words of the proxy', async () => {
    const egress = await startConnectProxy(502, 'no way from 10.1.2.3');
    onTestFinished(() => egress.close());
    const key = await world.insert({ dataFileUrl: 'http://127.0.0.1:9/events.csv' });
    await throughProxy(egress.proxy);
    expect(await world.shown(key)).toMatchObject({
      state: 'failed',
      error: 'the URL cannot be reached: the egress proxy: it answered 502',
    });
    expect(egress.asked).toHaveLength(3);
  });

  test('that is missing or too large fails with its reason', async () => {
    const missing = await fromUrl();
    // oxlint-disable-next-line require-yield
    async function* fetchFile(): AsyncGenerator<Buffer> {
      throw new FetchFault('the URL answered 404', false);
    }
    await world.run({ fetchFile });
    expect(await world.shown(missing)).toMatchObject({
      state: 'failed',
      error: 'the URL answered 404',
    });
    const large = await fromUrl();
    await world.run({ sizeBytesMax: 10, fetchFile: () => Readable.from([Buffer.from(TEXT)]) });
    expect(await world.shown(large)).toMatchObject({
      state: 'failed',
      error: 'the file is larger than 10 bytes; split it',
    });
    expect(await world.chunkCount()).toBe(0);
  });
});

test('a file that comes slowly keeps no other workspace waiting, and other files of its own', async () => {
  const dataFileUrl = 'https://files.example/events.csv';
  const text = '_svc_name,_svc_customer_id\n';
  const [slow, next, other] = [
    await world.insert({ dataFileUrl }),
    await world.upload(text),
    await world.upload(text, { environmentId: 2 }),
  ];
  const { promise: rest, resolve: sendRest } = Promise.withResolvers<undefined>();
  const { promise: begun, resolve: begin } = Promise.withResolvers<undefined>();
  async function* fetchFile() {
    begin(undefined);
    await rest;
    yield Buffer.from(text);
  }
  const slowRun = world.run({ fetchFile });
  await begun;
  expect(await world.run()).toBe(true);
  expect(await world.shown(other)).toMatchObject({ state: 'imported' });
  expect(await world.run()).toBe(false);
  sendRest(undefined);
  await slowRun;
  expect(await world.shown(slow)).toMatchObject({ state: 'imported' });
  expect(await world.run()).toBe(true);
  expect(await world.shown(next)).toMatchObject({ state: 'imported' });
});

describe('a file behind a URL that finds no capacity', () => {
  const dataFileUrl = 'https://files.example/events.csv';
  const TEXT = '_svc_name,_svc_customer_id\n';
  const unfinishedSizeBytesMax = 100;
  const fetchFile = () => Readable.from([Buffer.from(TEXT)]);

  // All workspaces share one Postgres: files that wait to be imported must not fill it.
  test('beside others of its workspace waits, stores no bytes and blocks no import, and is fetched once they have ended', async () => {
    const key = await world.insert({ dataFileUrl });
    world.nowMs += 1;
    const sent = await world.upload(TEXT + 'x'.repeat(90 - TEXT.length));
    await world.upload('x'.repeat(90), { environmentId: 2 });
    expect(await world.run({ unfinishedSizeBytesMax, fetchFile })).toBe(true);
    expect(await world.shown(key)).toMatchObject({
      state: 'preprocessing',
      sizeBytes: 0,
      error: expect.stringMatching(/^waits until .*100 bytes together/),
    });
    expect(await world.chunkCount()).toBe(2);

    // Imports of its workspace, and of others, though they came later.
    expect(await world.run({ unfinishedSizeBytesMax, fetchFile })).toBe(true);
    expect(await world.shown(sent)).toMatchObject({ state: 'imported' });
    expect(await world.run({ unfinishedSizeBytesMax, fetchFile })).toBe(true);
    expect(await world.shown(key)).toMatchObject({ state: 'imported', error: null });
    expect(await world.run({ unfinishedSizeBytesMax, fetchFile })).toBe(true);
    expect(await world.run({ unfinishedSizeBytesMax, fetchFile })).toBe(false);
  });

  test('beside one that is still being sent is not fetched again and again meanwhile', async () => {
    const beingSent = await world.insert();
    expect(await world.keep(beingSent, Buffer.alloc(90))).toBe('kept');
    const key = await world.insert({ dataFileUrl });
    expect(await world.run({ unfinishedSizeBytesMax, fetchFile })).toBe(true);
    expect(await world.run({ unfinishedSizeBytesMax, fetchFile })).toBe(false);
    const other = await world.insert({ dataFileUrl });
    expect(await world.run({ unfinishedSizeBytesMax, fetchFile })).toBe(true);
    await cancelImport(world.database, other, BY_TEST, world.nowMs);
    // The wait's reason does not exist any more.
    expect(await world.shown(other)).toMatchObject({ state: 'canceled', error: null });
    await cancelImport(world.database, beingSent, BY_TEST, world.nowMs);
    expect(await world.run({ unfinishedSizeBytesMax, fetchFile })).toBe(true);
    expect(await world.shown(key)).toMatchObject({ state: 'imported' });
  });

  test('that is larger than all of it fails with the bound in its error, and leaves no bytes', async () => {
    const key = await world.insert({ dataFileUrl });
    await world.upload('x'.repeat(90), { environmentId: 2 });
    const tooLarge = () => Readable.from([Buffer.alloc(101)]);
    expect(await world.run({ unfinishedSizeBytesMax, fetchFile: tooLarge })).toBe(true);
    expect(await world.shown(key)).toMatchObject({
      state: 'failed',
      error: expect.stringMatching(/larger than the 100 bytes/),
    });
    expect(await world.chunkCount()).toBe(1);
  });
});

test('an import that is unfinished after thirty days fails, with its bytes; one in progress does not', async () => {
  const stuck = await world.upload('_svc_name');
  const held = await world.upload('_svc_name');
  world.nowMs += 30 * 86_400_000 - 1_000;
  const setLease = (until: number) =>
    sql`update imports set held_until = ${new Date(until)}`.execute(world.database);
  await setLease(world.nowMs + 60_000);
  await world.run();
  expect(await world.shown(stuck)).toMatchObject({ state: 'preprocessed' });
  world.nowMs += 2_000;
  await sql`update imports set held_until = null where import_id = ${stuck.importId}`.execute(
    world.database,
  );
  await world.run();
  expect(await world.shown(stuck)).toMatchObject({
    state: 'failed',
    error: expect.stringMatching(/30 days/),
  });
  expect(await world.shown(held)).toMatchObject({ state: 'preprocessed' });
  expect(await world.chunkCount()).toBe(1);
});

// Every import loop of every worker asks for these first.
test('an import of thirty days whose batch outlasts its lease keeps no other import waiting', async () => {
  const old = await world.upload('_svc_name');
  world.nowMs += 30 * 86_400_000 + 1_000;
  const other = await world.upload('_svc_name,_svc_customer_id\n', { environmentId: 2 });
  await world.database.transaction().execute(async (batch) => {
    expect(await lockImport(batch, { ...old, fencing: 0 })).toBe(true);
    expect(await world.run()).toBe(true);
  });
  expect(await world.shown(other)).toMatchObject({ state: 'imported' });
  expect(await world.shown(old)).toMatchObject({ state: 'preprocessed' });
  await world.run();
  expect(await world.shown(old)).toMatchObject({ state: 'failed' });
});

test('an upload without bytes for an hour is given up', async () => {
  const key = await world.insert();
  expect(await world.keep(key, Buffer.from('_svc'))).toBe('kept');
  world.nowMs += 3_599_000;
  expect(await world.run()).toBe(false);
  expect(await world.shown(key)).toMatchObject({ state: 'preprocessing' });
  world.nowMs += 2_000;
  await world.run();
  expect(await world.shown(key)).toMatchObject({ state: 'failed' });
  expect(await world.chunkCount()).toBe(0);
});
