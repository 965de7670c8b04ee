/** Commands that start at once on a fresh clone. They install one after another. */
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, onTestFinished, test } from 'vitest';

const LOCK = new URL('../install-lock.mjs', import.meta.url).href;

/** Notes when it has the lock and when it gives it back. `stays`: it never does. */
const program = (lock: string, log: string, does: 'ends' | 'stays') => `
import { appendFileSync } from 'node:fs';
import { whileLocked } from ${JSON.stringify(LOCK)};
await whileLocked(${JSON.stringify(lock)}, () => {}, async () => {
  appendFileSync(${JSON.stringify(log)}, 'begin\\n');
  await new Promise((resolve) => setTimeout(resolve, ${does === 'ends' ? 20 : 1e6}));
  appendFileSync(${JSON.stringify(log)}, 'end\\n');
});`;

test('one at a time, also after one was killed while it held the lock', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-test-lock-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const [lock, log] = [join(folder, 'lock'), join(folder, 'log')];
  await writeFile(log, '');
  const start = (does: 'ends' | 'stays') =>
    [process.execPath, ['--input-type=module', '--eval', program(lock, log, does)]] as const;

  const killed = spawn(...start('stays'));
  // Node starts, which takes seconds on a busy machine.
  await expect.poll(() => readFile(log, 'utf8'), { timeout: 30_000 }).toBe('begin\n');
  killed.kill('SIGKILL');
  await once(killed, 'close');

  const run = promisify(execFile);
  await Promise.all(Array.from({ length: 4 }, () => run(...start('ends'))));
  expect(await readFile(log, 'utf8')).toBe(`begin\n${'begin\nend\n'.repeat(4)}`);
  await expect(readFile(lock)).rejects.toThrow('ENOENT');
});
