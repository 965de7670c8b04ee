/**
 * Memory of `npm start`: its services, after some calls. Their own memory alone, since shared memory depends on other
 * processes.
 */
import { chmod, mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startStandaloneUnderTest } from './standalone-under-test.ts';

const CALL_COUNT = 2_000;
const MEBIBYTE = 1_024 * 1_024;
/** 114; in a process for each service 254, and 337 with the heaps that Node and glibc have by themselves. */
const MEMORY_BYTES_MAX = 150 * MEBIBYTE;
/** With garbage that is not collected yet: a third more, and still well below the 254 of a process for each service. */
const GARBAGE_BYTES_MAX = 200 * MEBIBYTE;
const GARBAGE_WAIT = { timeout: 90_000, interval: 250 };

test('all services together stay small under load', { timeout: 360_000 }, async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-small-heap-'));
  await chmod(directory, 0o711);
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const running = await startStandaloneUnderTest(directory);
  for (let sent = 0; sent < CALL_COUNT; sent += 50) {
    const answers = await Promise.all(
      Array.from({ length: 50 }, (_, index) =>
        running.call('/v1/track', { userId: `p${index}`, event: 'seen', properties: { sent } }),
      ),
    );
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([200]));
    await Promise.all(answers.map((answer) => answer.arrayBuffer()));
  }
  const held = JSON.parse(await readFile(join(directory, 'held-by.json'), 'utf8')) as {
    readonly services: readonly { readonly pid: number }[];
  };
  const pids = held.services.map(({ pid }) => pid);
  expect(pids).toHaveLength(1);
  const pid = pids[0] ?? 0;
  expect(await anonymousBytesOf(pid)).toBeLessThan(GARBAGE_BYTES_MAX);
  // Threads of V8 collect garbage beside it, late on a busy machine.
  await vi.waitFor(
    async () => expect(await anonymousBytesOf(pid)).toBeLessThan(MEMORY_BYTES_MAX),
    GARBAGE_WAIT,
  );
  await running.stop();
});

async function anonymousBytesOf(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(/RssAnon:\s+(\d+) kB/.exec(status)?.[1]) * 1_024;
}
