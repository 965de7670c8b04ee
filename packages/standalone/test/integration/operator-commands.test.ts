/**
 * Lines of the command-line page, each typed beside an `npm start`.
 *
 * A command without an end of its own is interrupted after its first output, as by Ctrl-C. Names in capitals stand for
 * values of the test.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmod, mkdir, mkdtemp, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { findFreePort } from '@sluice/platform/testing/free-port';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { readPage, ROOT, stepsOf } from '../command-pages.ts';
import { programsFolder } from './pasted-lines.ts';
import { startStandaloneUnderTest } from './standalone-under-test.ts';

const [block] = stepsOf('docs/operations/command-line.md');
const lines = block!.commands
  .split('\n')
  .filter((line) => line.startsWith('./sluice '))
  .map((line) => {
    const [command = '', comment = ''] = line.split(/\s+#\s/);
    return { command, comment };
  });
/** Without an end, or without an end within ten seconds. */
const GOES_ON = /^\.\/sluice (?:status --watch|tail|listen|send)\b/;
/** Exit code of a command that Ctrl-C has ended early. */
const INTERRUPTED = 130;
const TEST_TIMEOUT_MS = 240_000;

let standalone: Awaited<ReturnType<typeof startStandaloneUnderTest>>;
let endStandalone: () => Promise<void>;
let directory: string;
let data: string;
let environment: Record<string, string | undefined>;
const running = new Set<ChildProcess>();
beforeAll(async () => {
  directory = await mkdtemp(join(programsFolder(), 'sluice-test-operator-'));
  data = await mkdtemp(join(tmpdir(), 'sluice-test-operator-data-'));
  // Postgres' account must pass through.
  await chmod(data, 0o711);
  standalone = await startStandaloneUnderTest(data, ROOT, (end) => void (endStandalone = end));
  await symlink(join(ROOT, 'sluice'), join(directory, 'sluice'));
  await writeFile(
    join(directory, 'orders.csv'),
    '_svc_name,_svc_customer_id,total\norder_placed,operator@example.com,42\n',
  );
  // In place of the machine's browser.
  const programs = join(directory, 'programs');
  await mkdir(programs);
  for (const opener of ['xdg-open', 'open'])
    await writeFile(join(programs, opener), `#!/bin/sh\necho "$1" > '${directory}/opened'\n`, {
      mode: 0o755,
    });
  environment = {
    PATH: `${programs}:${process.env['PATH']}`,
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
    HOME: directory,
    SLUICE_DIRECTORY: data,
  };
  await fillWorkspace();
});
afterAll(async () => {
  for (const child of running) child.kill('SIGKILL');
  await endStandalone();
  for (const path of [await realpath(join(data, 'postgres')).catch(() => data), data, directory])
    await rm(path, { recursive: true, force: true });
});

/** A person with an event, and webhook 1. */
async function fillWorkspace(): Promise<void> {
  const traits = { email: 'operator@example.com' };
  const person = await standalone.call('/v1/identify', { userId: 'operator', traits });
  const event = { userId: 'operator', event: 'order_placed', messageId: 'of-the-operator' };
  const track = await standalone.call('/v1/track', event);
  expect([person.status, track.status]).toEqual([200, 200]);
  const made = await run(
    './sluice webhooks create Listener http://127.0.0.1:9/hook --event customer_subscribed',
  );
  expect(made.output).toContain('id: 1\n');
  // The worker has applied both calls.
  const headers = { authorization: `Bearer ${DEMO.appKey}` };
  await vi.waitFor(
    async () => {
      const activities = `${standalone.apiUrl}/v1/customers/operator/activities`;
      expect(await (await fetch(activities, { headers })).text()).toContain('order_placed');
    },
    { timeout: 60_000, interval: 100 },
  );
}

/** A line as typed; one that goes on gets the signal of Ctrl-C once it has printed something. */
async function run(command: string): Promise<{ output: string; code: number | null }> {
  const child = spawn('bash', ['-c', `exec ${command}`], { cwd: directory, env: environment });
  running.add(child.once('close', () => running.delete(child)));
  let output = '';
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (text: string) => {
      if (output === '' && GOES_ON.test(command)) child.kill('SIGINT');
      output += text;
    });
  const [code] = (await once(child, 'close')) as [number | null];
  return { output, code };
}

/** The line with values of this test. */
async function filled(command: string): Promise<string> {
  const port = await findFreePort();
  return command
    .replace('MESSAGE_ID', 'of-the-operator')
    .replace('ADA', 'operator')
    .replace('EMAIL', 'jo@example.com')
    .replace('--account ID', '--account 1')
    .replace('127.0.0.1:3000', `127.0.0.1:${port}`)
    .replace('listen --secret', `listen --port ${port} --secret`);
}

test('the page has lines, and its text names commands that there are', () => {
  expect(lines.length).toBeGreaterThan(10);
  const reference = readPage('docs/reference/command-line.md');
  const isCommand = (words: string): boolean => reference.includes(`\n## sluice ${words}\n`);
  for (const { command, comment } of lines) {
    const [, group = ''] = /^\.\/sluice (\S+)/.exec(command) ?? [];
    const others = /also (.*)$/.exec(comment)?.[1]?.split(/, (?:and )?/) ?? [];
    for (const other of others)
      expect(isCommand(`${group} ${other}`) || isCommand(other), `${command}: ${other}`).toBe(true);
  }
  const text = readPage('docs/operations/command-line.md');
  const [, listed = ''] = /^(.*?) read Postgres directly/m.exec(text) ?? [];
  const named = [...listed.matchAll(/`([\w-]+)`/g)].map(([, word = '']) => word);
  expect(named.length).toBeGreaterThan(3);
  expect(named.filter((word) => !isCommand(word))).toEqual([]);
});

test.concurrent.for(lines)(
  '$command',
  { timeout: TEST_TIMEOUT_MS },
  async ({ command }, { expect: expectHere }) => {
    const type = async (): Promise<void> => {
      const { output, code } = await run(await filled(command));
      expectHere(output, command).not.toBe('');
      expectHere(GOES_ON.test(command) ? [0, INTERRUPTED] : [0], output).toContain(code);
    };
    // A process that does not answer the status within five seconds is not ready.
    if (command.startsWith('./sluice status')) await vi.waitFor(type, 60_000);
    else await type();
    if (command.includes(' open '))
      // The command does not wait for the browser.
      await vi.waitFor(
        () =>
          expectHere(readFileSync(join(directory, 'opened'), 'utf8')).toMatch(/\/webhooks\/1\n$/),
        { timeout: 60_000, interval: 50 },
      );
  },
);
