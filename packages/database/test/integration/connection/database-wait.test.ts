/** The wait of a start by itself. `standalone/test/integration/late-database.test.ts` tests it in the processes. */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { createDatabase, type Database } from '../../../src/connection/connection.ts';
import { waitForDatabase } from '../../../src/connection/database-wait.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

const APPLICATION = { applicationName: 'waits' };

function startWaiting<Joined>(url: string, join: () => Promise<Joined>) {
  const closes: (() => void)[] = [];
  const lines: string[] = [];
  const say = (_fields: object, message: string) => void lines.push(message);
  const joined = waitForDatabase({
    ...APPLICATION,
    url,
    join,
    lifecycle: { defer: (_name, close) => void closes.push(close) },
    logger: { info: say, warn: say },
  });
  return { joined, lines, stop: () => closes.forEach((close) => close()) };
}

/** Ends its own connection, as a server that is shut down does. */
const endSession = (database: Database) =>
  sql`select pg_terminate_backend(pg_backend_pid())`.execute(database);

async function openSession() {
  const { url } = await createTestDatabase();
  const database = createDatabase({
    ...APPLICATION,
    url,
    poolMax: 1,
    onError: () => undefined,
  });
  onTestFinished(() => database.destroy());
  return { database, url };
}

test('a Postgres that goes away in the middle of the start is waited for again, and the start begins anew', async () => {
  const { database, url } = await openSession();
  let joins = 0;
  const { joined, lines } = startWaiting(url, async () => {
    joins += 1;
    if (joins < 3) await endSession(database);
    return joins;
  });
  expect(await joined).toBe(3);
  expect(lines).toEqual([
    expect.stringMatching(/^Postgres is away/),
    expect.stringMatching(/^Postgres is there/),
  ]);
});

test('an error of the start itself ends the start', async () => {
  const { url } = await createTestDatabase();
  const { joined } = startWaiting(url, () => Promise.reject(new Error('another schema')));
  await expect(joined).rejects.toThrow('another schema');
});

test('a start that was stopped never goes on, though Postgres is there', async () => {
  const { database, url } = await openSession();
  let joins = 0;
  const stopped = startWaiting(url, async () => {
    joins += 1;
    stopped.stop();
    await endSession(database);
  });
  // As many rounds and pauses as the other would need.
  const rounds: number[] = [];
  const other = startWaiting(url, async () => {
    if (rounds.push(joins) < 4 || joins === 0) await endSession(database);
  });
  await other.joined;
  expect(joins).toBe(1);
});

/** Takes a connection and never answers. @returns the URL, and the start and the end of its first connection. */
async function startSilentServer() {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => void server.close());
  const { port } = server.address() as AddressInfo;
  const taken = once(server, 'connection') as Promise<[Socket]>;
  const closed = taken.then(async ([socket]) => {
    socket.on('error', () => undefined).resume();
    await once(socket, 'close');
  });
  return { url: `postgres://sluice@127.0.0.1:${port}/sluice`, taken, closed };
}

test('a stop does not wait for a connection that is taken and never answered', async () => {
  const { url, taken, closed } = await startSilentServer();
  let isClosed = false;
  void closed.then(() => (isClosed = true));
  const stopped = startWaiting(url, () => Promise.resolve());
  await taken;
  stopped.stop();
  // The time for an answer is three seconds. In ticks: a standstill, which ends the connection too, is one.
  for (let tick = 0; tick < 20 && !isClosed; tick++) await sleep(50);
  expect(isClosed).toBe(true);
});
