/** The end of the process, as SIGTERM brings it about. */
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { createDatabase } from '@sluice/database/connection/connection';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { expect, onTestFinished, test } from 'vitest';
import { MAIN } from '../support/process-under-test.ts';

/** It asks Postgres, and waits longer than `/readyz`, whose two seconds a busy machine outlasts. */
const PATH = '/v1/reporting_webhooks';
const headers = { authorization: `Bearer ${DEMO.appKey}` };

const call = (url: string, agent: Agent) =>
  new Promise<{ status: number | undefined; connection: string | undefined }>((resolve, reject) => {
    request(url, { agent, headers }, (answer) => {
      answer
        .resume()
        .once('end', () =>
          resolve({ status: answer.statusCode, connection: answer.headers.connection }),
        );
    })
      .once('error', reject)
      .end();
  });

/** The API takes 300 ms without a call for the end of the calls, also if this process could not call. */
const PAUSE_MS_MAX = 200;
const TRIES_MAX = 5;

/** A connection was closed on a call ("socket hang up" has this code too). */
const isCut = (failure: unknown): boolean =>
  (failure as { code?: unknown } | undefined)?.code === 'ECONNRESET';

/** @returns the failure of a call, and the longest pause of this process from the signal on. */
async function stopWhileCalled(): Promise<{ failure: unknown; pauseMs: number }> {
  const { database, url: databaseUrl } = await createTestDatabase();
  await seedDemoWorkspace(database);
  const api = await startServiceUnderTest(MAIN, { DATABASE_URL: databaseUrl, API_PORT: '0' });
  const clients = Array.from({ length: 8 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  // These clients wait for no answer. They are cut in the end.
  const idle = [connect(api.port), connect(api.port).setNoDelay()];
  for (const socket of idle) socket.on('error', () => {});
  onTestFinished(() => [...clients, ...idle].forEach((client) => client.destroy()));
  await Promise.all(idle.map((socket) => once(socket, 'connect')));
  idle[1]?.write('GET /livez HTTP/1.1\r\n');

  // One after the other, for as long as their connection is kept.
  const callUntilClosed = async (agent: Agent): Promise<void> => {
    for (;;) {
      const { status, connection } = await call(api.url + PATH, agent);
      expect(status).toBe(200);
      if (connection === 'close') return;
    }
  };
  const called = Promise.all(clients.map(callUntilClosed)).then(
    () => undefined,
    (error: unknown) => error,
  );
  await call(api.url + PATH, new Agent());
  const pauses = monitorEventLoopDelay({ resolution: 10 });
  pauses.enable();
  expect(await api.kill('SIGTERM')).toBe(0);
  const failure = await called;
  pauses.disable();
  return { failure, pauseMs: pauses.max / 1e6 };
}

test('calls on kept connections are answered to the end, and the last answer closes the connection', async () => {
  for (let tries = 1; ; tries++) {
    const { failure, pauseMs } = await stopWhileCalled();
    if (isCut(failure) && pauseMs >= PAUSE_MS_MAX && tries < TRIES_MAX) continue;
    expect(failure).toBeUndefined();
    return;
  }
}, 240_000);

test('callers who went away are not waited for', async () => {
  const { url: databaseUrl } = await createTestDatabase();
  const database = createDatabase({
    url: databaseUrl,
    poolMax: 1,
    applicationName: 'test',
    onError: () => {},
  });
  await seedDemoWorkspace(database);
  await database.destroy();
  const api = await startServiceUnderTest(MAIN, {
    DATABASE_URL: databaseUrl,
    API_PORT: '0',
    // Calls in progress have half of it.
    DRAIN_TIMEOUT_MS: '120000',
  });
  // A live tail whose reader ends it, and a body that breaks off.
  const tail = new AbortController();
  const answer = await fetch(`${api.url}/v1/stream`, { headers, signal: tail.signal });
  expect(answer.status).toBe(200);
  tail.abort();
  const broken = connect(api.port);
  broken.on('error', () => {});
  broken.write(
    `POST ${PATH} HTTP/1.1\r\nHost: a\r\nAuthorization: ${headers.authorization}\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n`,
  );
  // "100 Continue": the call is in progress.
  await once(broken, 'data');
  broken.destroy();
  const startedAtMs = performance.now();
  expect(await api.kill('SIGTERM')).toBe(0);
  expect(performance.now() - startedAtMs).toBeLessThan(40_000);
}, 180_000);
