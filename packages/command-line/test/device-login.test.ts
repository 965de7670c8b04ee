/** `sluice login` while the user types the code: answers of the API, and an API that is away for a moment. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { loginByCode } from '../src/connection/device-login.ts';

const STARTED = {
  ...{ device_code: 'secret', user_code: 'BCDF-GHJK', verification_uri: 'http://c/device' },
  ...{ expires_in: 600, interval: 5 },
};
const PENDING = { error: 'authorization_pending', interval: 5 };

type Answer = readonly [status: number, body: object] | 'cut';

/** An API with these answers, one a call; the last one is for all others. */
async function login(answers: readonly Answer[]) {
  let calls = 0;
  const server = createServer((request, response) => {
    const answer = answers[Math.min(calls++, answers.length - 1)] as Answer;
    if (answer === 'cut') {
      request.socket.destroy();
      return;
    }
    response.writeHead(answer[0], { 'content-type': 'application/json' });
    response.end(JSON.stringify(answer[1]));
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  const pauses: number[] = [];
  const ending = loginByCode({
    apiUrl: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    hostName: 'laptop',
    signal: new AbortController().signal,
    pause: async (durationMs) => void pauses.push(durationMs),
    show: () => {},
  });
  return { ending, pauses };
}

test('a login outlives a restart of the API while the user types', async () => {
  const away: Answer = [503, { code: 'unavailable', message: 'it starts' }];
  const credentials = { token: 'sa_sandbox_1', account_id: 1 };
  const { ending, pauses } = await login([
    [200, STARTED],
    [400, PENDING],
    'cut',
    away,
    [200, credentials],
  ]);
  expect(await ending).toEqual(credentials);
  expect(pauses).toEqual([5_000, 5_000, 10_000, 20_000]);
});

test('a login ends with its code if the API stays away, and at once if the user refuses', async () => {
  const { ending, pauses } = await login([[200, STARTED], 'cut']);
  await expect(ending).rejects.toMatchObject({ code: 'COMMAND_NOT_REACHED' });
  const waitedMs = pauses.reduce((sum, each) => sum + each, 0);
  expect(waitedMs).toBeGreaterThanOrEqual(600_000);
  expect(waitedMs).toBeLessThan(660_000);
  const denied = await login([
    [200, STARTED],
    [400, { error: 'access_denied', message: 'no' }],
  ]);
  await expect(denied.ending).rejects.toMatchObject({ code: 'COMMAND_NOT_ALLOWED' });
});
