/** `sluice …` as operators type it: words, exit codes, and errors with their remedies. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { startFleet, WAIT, type Fleet } from '../fleet-under-test.ts';
import { PARKED, runProgram, runSluice, SLUICE, sluiceSettings } from '../program-under-test.ts';

let fleet: Fleet;
beforeAll(async () => void (fleet = await startFleet()));
afterAll(() => fleet.close());

const sluice = (...words: string[]) => runSluice(fleet, words);

test('--help lists the commands, and a wrong command gets a suggestion', async () => {
  expect((await sluice('--help')).output).toMatch(/status.*webhooks.*events.*tail.*send.*listen/s);
  const wrong = await sluice('stauts');
  expect(wrong.exitCode).toBe(2);
  expect(wrong.errors).toContain('Did you mean status?');
  expect(wrong.errors.trimEnd().split('\n')).toHaveLength(2);
  expect((await sluice('--version')).output).toMatch(/^\d+\.\d+\.\d+\n$/);
});

test('status lists the running processes and exits with 1 if one does not run', async () => {
  // A process listens before it is ready, and counts as absent if it does not answer within five seconds.
  const all = await vi.waitFor(async () => {
    const found = await sluice('status', '--worker-url', fleet.worker.url);
    expect(found).toMatchObject({ exitCode: 0 });
    return found;
  }, WAIT);
  expect(all.output.match(/^http.* (?:s|min) +ready$/gm)).toHaveLength(3);
  expect(all.output).toMatch(/^http\S+ +worker +\d+\.\d+\.\d+ /m);
  const one = await sluice('--json', 'status', '--worker-url', 'http://127.0.0.1:1');
  expect(one.exitCode).toBe(1);
  expect(JSON.parse(one.output)).toMatchObject({ ready: false });
});

// 1 would mean that the ledger was changed, or that secrets are lost.
test.each(['verify --jsn', '--api-url x verify', 'secrets lost --replace', 'secrets lost x y'])(
  'wrong words end `sluice %s` with 2, because 1 is for its findings',
  async (words) => {
    const program = runProgram(SLUICE, words.split(' '), {});
    expect(await program.ended).toBe(2);
    expect(program.errors).toMatch(/^error: /);
  },
);

test.each([
  ['verify.ts', '--jsn'],
  ['migrate.ts', 'now'],
  ['secrets.ts', 'lost', '--replace'],
  ['purchases.ts', 'list', '--all'],
])('and so do they end scripts/%s %s, with its usage', async (file, ...words) => {
  const program = runProgram(join(PARKED, '..', file), words, {});
  expect(await program.ended).toBe(2);
  expect(program.errors).toMatch(/^(?!.*\n +at ).*\nusage: sluice /s);
});

test('a write key that is not in force ends send with a hint at --write-key', async () => {
  const { exitCode, errors } = await sluice('send', '--count', '1', '--write-key', 'nobody');
  expect(exitCode).toBe(4);
  expect(errors).toContain('does not know the write key; is --write-key (SLUICE_WRITE_KEY) right?');
});

test('a result that cannot be written is an error with exit code 1, because a secret is shown once', async () => {
  const full = openSync('/dev/full', 'w');
  onTestFinished(() => closeSync(full));
  const words = ['--json', 'keys', 'make', 'app', 'Nowhere', '--workspace', '1'];
  const child = spawn(process.execPath, [SLUICE, ...words], {
    env: {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      ...sluiceSettings(fleet),
    },
    stdio: ['ignore', full, 'pipe'],
  });
  onTestFinished(() => void child.kill('SIGKILL'));
  let errors = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => (errors += text));
  const [exitCode] = (await once(child, 'close')) as [number];
  expect(errors).toContain('the output could not be written (ENOSPC');
  expect(exitCode).toBe(1);
});

test('Ctrl-C ends a command that waits for an API that hangs, with exit code 130', async () => {
  const hanging = createServer().listen(0, '127.0.0.1');
  onTestFinished(() => void hanging.close());
  await once(hanging, 'listening');
  const asked = once(hanging, 'connection') as Promise<[Socket]>;
  const url = `http://127.0.0.1:${(hanging.address() as AddressInfo).port}`;
  const program = runProgram(SLUICE, ['webhooks', 'list'], { SLUICE_API_URL: url });
  const [socket] = await asked;
  socket.on('error', () => {});
  program.child.kill('SIGINT');
  expect(await program.ended).toBe(130);
  expect(program.errors).toBe('sluice: stopped before the API had answered\n');
});

test('a failed command prints an error that names the cause or the option to correct', async () => {
  const unknown = await sluice('webhooks', 'show', '999999');
  expect(unknown).toMatchObject({ exitCode: 1, output: '' });
  expect(unknown.errors).toMatch(/^sluice: .*not found/);
  const wrongKey = await sluice('--key', 'nonsense', 'webhooks', 'list');
  expect(wrongKey.errors).toContain('--key (SLUICE_KEY)');
  const nobody = await sluice('--api-url', 'http://127.0.0.1:1', 'webhooks', 'list');
  expect(nobody.errors).toContain('--api-url (SLUICE_API_URL)');
});

test.each(['migrate', 'verify', 'purchases list', 'secrets lost'])(
  '%s names the address that it tried for Postgres, and not the password',
  async (words) => {
    const program = runProgram(SLUICE, words.split(' '), {
      DATABASE_URL: 'postgres://sluice:hunter2@127.0.0.1:1/sluice',
      SEALING_KEYS: `1:${Buffer.alloc(32).toString('base64')}`,
    });
    expect(await program.ended).toBe(2);
    expect(program.errors).toMatch(
      /^Postgres does not answer at the address of DATABASE_URL \(.*127\.0\.0\.1:1\); check.*\n$/,
    );
    expect(program.errors).not.toContain('hunter2');
    expect(program.output).toBe('');
  },
);
