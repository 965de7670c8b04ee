/** The banner's lines, pasted into a shell as a newcomer does it: all at once, into a terminal that was just opened. */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished } from 'vitest';

/**
 * For files that are programs: `/dev/shm`, in which `vitest.config.ts` keeps data, is mounted `noexec` in many
 * containers.
 */
export const programsFolder = (): string => (tmpdir() === '/dev/shm' ? '/tmp' : tmpdir());

export const linesToPaste = (banner: string): string[] =>
  banner.split('\n').filter((line) => /^ {2}(\S.* )?curl /.test(line));

/** With `RECEIVER_PORT` the receiver is there and not on the port that the banner names, which may be taken. */
export async function openShell(environment: Record<string, string | undefined>) {
  const programs = await mkdtemp(join(programsFolder(), 'sluice-test-shell-'));
  // Machines without curl can test too.
  if (spawnSync('curl', ['--version']).status !== 0) {
    await copyFile(new URL('curl.mjs', import.meta.url), join(programs, 'curl'));
    await chmod(join(programs, 'curl'), 0o755);
  }
  const child = spawn('/bin/sh', {
    env: { ...environment, PATH: `${programs}:${environment['PATH'] ?? process.env['PATH']}` },
    cwd: '/',
    // Ended as a whole, with its background work.
    detached: true,
  });
  const end = (): void => {
    try {
      process.kill(-(child.pid as number), 'SIGTERM');
    } catch {
      // All of it has ended.
    }
  };
  onTestFinished(async () => {
    end();
    await rm(programs, { recursive: true, force: true });
  });
  let output = '';
  const words = child.stderr.on('data', (chunk: Buffer) => void (output += chunk.toString()));
  child.stdout.on('data', (chunk: Buffer) => void (output += chunk.toString()));
  const port = environment['RECEIVER_PORT'];
  return {
    paste(lines: readonly string[]) {
      const text = `${lines.join('\n')}\n`;
      child.stdin.write(
        port === undefined
          ? text
          : text.replaceAll(':9000', `:${port}`).replace(' listen ', ` listen --port ${port} `),
      );
    },
    async says(text: string): Promise<string> {
      await expect.poll(() => output, { timeout: 150_000 }).toContain(text);
      return output;
    },
    async close() {
      const closed = once(child, 'close');
      end();
      await closed;
      words.removeAllListeners();
    },
  };
}
