/** A command whose reader or window is gone, against a fake API. */
import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished, test, vi } from 'vitest';

const MAIN = fileURLToPath(new URL('../src/main.ts', import.meta.url));
// Starts a process, which takes seconds on a busy machine.
vi.setConfig({ testTimeout: 120_000 });
const WAIT = { timeout: 100_000 };
/** Longer than the time within which two signals are one wish. */
const LATER_MS = 700;

/** @param onCall - answers `METHOD /path`. */
async function run(
  words: readonly string[],
  onCall: (call: string, response: ServerResponse) => void,
) {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => onCall(`${request.method} ${request.url}`, response));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const child: ChildProcessWithoutNullStreams = spawn(
    process.execPath,
    ['--disable-warning=ExperimentalWarning', MAIN, ...words],
    {
      env: {
        PATH: process.env['PATH'],
        SLUICE_DIRECTORY: '/nowhere',
        SLUICE_API_URL: `http://127.0.0.1:${port}`,
        SLUICE_KEY: 'key',
      },
    },
  );
  onTestFinished(() => {
    child.kill('SIGKILL');
    server.closeAllConnections();
    server.close();
  });
  const program = { child, errors: '', ended: once(child, 'close').then(([code]) => code) };
  child.stderr.setEncoding('utf8').on('data', (text: string) => (program.errors += text));
  return program;
}

const send = (response: ServerResponse, body: object, status = 200): void =>
  void response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));

/** `sluice listen` with a webhook of its own. @param onDelete - answers its deletion. */
async function listen(onDelete: (response: ServerResponse) => void) {
  const program = await run(['listen', '--forward-to', 'http://127.0.0.1:9'], (call, response) => {
    if (call.startsWith('DELETE')) onDelete(response);
    else send(response, call.endsWith('/secrets') ? { secret: 'c2VjcmV0' } : { id: 1 });
  });
  const url = await vi.waitFor(() => {
    const [, found] = /listening on ([^\s;]+)/.exec(program.errors) ?? [];
    expect(found).toBeDefined();
    return found as string;
  }, WAIT);
  return { ...program, errors: () => program.errors, url };
}

test('a closed window that sends its signal again later leaves time to delete the webhook', async () => {
  const deletion = Promise.withResolvers<ServerResponse>();
  const { child, ended } = await listen(deletion.resolve);
  child.kill('SIGHUP');
  const response = await deletion.promise;
  await sleep(LATER_MS);
  child.kill('SIGHUP');
  await sleep(LATER_MS);
  expect(child.exitCode).toBe(null);
  expect(child.signalCode).toBe(null);
  send(response, {});
  await ended;
});

test('a webhook that cannot be deleted after the reader is gone is reported, and the exit code is not 0', async () => {
  const { child, ended, errors, url } = await listen((response) =>
    send(response, { code: 'internal', message: 'the database is away' }, 500),
  );
  child.stdout.destroy();
  await fetch(url, { method: 'POST', body: '{}' });
  expect(await ended).toBe(1);
  expect(errors()).toContain('the database is away');
});
