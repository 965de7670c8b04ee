/** The end of the process, as SIGTERM brings it about. */
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { connect } from 'node:net';
import { createTestDatabase } from '@sluice/database/testing';
import { startServiceUnderTest } from '@sluice/platform/service-under-test';
import { expect, onTestFinished, test } from 'vitest';
import { MAIN } from './process-under-test.ts';

const WAIT = { timeout: 20_000, interval: 1 };

test('calls on connections that are kept are answered to the end, and told that it is', async () => {
  const { url: databaseUrl } = await createTestDatabase();
  const api = await startServiceUnderTest(MAIN, { DATABASE_URL: databaseUrl, API_PORT: '0' });
  const clients = Array.from({ length: 8 }, () => new Agent({ keepAlive: true, maxSockets: 1 }));
  onTestFinished(() => clients.forEach((client) => client.destroy()));
  const call = (agent: Agent) =>
    new Promise<{ status: number | undefined; connection: string | undefined }>(
      (resolve, reject) => {
        request(`${api.url}/readyz`, { agent }, (answer) => {
          answer
            .resume()
            .once('end', () =>
              resolve({ status: answer.statusCode, connection: answer.headers.connection }),
            );
        })
          .once('error', reject)
          .end();
      },
    );
  const callAll = () => Promise.all(clients.map(call));
  for (const answer of await callAll())
    expect(answer).toEqual({ status: 200, connection: 'keep-alive' });
  // Nobody waits for an answer here.
  const idle = [connect(api.port), connect(api.port).setNoDelay()];
  // They are cut in the end.
  for (const socket of idle) socket.on('error', () => {});
  onTestFinished(() => idle.forEach((socket) => socket.destroy()));
  await Promise.all(idle.map((socket) => once(socket, 'connect')));
  idle[1]?.write('GET /livez HTTP/1.1\r\n');

  const ended = api.kill('SIGTERM');
  await expect
    .poll(() => api.logs.some((line) => String(line['msg']).startsWith('stopping')), WAIT)
    .toBe(true);
  for (const answer of await callAll())
    expect(answer).toEqual({ status: 200, connection: 'close' });
  expect(await ended).toBe(0);
}, 60_000);
