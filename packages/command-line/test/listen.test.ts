/** `sluice listen --forward-to`: the forwarded request, and the answer to the sender. */
import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { listen } from '../src/live/listen.ts';
import { collectingTerminal } from './collecting-terminal.ts';

const SECRET = 'secret';
const BODY = '{"object_type":"event","metric":"paid","data":{"n":1}}';

function headersOf(body: string): Record<string, string> {
  const timestamp = String(Math.floor(Date.now() / 1_000));
  const signature = createHmac('sha256', SECRET).update(`v0:${timestamp}:${body}`).digest('hex');
  return {
    'content-type': 'application/json',
    'x-svc-timestamp': timestamp,
    'x-svc-signature': signature,
  };
}

async function startProgram(status: number) {
  const received: { headers: IncomingMessage['headers']; body: string }[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => (body += text));
    request.on('end', () => {
      received.push({ headers: request.headers, body });
      response.writeHead(status).end('what it says');
    });
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return { received, url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` };
}

test('a genuine delivery is passed on byte for byte, and the sender gets the status of the answer', async () => {
  const program = await startProgram(418);
  const terminal = collectingTerminal('table');
  const listener = await listen(terminal, {
    ...{ port: 0, status: 200, secret: Promise.resolve(SECRET), forwardTo: program.url },
    isPretty: true,
  });
  onTestFinished(() => listener.close());
  const headers = headersOf(BODY);
  const answer = await fetch(listener.url, { method: 'POST', headers, body: BODY });
  expect(answer.status).toBe(418);
  expect(program.received).toHaveLength(1);
  expect(program.received[0]).toMatchObject({ body: BODY, headers });
  expect(terminal.lines[0]).toMatch(/ 418 genuine event paid \d+ ms$/);
  expect(terminal.lines.slice(1, 4)).toEqual([
    '  {',
    '    "object_type": "event",',
    '    "metric": "paid",',
  ]);
});

test('a forged delivery is refused with 401, and a delivery for a program that is away is answered with 502', async () => {
  const program = await startProgram(200);
  const start = async (forwardTo: string) => {
    const terminal = collectingTerminal();
    const secret = Promise.resolve(SECRET);
    const listener = await listen(terminal, { port: 0, status: 200, secret, forwardTo });
    onTestFinished(() => listener.close());
    return { url: listener.url, terminal };
  };
  const { url } = await start(program.url);
  const forged = { ...headersOf(BODY), 'x-svc-signature': '0'.repeat(64) };
  expect((await fetch(url, { method: 'POST', headers: forged, body: BODY })).status).toBe(401);
  expect(program.received).toEqual([]);
  const away = await start('http://127.0.0.1:1/hook');
  const answer = await fetch(away.url, { method: 'POST', headers: headersOf(BODY), body: BODY });
  expect(answer.status).toBe(502);
  expect(JSON.parse(away.terminal.lines[0] ?? '')).toMatchObject({
    ...{ status: 502, signature: 'genuine', type: 'event paid' },
    duration_ms: expect.any(Number),
  });
});
