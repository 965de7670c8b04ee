/**
 * Operating-system account of the embedded Postgres, and its file access.
 *
 * Postgres refuses to run as root. Root therefore lends it another account: the owner of the data when there is data,
 * else `postgres` when the machine has it, else `nobody`. A command that runs as the account tests its access; mode
 * bits are not enough, because access lists, mounts and namespaces also matter.
 */
import { execFile } from 'node:child_process';
import { readFile, stat } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { AppError } from '@sluice/domain/values/errors';

/** `undefined` stands for the account that we run as ourselves. */
export type ServerAccount = { readonly uid: number; readonly gid: number } | undefined;

const ROOT_UID = 0;

/**
 * The account for a server whose data is, or will be, at `dataPath`.
 *
 * @throws AppError DATABASE_START_FAILED when the data is another's and we may not act as them.
 */
export async function chooseServerAccount(dataPath: string): Promise<ServerAccount> {
  const ourUid = userInfo().uid;
  const owner = await stat(dataPath).catch(() => undefined);
  if (ourUid !== ROOT_UID) {
    if (owner && owner.uid !== ourUid) {
      throw new AppError(
        'DATABASE_START_FAILED',
        `${dataPath} belongs to user id ${owner.uid}; start as that user or as root, or remove it to begin anew`,
      );
    }
    return undefined;
  }
  if (owner && owner.uid !== ROOT_UID) return { uid: owner.uid, gid: owner.gid };

  const accounts = await readAccounts();
  const account = accounts.get('postgres') ?? accounts.get('nobody');
  if (account) return account;
  throw new AppError(
    'DATABASE_START_FAILED',
    'Postgres refuses to run as root, and /etc/passwd has no user `postgres` or `nobody`; add one of them, or start as another user',
  );
}

/** name → ids. `initdb` accepts only an account that is in `/etc/passwd`, so the search reads that file. */
async function readAccounts(): Promise<Map<string, { uid: number; gid: number }>> {
  const lines = (await readFile('/etc/passwd', 'utf8')).split('\n').map((line) => line.split(':'));
  return new Map(
    lines.flatMap(([name, , uid, gid]) =>
      name && uid && gid ? [[name, { uid: Number(uid), gid: Number(gid) }] as const] : [],
    ),
  );
}

/** Whether the account can get to `path` and through it (a folder) or run it (a file). */
export async function canReach(path: string, account: ServerAccount): Promise<boolean> {
  const { exitCode } = await runAs(account, '/bin/sh', ['-c', 'test -x "$0"', path]);
  return exitCode === 0;
}

/** The environment of every Postgres program: no variable of ours, so that no `PG…` variable leaks in. */
export const SERVER_ENVIRONMENT = { LC_ALL: 'C', TZ: 'UTC', PATH: '/usr/bin:/bin' };

export interface Ran {
  readonly exitCode: number;
  /** Both streams, in order of arrival as far as pipes allow. */
  readonly output: string;
}

/** Runs a program as the account and waits for its end. One that cannot be run at all ends with 127. */
export function runAs(account: ServerAccount, file: string, args: readonly string[]): Promise<Ran> {
  return new Promise((resolve) => {
    // cwd '/': our own folder may be one that the account cannot enter.
    const options = { cwd: '/', env: SERVER_ENVIRONMENT, maxBuffer: 4_194_304, ...account };
    execFile(file, args, options, (error, stdout, stderr) => {
      const exitCode = error ? (typeof error.code === 'number' ? error.code : 127) : 0;
      const reason = exitCode === 127 && error ? error.message : '';
      resolve({ exitCode, output: `${stdout}${stderr}${reason}`.trim() });
    });
  });
}
