/**
 * Puts a base backup in the place of the embedded cluster (`base-backup.ts`). `startEmbeddedPostgres` finds it there,
 * owned by the account that runs it.
 */
import { cp, mkdir, rename, rm } from 'node:fs/promises';
import { chooseServerAccount, runAs } from './postgres-account.ts';
import { dataLink } from './postgres-cluster.ts';

/**
 * Atomic, like the making of a new cluster. There must be no data in `directory` yet.
 *
 * @param source - the folder that `makeBaseBackup` wrote.
 * @param directory - as for `startEmbeddedPostgres`.
 */
export async function restoreCluster(source: string, directory: string): Promise<void> {
  const link = dataLink(directory);
  const unfinished = `${link}.new`;
  const account = await chooseServerAccount(link);
  await mkdir(directory, { recursive: true });
  await rm(unfinished, { recursive: true, force: true });
  await cp(source, unfinished, { recursive: true });
  if (account)
    await runAs(undefined, '/bin/chown', ['-R', `${account.uid}:${account.gid}`, unfinished]);
  await runAs(undefined, '/bin/chmod', ['-R', 'go=', unfinished]);
  await rename(unfinished, link);
}
