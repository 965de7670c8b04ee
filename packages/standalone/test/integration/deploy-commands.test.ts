/**
 * Commands of the pages `deploy.md` and `scale.md`, typed.
 *
 * The database is empty. Each process runs in a shell of its own.
 */
import { findFreePort } from '@sluice/platform/testing/free-port';
import { unseen } from '@sluice/chaos/runbooks/read-runbook';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { stepsOf } from '../command-pages.ts';
import {
  prepareDeployment,
  startProcess,
  WAIT,
  type Deployment,
  type Service,
} from './deployment-by-hand.ts';

const TEST_TIMEOUT_MS = 600_000;
const PROCESS = /^npm run (intake|worker|api)\b/;
const isProcess = (line: string): boolean => PROCESS.test(line);

let deployment: Deployment;
beforeAll(async () => void (deployment = await prepareDeployment()));
afterAll(() => deployment.close());

test(
  'an empty database becomes an installation with an account, whose first call is applied',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const { urls, here, openShell, readCode } = deployment;
    const [start, signup, look, ...others] = stepsOf('docs/operations/deploy.md');
    expect(others).toEqual([]);

    const operator = await openShell();
    const lines = start!.commands.split('\n');
    for (const line of lines.filter((each) => !isProcess(each))) await operator.run(here(line));
    const exports = await operator.run('export -p');
    const processes = lines.filter(isProcess);
    expect(processes.map((line) => PROCESS.exec(line)?.[1])).toEqual(['intake', 'worker', 'api']);
    await Promise.all(
      processes.map(async (line) => {
        const shell = await openShell();
        await shell.run(exports);
        await startProcess(shell, line, urls[PROCESS.exec(line)?.[1] as Service]);
      }),
    );

    const outputs: string[] = [];
    const found = (pattern: RegExp): string[] =>
      outputs.flatMap((output) => pattern.exec(output)?.slice(1) ?? []);
    for (const command of signup!.commands.split(/(?<!\\)\n/)) {
      const keys = found(/^secret: (\S+)$/m);
      const filled = here(command)
        .replace('THE CODE', command.includes('THE CODE') ? await readCode() : '')
        .replace(/sa_live_…/, () => found(/"token":"(sa_live_\w+)"/)[0] ?? '')
        .replace(/(?<=_KEY=)…/g, () => keys.shift() ?? '');
      const output = await operator.run(filled);
      if (command.startsWith('curl ')) expect(output, command).toMatch(/\n200\n$/);
      outputs.push(output);
    }
    // The words of the page that the answer could contradict.
    expect(found(/("account_id":\d+,"environment_id":\d+)/)).toEqual([
      '"account_id":1,"environment_id":1',
    ]);
    expect(found(/^secret: (\S+)$/m)).toHaveLength(2);
    const seen = [...look!.expected, '200'];
    await expect
      .poll(async () => unseen(seen, await operator.run(here(look!.commands)).catch(String)), WAIT)
      .toEqual([]);

    // A worker of another machine.
    const [scale] = stepsOf('docs/operations/scale.md');
    const port = await findFreePort();
    const machine = await openShell({ WORKER_PORT: String(port) });
    const key = await operator.read('SEALING_KEYS');
    for (const line of scale!.commands.split('\n'))
      if (isProcess(line)) await startProcess(machine, line, `http://127.0.0.1:${port}`);
      else await machine.run(here(line).replace('SEALING_KEYS=…', `SEALING_KEYS=${key}`));
  },
);
