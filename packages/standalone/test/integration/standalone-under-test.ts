/**
 * For tests: `npm start` as the process that it is, on ports of its own, with its data in a folder that the test
 * chooses.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { findFreePort } from '@sluice/platform/testing/free-port';
import { nodeFlagsOf } from '@sluice/platform/testing/service-under-test';
import { expect, onTestFinished } from 'vitest';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));

/**
 * @param root - the checkout whose version it is.
 * @param atEnd - gets the function that ends it. If absent, it ends with the test.
 * @param more - settings.
 */
export async function startStandaloneUnderTest(
  directory: string,
  root = ROOT,
  atEnd: (end: () => Promise<void>) => void = onTestFinished,
  more: Readonly<Record<string, string>> = {},
) {
  const [intake, api, worker, simulator] = await Promise.all(
    Array.from({ length: 4 }, () => findFreePort()),
  );
  const main = `${root}packages/standalone/src/main.ts`;
  const child = spawn(process.execPath, [...nodeFlagsOf(main), main], {
    env: {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      SLUICE_DIRECTORY: directory,
      INTAKE_PORT: String(intake),
      API_PORT: String(api),
      WORKER_PORT: String(worker),
      SIMULATOR_PORT: String(simulator),
      ...more,
    },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  atEnd(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGTERM');
    await once(child, 'close');
  });
  let output = '';
  child.stderr.resume();
  child.stdout.on('data', (chunk: Buffer) => void (output += chunk.toString()));
  while (!/Sluice is ready[^]*\/v1\/customers/.test(output)) {
    if (child.exitCode !== null || child.signalCode !== null)
      throw new Error(`npm start ended before it was ready:\n${output}`);
    await Promise.race([once(child.stdout, 'data'), once(child, 'close')]);
  }
  return {
    intakeUrl: `http://127.0.0.1:${intake}`,
    apiUrl: `http://127.0.0.1:${api}`,
    simulatorUrl: `http://127.0.0.1:${simulator}`,
    /** To intake, as the demo workspace. */
    call: (path: string, body: object) =>
      fetch(`http://127.0.0.1:${intake}${path}`, {
        method: 'POST',
        headers: {
          authorization: `Basic ${btoa(`${DEMO.writeKey}:`)}`,
          'x-strict-mode': '1',
          'content-type': 'application/json',
        },
        body: JSON.stringify(body),
      }),
    async stop(): Promise<void> {
      child.kill('SIGTERM');
      const [code] = (await once(child, 'close')) as [number | null];
      expect(code).toBe(0);
    },
  };
}
