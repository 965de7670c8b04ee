/** Benchmark of other systems. It names missing arguments, and it reports the real deliveries of a system. */
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { findFreePort } from '@sluice/platform/testing/free-port';
import { expect, onTestFinished, test } from 'vitest';
import { benchPeers } from '../src/peers.ts';

test.each([
  [[], /name one that runs: --svix URL --svix-token/],
  [['--svix', 'http://127.0.0.1:1'], /--svix-token is missing/],
  [
    ['--convoy', 'http://127.0.0.1:1', '--convoy-token', 'key'],
    /--convoy-extra is missing: id of the project/,
  ],
])('a missing argument is named: %j', async (given, message) => {
  await expect(benchPeers(given)).rejects.toThrow(message);
});

/** Takes and delivers as Svix is documented to, at once and once. */
async function startSvix(): Promise<{ url: string; calls: string[] }> {
  const calls: string[] = [];
  const endpoints = new Map<string, string[]>();
  let appCount = 0;
  const answerTo = async (call: IncomingMessage): Promise<object> => {
    const body = JSON.parse((await text(call)) || '{}') as Record<string, unknown>;
    expect(call.headers.authorization).toBe('Bearer token');
    const [, app = '', kind] =
      /^\/api\/v1\/app\/(?:([^/]+)\/)?(?:(endpoint|msg)\/)?$/.exec(call.url ?? '') ?? [];
    if (kind === 'msg') {
      for (const url of endpoints.get(app) ?? [])
        void fetch(url, { method: 'POST', body: JSON.stringify(body['payload']) }).catch(() => {});
      return {};
    }
    calls.push(`${call.method} ${kind ?? 'app'}`);
    if (kind === 'endpoint') endpoints.get(app)?.push(String(body['url']));
    else if (call.method === 'POST') endpoints.set(`app-${++appCount}`, []);
    return { id: `app-${appCount}` };
  };
  const server: Server = createServer((call, answer) => {
    answerTo(call).then(
      (body) => answer.end(JSON.stringify(body)),
      (error: Error) => answer.writeHead(500).end(error.message),
    );
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, calls };
}

test('one that delivers everything has no loss, and the registered receiver is removed', async () => {
  const { url, calls } = await startSvix();
  const port = String(await findFreePort());
  const given = ['--svix', `${url}/`, '--svix-token', 'token', '--port', port];
  const report = await benchPeers([
    ...given,
    '--rates',
    '50',
    '--seconds',
    '0.4',
    '--connections',
    '4',
  ]);
  expect(report.latencyMs['svix p50 50/s']).toBeGreaterThan(0);
  for (const what of ['flat out', 'twenty', 'one of 20 hangs']) {
    expect(report.details?.[`svix ${what}`]).toMatchObject({ lostCount: 0, refusedCount: 0 });
    expect(report.rates[`svix ${what}, delivered`]).toBeGreaterThan(0);
  }
  expect(calls.filter((call) => call === 'DELETE app')).toHaveLength(3);
  expect(calls.filter((call) => call === 'POST endpoint')).toHaveLength(1 + 20 + 20);
});
