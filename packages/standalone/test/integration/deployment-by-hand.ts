/**
 * For tests: the place of a deployment by hand, with shells for its processes.
 *
 * The database is empty, and its owner is a user without other rights. The working directory is a folder with links to
 * the files of the checkout, so mails and the local disk buffer are the test's own.
 */
import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openOperatorShell, type OperatorShell } from '@sluice/chaos/runbooks/operator-shell';
import { createDatabase } from '@sluice/database/connection/connection';
import type {} from '@sluice/database/testing/testing';
import { findFreePort } from '@sluice/platform/testing/free-port';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { expect, inject } from 'vitest';
import { ROOT } from '../command-pages.ts';
import { programsFolder } from './pasted-lines.ts';

/** `npm run` and a process, with three of them at the same time, ten times slower on a busy machine. */
export const WAIT = { timeout: 150_000, interval: 100 };
export type Service = 'intake' | 'worker' | 'api';

export interface Deployment {
  readonly urls: Readonly<Record<Service, string>>;
  /** The text of a page with the addresses of this test. */
  readonly here: (text: string) => string;
  readonly openShell: (settings?: Readonly<Record<string, string>>) => Promise<OperatorShell>;
  /** The code in the first mail that the API writes. */
  readonly readCode: () => Promise<string>;
  /** Ends the processes of all shells. */
  close(): Promise<void>;
}

export async function prepareDeployment(): Promise<Deployment> {
  const database = await createOwnedDatabase();
  const directory = await mkdtemp(join(programsFolder(), 'sluice-test-deploy-'));
  const files = (await readdir(ROOT)).filter((file) => file !== '.sluice' && file !== '.git');
  for (const file of files) await symlink(join(ROOT, file), join(directory, file));
  // Shows the status of each answer.
  const curl = String.raw`silent
show-error
write-out = "\n%{http_code}\n"
`;
  await writeFile(join(directory, '.curlrc'), curl);
  const [intake, worker, api] = await Promise.all([findFreePort(), findFreePort(), findFreePort()]);
  const urls = {
    intake: `http://127.0.0.1:${intake}`,
    worker: `http://127.0.0.1:${worker}`,
    api: `http://127.0.0.1:${api}`,
  };
  const environment = {
    PATH: process.env['PATH'],
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
    HOME: directory,
    npm_config_update_notifier: 'false',
    QUEUE_PREFIX: uniquePrefix(),
    INTAKE_PORT: String(intake),
    WORKER_PORT: String(worker),
    API_PORT: String(api),
    SLUICE_DIRECTORY: join(directory, '.sluice'),
    SLUICE_API_URL: urls.api,
    SLUICE_INTAKE_URL: urls.intake,
  };
  const shells: OperatorShell[] = [];
  return {
    urls,
    here: (text) =>
      text
        .replaceAll('postgres://…', database.url)
        .replaceAll('redis://…', testRedisUrl())
        .replaceAll('http://127.0.0.1:8080', urls.intake)
        .replaceAll('http://127.0.0.1:8090', urls.api),
    async openShell(settings = {}) {
      const shell = openOperatorShell(directory, { ...environment, ...settings });
      shells.push(shell);
      // Processes end with the shell, and the shell ends with its input: with this test, however it ends.
      await shell.run(`trap 'kill $(jobs -p) 2> /dev/null' EXIT`);
      return shell;
    },
    async readCode() {
      const mails = join(directory, '.sluice/mail');
      await expect.poll(() => readdir(mails).catch(() => []), WAIT).toHaveLength(1);
      const [name = ''] = await readdir(mails);
      const mail = await readFile(join(mails, name), 'utf8');
      const [, code = ''] = /code is (\d{6})/.exec(mail) ?? [];
      expect(code, mail).not.toBe('');
      return code;
    },
    async close() {
      await Promise.all(
        shells.map(async (shell) => {
          await shell
            .run('for id in $(jobs -p); do kill $id; wait $id; done')
            .catch(() => undefined);
          shell.close();
        }),
      );
      await database.drop();
      await rm(directory, { recursive: true, force: true });
    },
  };
}

async function createOwnedDatabase(): Promise<{ url: string; drop(): Promise<void> }> {
  const name = `deployed_${randomBytes(6).toString('hex')}`;
  const password = randomBytes(12).toString('hex');
  const serverUrl = inject('testServerUrl');
  const superuser = createDatabase({
    url: serverUrl,
    poolMax: 1,
    applicationName: 'test',
    onError: () => undefined,
  });
  const say = (statement: string) => sql.raw(statement).execute(superuser);
  await say(`create role ${name} login password '${password}'`);
  await say(`create database ${name} owner ${name}`);
  const parts = { username: name, password, pathname: `/${name}` };
  return {
    url: Object.assign(new URL(serverUrl), parts).href,
    async drop() {
      await say(`drop database ${name} with (force)`);
      await say(`drop role ${name}`);
      await superuser.destroy();
    },
  };
}

/** Types the command of a process into the shell, and waits until the process is ready. */
export async function startProcess(shell: OperatorShell, line: string, url: string): Promise<void> {
  await shell.run(`${line.replace(/\s+#.*/, '')} &`);
  let log = '';
  const status = async (): Promise<number | string> => {
    const printed = await shell.run('jobs -r');
    log += printed;
    if (!printed.includes('Running')) return 'ended';
    return fetch(`${url}/readyz`).then(
      (answer) => answer.status,
      () => 'away',
    );
  };
  await expect
    .poll(status, WAIT)
    .toBe(200)
    .catch((cause: unknown) => {
      throw new Error(`${line} printed:\n${log}`, { cause });
    });
}
