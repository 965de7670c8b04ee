/**
 * Commands of the README, the quickstart and the guides, run.
 *
 * They must do as their page describes. Each page is typed into one shell, block by block, beside an `npm start`. The
 * blocks follow the convention of the runbooks (`chaos/src/runbooks/read-runbook.ts`).
 */
import { chmod, mkdir, mkdtemp, realpath, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openOperatorShell } from '@sluice/chaos/runbooks/operator-shell';
import { unseen } from '@sluice/chaos/runbooks/read-runbook';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { findFreePort } from '@sluice/platform/testing/free-port';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { pagesOf, ROOT, stepsOf } from '../command-pages.ts';
import { PATIENT_DELIVERIES } from './fleet-under-test.ts';
import { programsFolder } from './pasted-lines.ts';
import { startStandaloneUnderTest } from './standalone-under-test.ts';

const WAIT = { timeout: 150_000, interval: 250 };
/** Of a page, whose blocks start a dozen programs. */
const PAGE_TIMEOUT_MS = 600_000;
const pages = pagesOf('packages/standalone/test/integration/page-commands.test.ts');

let standalone: Awaited<ReturnType<typeof startStandaloneUnderTest>>;
let endStandalone: () => Promise<void>;
let folder: string;
let data: string;
beforeAll(async () => {
  folder = await mkdtemp(join(programsFolder(), 'sluice-test-pages-'));
  data = await mkdtemp(join(tmpdir(), 'sluice-test-pages-data-'));
  // Postgres' account must pass through.
  await chmod(data, 0o711);
  standalone = await startStandaloneUnderTest(data, ROOT, (end) => void (endStandalone = end), {
    // A page tries a failing delivery again before Sluice does, also if its commands take longer than ten seconds.
    WEBHOOK_LISTED_FAILURE_WAIT_MS: '3600000',
    ...PATIENT_DELIVERIES,
  });
});
afterAll(async () => {
  await endStandalone();
  for (const path of [await realpath(join(data, 'postgres')).catch(() => data), data, folder])
    await rm(path, { recursive: true, force: true });
});

/** Objects of one page would be in the way of the next one. */
async function removeWebhooks(): Promise<void> {
  const headers = { authorization: `Bearer ${DEMO.appKey}` };
  const url = `${standalone.apiUrl}/v1/reporting_webhooks`;
  const answer = (await (await fetch(url, { headers })).json()) as {
    reporting_webhooks: { id: number }[];
  };
  for (const { id } of answer.reporting_webhooks)
    expect((await fetch(`${url}/${id}`, { method: 'DELETE', headers })).ok).toBe(true);
}

test('there are pages with commands', () => {
  expect(pages).toContain('README.md');
  expect(pages.length).toBeGreaterThan(1);
});

test.each(pages)('%s', { timeout: PAGE_TIMEOUT_MS }, async (page) => {
  const directory = join(folder, page.replaceAll('/', '-'));
  await mkdir(directory);
  for (const name of ['sluice', 'packages']) await symlink(join(ROOT, name), join(directory, name));
  const receiver = `127.0.0.1:${await findFreePort()}`;
  const here = (text: string): string =>
    text
      .replaceAll('http://127.0.0.1:8080', standalone.intakeUrl)
      .replaceAll('http://127.0.0.1:8090', standalone.apiUrl)
      .replaceAll('http://127.0.0.1:8091', standalone.simulatorUrl)
      .replaceAll('127.0.0.1:9000', receiver)
      .replaceAll('.listen(9000', `.listen(${receiver.split(':')[1]}`)
      .replaceAll('sluice listen', `sluice listen --port ${receiver.split(':')[1]}`);
  const shell = openOperatorShell(directory, {
    PATH: process.env['PATH'],
    HOME: directory,
    SLUICE_DIRECTORY: data,
    SLUICE_API_URL: standalone.apiUrl,
    SLUICE_INTAKE_URL: standalone.intakeUrl,
  });
  try {
    for (const { number, title, commands, isLook, expected } of stepsOf(page)) {
      const seen = expected.map(here);
      let output = '';
      if (isLook) {
        await expect
          .poll(async () => {
            output = await shell.run(here(commands)).catch(String);
            return unseen(seen, output);
          }, WAIT)
          .toEqual([])
          .catch((error: unknown) => fail(error, output));
        continue;
      }
      output = await shell.run(here(commands));
      // curl ends well even if a call was refused.
      if (!seen.some((line) => line.includes('error')))
        expect(output, `${page}, block ${number}`).not.toContain('urn:sluice:error');
      // A program in the background prints later.
      await expect
        .poll(async () => {
          output += await shell.run(':');
          return unseen(seen, output);
        }, WAIT)
        .toEqual([])
        .catch((error: unknown) => fail(error, output));
      function fail(error: unknown, printed: string): never {
        throw new Error(`${page}, block ${number} (${title}) printed:\n${printed}`, {
          cause: error,
        });
      }
    }
  } finally {
    await shell.run('kill $(jobs -p) 2> /dev/null; true').catch(() => undefined);
    shell.close();
    await removeWebhooks();
  }
});
