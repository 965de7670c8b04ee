/**
 * The supervisor and a service that may wait for Postgres or Redis.
 *
 * The service is a process of its own.
 */
import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { findFreePort } from '@sluice/platform/testing/free-port';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startService } from '../src/service-process.ts';

const WAIT = { timeout: 30_000, interval: 20 };
const LINE_INTERVAL_MS = 300;
/** Answers 503 until the file is there, and ends with 3 if the file contains that. */
const PROGRAM = `
  const { existsSync, readFileSync } = require('node:fs');
  const [port, file] = process.argv.slice(-2);
  console.log(JSON.stringify({ level: 40, msg: 'Redis is away' }));
  require('node:http').createServer((_, answer) => {
    if (existsSync(file) && readFileSync(file, 'utf8') === 'end') process.exit(3);
    answer.writeHead(existsSync(file) ? 200 : 503).end();
  }).listen(Number(port), '127.0.0.1');`;

/** Prints the port of its first environment; answers once a message has a port. */
const PROGRAM_TOLD_LATER = `
  console.log('started with ' + (process.env.PORT ?? 'nothing'));
  process.once('message', ({ PORT }) => {
    require('node:http').createServer((call, answer) => {
      if (call.url === '/end') process.exit(3);
      answer.end();
    }).listen(Number(PORT), '127.0.0.1');
  });`;

async function start() {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-test-service-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const file = join(directory, 'state');
  const port = await findFreePort();
  const notes: string[] = [];
  const service = startService({
    name: 'intake',
    execPath: process.execPath,
    args: ['-e', PROGRAM, '--', String(port), file],
    environment: {},
    readyUrls: [`http://127.0.0.1:${port}/readyz`],
    stopDeadlineMs: 5_000,
    waitLineIntervalMs: LINE_INTERVAL_MS,
    onLine: () => undefined,
    onNote: (line) => notes.push(line),
    onStarted: () => undefined,
  });
  onTestFinished(() => service.stop());
  /** In one step: the program reads it at any time, and an empty file means ready. */
  const become = async (state: string): Promise<void> => {
    await writeFile(`${file}.new`, state);
    await rename(`${file}.new`, file);
  };
  return { service, notes, become };
}

test('a service that is not ready is waited for as long as it lives, with a line from time to time', async () => {
  const { service, notes, become } = await start();
  // The first notes may come before the program has written its line.
  await vi.waitFor(() => {
    const reasoned = notes.filter((note) =>
      /^intake is not ready yet: .*Redis is away\. This command waits for it$/.test(note),
    );
    expect(reasoned.length).toBeGreaterThanOrEqual(2);
  }, WAIT);
  await become('ready');
  await expect(service.ready).resolves.toBeUndefined();
});

test('a service that ends before it was ready has failed to start, however long it was waited for', async () => {
  const { service, notes, become } = await start();
  // By then the program has written its line.
  await vi.waitFor(() => expect(notes.at(-1)).toContain('Redis is away'), WAIT);
  await become('end');
  await expect(service.ready).rejects.toThrow('intake did not start (exit 3): Redis is away');
});

test('a warning is not the reason of a death by a signal', async () => {
  const { service, notes, become } = await start();
  await become('ready');
  await service.ready;
  process.kill(service.pid() as number, 'SIGKILL');
  await vi.waitFor(
    () => expect(notes).toContain('intake died (SIGKILL); starting it again in 0.05 s'),
    WAIT,
  );
});

test('a service that gets its environment later gets it at each start', async () => {
  const port = await findFreePort();
  const lines: string[] = [];
  const told = Promise.withResolvers<Record<string, string>>();
  const service = startService({
    name: 'all',
    execPath: process.execPath,
    args: ['-e', PROGRAM_TOLD_LATER],
    environment: {},
    laterEnvironment: told.promise,
    readyUrls: [`http://127.0.0.1:${port}/readyz`],
    stopDeadlineMs: 5_000,
    onLine: (line) => lines.push(line),
    onNote: (line) => lines.push(line),
    onStarted: () => undefined,
  });
  onTestFinished(() => service.stop());
  await vi.waitFor(() => expect(lines).toEqual(['started with nothing']), WAIT);
  told.resolve({ PORT: String(port) });
  await service.ready;
  await fetch(`http://127.0.0.1:${port}/end`).catch(() => undefined);
  await vi.waitFor(() => expect(lines.at(-1)).toBe('all is back'), WAIT);
});

test('a service that never gets its environment can be stopped', async () => {
  const lines: string[] = [];
  const service = startService({
    name: 'all',
    execPath: process.execPath,
    args: ['-e', PROGRAM_TOLD_LATER],
    environment: {},
    laterEnvironment: Promise.reject(new Error('Postgres does not start')),
    readyUrls: ['http://127.0.0.1:1/readyz'],
    stopDeadlineMs: 30_000,
    onLine: (line) => lines.push(line),
    onNote: (line) => lines.push(line),
    onStarted: () => undefined,
  });
  await vi.waitFor(() => expect(lines).toEqual(['started with nothing']), WAIT);
  await service.stop();
  expect(service.pid()).toBeUndefined();
  expect(lines).toEqual(['started with nothing']);
});
