/** Ctrl-C during a wait: the exit code shows that the work has not ended. */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createProgram } from '../src/program.ts';
import { collectingTerminal } from './collecting-terminal.ts';

const HEAD = { sequence: 7, attempts: 4 };
/** The work is never over. */
const ANSWERS: Readonly<Record<string, object>> = {
  'GET /v1/reporting_webhooks/2/state': { state: 'failing', head: HEAD, next_probe_at: null },
  'POST /v1/reporting_webhooks/2/probe': { result: 'due' },
  'POST /v1/reporting_webhooks/2/replays': { replay: { id: 3 } },
  'GET /v1/reporting_webhooks/2/replays': { replays: [{ id: 3, state: 'running' }] },
  'GET /v1/imports/4': { import: { id: 4, state: 'importing', percent: 1, rows_read: 1 } },
};

async function startApi(): Promise<string> {
  const server = createServer((request, response) => {
    response.end(JSON.stringify(ANSWERS[`${request.method} ${request.url}`]));
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

test.each([
  'webhooks probe 2',
  'webhooks replay 2 --since 2026-11-01T00:00:00Z --wait',
  'imports show 4 --watch',
])('%s that Ctrl-C ends is no success', async (words) => {
  const stopping = new AbortController();
  const setInterrupted = vi.fn<() => void>();
  const setExitCode = vi.fn<(code: number) => void>();
  const terminal = { ...collectingTerminal(), progress: () => stopping.abort() };
  const program = createProgram({
    ...{ version: '1', runningStart: undefined, profilesFile: '', hostName: () => '' },
    ...{ readProfiles: () => ({}), input: process.stdin, runId: () => '1' },
    terminal: () => terminal,
    signal: stopping.signal,
    openBrowser: () => Promise.resolve(),
    runScript: () => Promise.resolve(0),
    ...{ setExitCode, setInterrupted },
  });
  const url = await startApi();
  // The call after the signal fails, as each does that the user has stopped.
  await program
    .parseAsync([...words.split(' '), '--api-url', url], { from: 'user' })
    .catch((error: unknown) => expect(error).toMatchObject({ code: 'COMMAND_FAILED' }));
  const isInterrupted = setInterrupted.mock.calls.length > 0;
  expect({ isInterrupted, codes: setExitCode.mock.calls }).toEqual({
    isInterrupted: true,
    codes: [],
  });
});
