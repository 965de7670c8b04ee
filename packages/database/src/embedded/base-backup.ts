/**
 * Copies a running embedded Postgres without `pg_basebackup`.
 *
 * That program is not among its programs. `pg_backup_start` announces the copy to the server, the files are copied
 * while it goes on, and the WAL written meanwhile is copied last. A server that starts on the copy replays that WAL and
 * is as the original was when the copy ended.
 *
 * PostgreSQL manual, 25.3.4 "Making a base backup using the low level API", with its list of files to leave out.
 */
import { cp, mkdir, readdir, stat, writeFile } from 'node:fs/promises';
import { join, relative, sep } from 'node:path';
import { AppError } from '@sluice/domain/values/errors';
import pg from 'pg';

/** Folders that a start fills again, and that belong to this server alone. */
const EMPTY_IN_COPY: ReadonlySet<string> = new Set([
  'pg_dynshmem',
  'pg_notify',
  'pg_replslot',
  'pg_serial',
  'pg_snapshots',
  'pg_stat_tmp',
  'pg_subtrans',
  'pg_wal',
]);
/** `sluice-home` names the owner of the data, if the data is outside (`postgres-cluster.ts`). */
const NOT_IN_COPY = /^(postmaster\.(pid|opts)|sluice-home|pg_internal\.init|pgsql_tmp.*)$/;
const WAL_SEGMENT = /^[0-9A-F]{24}$/;

export interface BaseBackupOptions {
  /** Of its database `postgres`. */
  readonly url: string;
  /** Of the running server. */
  readonly dataPath: string;
  /** Does not exist yet. */
  readonly target: string;
  readonly onProgress: (doneBytes: number, allBytes: number) => void;
}

/** @throws AppError COMMAND_FAILED if a file cannot be read or written. */
export async function makeBaseBackup(options: BaseBackupOptions): Promise<void> {
  const { url, dataPath, target, onProgress } = options;
  const client = new pg.Client({ connectionString: url, application_name: 'sluice-backup' });
  await client.connect();
  try {
    // Temporary: it is gone with the connection. Until then the server keeps the WAL that the copy needs.
    await client.query(`select pg_create_physical_replication_slot('sluice_backup', true, true)`);
    const {
      rows: [start],
    } = await client.query<{ segment: string }>(
      `select pg_walfile_name(pg_backup_start('sluice backup', true)) as segment`,
    );
    await copyData(dataPath, target, onProgress);
    const {
      rows: [stop],
    } = await client.query<{ segment: string; label: string; map: string }>(
      // Not archived: the segments are copied below.
      `select pg_walfile_name(lsn) as segment, labelfile as label, spcmapfile as map
         from pg_backup_stop(wait_for_archive => false)`,
    );
    if (start === undefined || stop === undefined)
      throw new Error('Postgres returned no row for the start or the end of the backup');
    const segments = (await readdir(join(dataPath, 'pg_wal'))).filter(
      (name) => WAL_SEGMENT.test(name) && name >= start.segment && name <= stop.segment,
    );
    for (const name of segments)
      await cp(join(dataPath, 'pg_wal', name), join(target, 'pg_wal', name));
    // Without this file a start would take the copy for a server that crashed, and miss torn pages.
    await writeFile(join(target, 'backup_label'), stop.label, { mode: 0o600 });
  } catch (cause) {
    if (cause instanceof AppError) throw cause;
    throw new AppError(
      'COMMAND_FAILED',
      `the data could not be copied (${(cause as Error).message}); correct the cause, then back up into a new folder`,
      {
        cause,
      },
    );
  } finally {
    await client.end();
  }
}

async function copyData(
  dataPath: string,
  target: string,
  onProgress: BaseBackupOptions['onProgress'],
): Promise<void> {
  const files = await listFiles(dataPath, '');
  const allBytes = files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0);
  await mkdir(target, { mode: 0o700 });
  for (const folder of await listFolders(dataPath))
    await mkdir(join(target, folder), { mode: 0o700 });
  let doneBytes = 0;
  for (const { path, sizeBytes } of files) {
    // One that is dropped meanwhile is dropped by the WAL too.
    await cp(join(dataPath, path), join(target, path)).catch(ignoreMissing);
    doneBytes += sizeBytes;
    onProgress(doneBytes, allBytes);
  }
}

interface DataFile {
  readonly path: string;
  readonly sizeBytes: number;
}

async function listFiles(root: string, folder: string): Promise<DataFile[]> {
  const entries = await readdir(join(root, folder), { withFileTypes: true }).catch(ignoreMissing);
  const files: DataFile[] = [];
  for (const entry of entries ?? []) {
    const path = join(folder, entry.name);
    if (NOT_IN_COPY.test(entry.name)) continue;
    if (entry.isDirectory()) {
      if (!EMPTY_IN_COPY.has(path)) files.push(...(await listFiles(root, path)));
      continue;
    }
    const found = await stat(join(root, path)).catch(ignoreMissing);
    if (found) files.push({ path, sizeBytes: found.size });
  }
  return files;
}

/** The folders that a start expects are among them, empty ones too; a parent before its children. */
async function listFolders(root: string): Promise<string[]> {
  const entries = await readdir(root, { withFileTypes: true, recursive: true });
  return entries
    .filter((entry) => entry.isDirectory())
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .filter((path) => {
      const [first = '', ...rest] = path.split(sep);
      return (
        !NOT_IN_COPY.test(path.split(sep).at(-1) ?? '') &&
        (rest.length === 0 || !EMPTY_IN_COPY.has(first))
      );
    })
    .toSorted();
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error;
}
