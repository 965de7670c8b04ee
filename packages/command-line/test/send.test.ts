import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFinished, test } from 'vitest';
import { sampleCalls } from '../src/sample-calls.ts';
import { send } from '../src/send.ts';
import { collectingTerminal } from './collecting-terminal.ts';

test('what waits for its turn is not sent once Ctrl-C is pressed, nor counted as sent', async () => {
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
