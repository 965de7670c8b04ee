import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { sampleCalls } from '../src/live/sample-calls.ts';
import { send } from '../src/live/send.ts';
import { collectingTerminal } from './collecting-terminal.ts';

test('calls that wait for their turn are not sent or counted after Ctrl-C', async () => {
  let requests = 0;
  const intake = createServer((_, response) => {
    requests++;
    response.end();
  }).listen(0, '127.0.0.1');
  onTestFinished(() => void intake.close());
  await once(intake, 'listening');
  const url = `http://127.0.0.1:${(intake.address() as AddressInfo).port}`;
  const stopping = new AbortController();
  const { signal } = stopping;
  const result = await send(
    {
      calls: sampleCalls(1, 10, 'run'),
      terminal: collectingTerminal(),
      now: () => performance.now(),
      pause: (durationMs) => {
        stopping.abort();
        return sleep(durationMs, undefined, { signal }).catch(() => undefined);
      },
      signal,
    },
    { url, writeKey: 'key', count: 100, rate: 0.1, batchSize: 1, connections: 4 },
  );
  expect(result).toMatchObject({ sent: 1, accepted: 1, failures: {} });
  expect(requests).toBe(1);
});

test('an intake that does not answer holds up neither the end after Ctrl-C nor the others', async () => {
  const stopping = new AbortController();
  const intake = createServer(() => setImmediate(() => stopping.abort())).listen(0, '127.0.0.1');
  onTestFinished(() => void intake.close());
  await once(intake, 'listening');
  const url = `http://127.0.0.1:${(intake.address() as AddressInfo).port}`;
  const options = { url, writeKey: 'key', count: 100, rate: 0, batchSize: 1, connections: 1 };
  const deps = {
    calls: sampleCalls(1, 10, 'run'),
    terminal: collectingTerminal(),
    now: () => performance.now(),
    pause: () => Promise.resolve(),
  };
  expect(
    await send({ ...deps, signal: stopping.signal }, options, {
      answerMs: 60_000,
      lastAnswersMs: 5,
    }),
  ).toMatchObject({ sent: 1, accepted: 0, failures: { 'not answered': 1 } });
  const { signal } = new AbortController();
  expect(
    await send({ ...deps, signal }, { ...options, count: 2 }, { answerMs: 50, lastAnswersMs: 0 }),
  ).toMatchObject({ sent: 2, accepted: 0, failures: { 'not answered': 2 } });
});

test('another process of Sluice in place of intake is reported with --intake-url', async () => {
  const api = createServer((_, response) => response.writeHead(404).end()).listen(0, '127.0.0.1');
  onTestFinished(() => void api.close());
  await once(api, 'listening');
  const url = `http://127.0.0.1:${(api.address() as AddressInfo).port}`;
  const deps = {
    calls: sampleCalls(1, 10, 'run'),
    terminal: collectingTerminal(),
    now: () => performance.now(),
    pause: () => Promise.resolve(),
    signal: new AbortController().signal,
  };
  const options = { url, writeKey: 'key', count: 3, rate: 0, batchSize: 1, connections: 1 };
  await expect(send(deps, options)).rejects.toMatchObject({
    code: 'COMMAND_NOT_REACHED',
    message: expect.stringMatching(/is not intake \(404\); is --intake-url \(SLUICE_INTAKE_URL\)/),
  });
});
