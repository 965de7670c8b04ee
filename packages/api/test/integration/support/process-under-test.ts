/** The real API process, as an operator starts it. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import type { TestDatabase } from '@sluice/database/testing/testing';
import {
  nodeFlagsOf,
  queuesOnCitus,
  TEST_SEALING_KEYS,
} from '@sluice/platform/testing/service-under-test';
import { afterEach } from 'vitest';

export const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url));
const started: ChildProcess[] = [];
afterEach(async () => {
  for (const child of started.splice(0)) {
    if (child.exitCode !== null || child.signalCode !== null) continue;
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
});

interface LogLine {
  readonly msg: string;
  readonly host: string;
  readonly port: number;
  readonly mail?: string;
}

/** Starts one; it is killed after the test, if it runs still. */
export function startProcess(
  testDatabase: Pick<TestDatabase, 'url'>,
  settings: Record<string, string> = {},
) {
  const child = spawn(process.execPath, [...nodeFlagsOf(MAIN), MAIN], {
    env: {
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      DATABASE_URL: testDatabase.url,
      API_PORT: '0',
      SEALING_KEYS: TEST_SEALING_KEYS,
      ...queuesOnCitus(testDatabase.url),
      ...settings,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  started.push(child);
  let stderr = '';
  const lines: LogLine[] = [];
  child.stderr.setEncoding('utf8').on('data', (chunk: string) => (stderr += chunk));
  return {
    child,
    /** Its log lines until it was ready. */
    lines,
    /** Resolves to the address once the log has it. */
    async ready(): Promise<string> {
      for await (const line of createInterface({ input: child.stdout })) {
        const entry = JSON.parse(line) as LogLine;
        lines.push(entry);
        if (entry.msg === 'the API is listening') return `http://${entry.host}:${entry.port}`;
      }
      throw new Error(`it ended before it was ready: ${stderr}`);
    },
    /** Resolves to the exit code. */
    async ended(): Promise<number | null> {
      const [code] = (await once(child, 'exit')) as [number | null];
      return code;
    },
  };
}
