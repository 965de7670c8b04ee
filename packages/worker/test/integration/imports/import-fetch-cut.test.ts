/**
 * The fetch of a file that is not wanted any more.
 *
 * At any stage the worker leaves the server, and releases the import. The server sends for ever, byte by byte or not at
 * all.
 */
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { cancelImport } from '@sluice/database/imports/import-changes';
import type { ImportKey } from '@sluice/database/imports/imports';
import { BY_TEST } from '@sluice/database/testing/testing';
import { TickClock } from '@sluice/platform/testing/tick-clock';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { createImportReconcileLoops } from '../../../src/imports/reconcile-imports.ts';
import { ImportsWorld } from '../support/imports-world.ts';

const MEBIBYTE = 1_048_576;

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const NAMES = '_svc_name,_svc_customer_id\n';
const row = Buffer.from('bought,ann\n'.repeat(6_000));

/** The server's action on a request for its path, until its connection is closed. */
const SERVERS: Readonly<Record<string, (response: ServerResponse) => void>> = {
  'sends for ever': (response) => {
    response.write(NAMES);
    const send = (): void => {
      while (!response.destroyed && response.write(row));
    };
    response.on('drain', send);
    send();
  },
  'sends a byte now and then': (response) => {
    response.write(NAMES);
    const sending = setInterval(() => response.write('b'), 100);
    response.on('close', () => clearInterval(sending));
  },
  'sends a head, and no more': (response) => response.flushHeaders(),
  'says nothing': () => undefined,
};

let world: ImportsWorld;
let url: string;
const server = createServer((request, response) => {
  SERVERS[decodeURIComponent(request.url?.slice(1) ?? '')]?.(response);
});
beforeAll(async () => {
  world = await ImportsWorld.create();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => {
  server.close();
  server.closeAllConnections();
});

const connectionCount = () =>
  new Promise<number>((resolve, reject) =>
    server.getConnections((error, count) => (error ? reject(error) : resolve(count))),
  );

async function begin(kind: string) {
  const key = await world.insert({ dataFileUrl: `${url}/${encodeURIComponent(kind)}` });
  const stopping = new AbortController();
  const [reconcile] = createImportReconcileLoops({
    ...world.deps(),
    stopping: stopping.signal,
    outgoing: { allowPrivateAddresses: true, allowedNetworks: [], proxy: undefined },
    intervalMs: 1_000,
  });
  const ended = reconcile?.run(() => false);
  await vi.waitFor(async () => expect(await connectionCount()).toBe(1), { timeout: 30_000 });
  return { key, stopping, ended };
}

const ENDINGS: Readonly<
  Record<string, (begun: { key: ImportKey; stopping: AbortController }) => unknown>
> = {
  'it is canceled': ({ key }) => cancelImport(world.database, key, BY_TEST, world.nowMs),
  'another worker has it': ({ key: { importId } }) =>
    sql`update imports set fencing = fencing + 1 where import_id = ${importId}`.execute(
      world.database,
    ),
  'the worker stops': ({ stopping }) => stopping.abort(),
};

/** In ticks with an answer of Postgres each: the worker asks Postgres whether it has the import. */
async function untilLeft(): Promise<void> {
  await TickClock.pass(50, 3_000, async () => {
    await sql`select 1`.execute(world.database);
    return (await connectionCount()) === 0;
  });
  expect(await connectionCount()).toBe(0);
}

async function heldSizeBytes(): Promise<number> {
  collectGarbage();
  await sleep(50);
  collectGarbage();
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

test.each(
  Object.keys(SERVERS).flatMap((kind) => Object.keys(ENDINGS).map((ending) => ({ kind, ending }))),
)(
  'a server that $kind is left within 3 s when $ending',
  async ({ kind, ending }) => {
    const before = await heldSizeBytes();
    const begun = await begin(kind);
    await sleep(200);
    await ENDINGS[ending]?.(begun);
    await untilLeft();
    await begun.ended;
    // V8 frees buffers in other threads, so a busy machine may need more than one look.
    await vi.waitFor(
      async () => expect((await heldSizeBytes()) - before).toBeLessThan(16 * MEBIBYTE),
      { timeout: 20_000 },
    );
    if (ending === 'it is canceled') expect(await world.chunkCount()).toBe(0);
    await sql`delete from import_chunks`.execute(world.database);
    await sql`delete from imports`.execute(world.database);
  },
  180_000,
);
