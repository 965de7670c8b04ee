/**
 * `npm run restore -- BACKUP [DIRECTORY]`: a backup of `npm run backup` into a data directory that has no data yet
 * (`SLUICE_DIRECTORY`, or `.sluice`), and a look whether Postgres opens it. `npm start` then goes on from there.
 */
import { chmod, cp, mkdir, readdir, readFile, rm } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createDatabase } from '@sluice/database/connection/connection';
import { startEmbeddedPostgres } from '@sluice/database/embedded/embedded-postgres';
import { restoreCluster } from '@sluice/database/embedded/restore-cluster';
import { MIGRATIONS } from '@sluice/database/schema/migrate';
import { assertUsable, judgeSchema, readSchemaState } from '@sluice/database/schema/schema-version';
import { AppError, reasonOf } from '@sluice/domain/values/errors';
import { holdDataDirectory } from '@sluice/standalone/data-directory';
import { readWords } from './act-on-database.ts';
import { BACKUP_FORMAT, MANIFEST } from './backup-format.ts';
import { startProgress } from './progress.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const USAGE = 'usage: npm run restore -- BACKUP [DIRECTORY]   (SLUICE_DIRECTORY, or .sluice)';
/** Entries that `npm start` makes in a folder without data. */
const OF_NO_DATA = new Set(['lock', 'logs']);

const { positionals } = readWords(USAGE, { options: {}, allowPositionals: true });
const [source, wanted] = positionals;
if (source === undefined || positionals.length > 2) {
  console.error(USAGE);
  process.exit(2);
}
try {
  const typedIn = process.env['INIT_CWD'] ?? '.';
  const directory =
    wanted === undefined
      ? resolve(ROOT, process.env['SLUICE_DIRECTORY'] || '.sluice')
      : resolve(typedIn, wanted);
  await restore(resolve(typedIn, source), directory);
  console.log(JSON.stringify({ restored: directory }));
  console.error(`To start it: SLUICE_DIRECTORY=${directory} npm start`);
} catch (error) {
  console.error(reasonOf(error));
  process.exitCode = 2;
}

async function restore(backup: string, directory: string): Promise<void> {
  const { format } = await readManifest(backup);
  if (format !== BACKUP_FORMAT)
    throw new AppError(
      'COMMAND_FAILED',
      `${backup} has format ${format}; restore it with a newer version`,
    );
  await mkdir(directory, { recursive: true });
  const there = (await readdir(directory)).filter((name) => !OF_NO_DATA.has(name));
  if (there.length > 0)
    throw new AppError(
      'COMMAND_FAILED',
      `${directory} has data already (${there.slice(0, 3).join(', ')}): set it aside (mv ${directory} ${directory}.before) or name another folder`,
    );
  const held = await holdDataDirectory(directory);
  try {
    const names = (await readdir(backup)).filter(
      (name) => name !== MANIFEST && name !== 'postgres',
    );
    for (const name of names)
      await cp(join(backup, name), join(directory, name), { recursive: true });
    const progress = startProgress('restoring Postgres', 'steps');
    await restoreCluster(join(backup, 'postgres'), directory);
    progress.report(1, 2);
    await openOnce(directory);
    progress.report(2, 2);
    progress.end();
  } catch (error) {
    // All entries are of this restore alone.
    for (const name of await readdir(directory))
      if (!OF_NO_DATA.has(name)) await rm(join(directory, name), { recursive: true, force: true });
    throw error;
  } finally {
    await held.release();
    await chmod(directory, 0o755);
  }
}

async function readManifest(backup: string): Promise<{ format: number }> {
  const text = await readFile(join(backup, MANIFEST), 'utf8').catch((cause: unknown) => {
    throw new AppError(
      'COMMAND_FAILED',
      `${backup} is not a complete backup, as it has no ${MANIFEST}; name a folder that npm run backup made`,
      {
        cause,
      },
    );
  });
  return JSON.parse(text) as { format: number };
}

/** Postgres replays the WAL of the backup, and this version can work with the schema or bring it forward. */
async function openOnce(directory: string): Promise<void> {
  const server = await startEmbeddedPostgres({
    directory,
    durability: 'full',
    onProgress: (line) => console.error(line),
  });
  try {
    const database = createDatabase({
      url: server.url('sluice'),
      poolMax: 1,
      applicationName: 'sluice-restore',
      onError: () => {},
    });
    try {
      const verdict = judgeSchema(Object.keys(MIGRATIONS), await readSchemaState(database));
      // One that is behind is migrated by the start.
      if (verdict.outcome === 'ahead') assertUsable(verdict);
    } finally {
      await database.destroy();
    }
  } finally {
    await server.stop();
  }
}
