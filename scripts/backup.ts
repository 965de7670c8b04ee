/**
 * `npm run backup -- FOLDER`: copies all data of an `npm start`, running or not, into a new folder. The data is
 * Postgres, the simulated payment provider, the local disk buffer, and the secrets. `npm run restore` puts it into a
 * new data directory.
 *
 * Of the embedded Postgres only. For one of your own: docs/operations/runbooks/backup-and-restore.md.
 */
import {
  chmod,
  cp,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  writeFile,
} from 'node:fs/promises';
import { DatabaseSync } from 'node:sqlite';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { makeBaseBackup } from '@sluice/database/embedded/base-backup';
import { startEmbeddedPostgres } from '@sluice/database/embedded/embedded-postgres';
import { dataLink } from '@sluice/database/embedded/postgres-cluster';
import { AppError, reasonOf } from '@sluice/domain/values/errors';
import { findRunningStart, type RunningStart } from '@sluice/command-line/connection/running-start';
import { holdDataDirectory } from '@sluice/standalone/data-directory';
import { readWords } from './act-on-database.ts';
import { BACKUP_FORMAT, MANIFEST } from './backup-format.ts';
import { startProgress } from './progress.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const USAGE =
  'usage: npm run backup -- FOLDER [--without-keys]   (a folder that does not exist yet)';
const SIMULATOR = 'simulator.sqlite';
const KEYS = 'sealing-keys';

const { values, positionals } = readWords(USAGE, {
  options: { 'without-keys': { type: 'boolean', default: false } },
  allowPositionals: true,
});
const [folder] = positionals;
if (folder === undefined || positionals.length > 1) {
  console.error(USAGE);
  process.exit(2);
}
try {
  console.log(JSON.stringify(await backup(resolve(process.env['INIT_CWD'] ?? '.', folder))));
} catch (error) {
  console.error(reasonOf(error));
  process.exitCode = 2;
}

async function backup(target: string): Promise<{ backup: string; has_keys: boolean }> {
  const directory = resolve(ROOT, process.env['SLUICE_DIRECTORY'] || '.sluice');
  const dataPath = await realpath(dataLink(directory)).catch((cause: unknown) => {
    throw new AppError(
      'COMMAND_FAILED',
      `${directory} has no embedded Postgres (SLUICE_DIRECTORY names another); for one of your own see docs/operations/runbooks/backup-and-restore.md`,
      { cause },
    );
  });
  await mkdir(dirname(target), { recursive: true });
  // Renamed at the end: a folder of that name is a whole backup.
  const unfinished = await mkdtemp(`${target}.unfinished-`);
  try {
    const server = await openServer(directory);
    try {
      await copyDiskBuffer(directory, unfinished, server.start);
      const progress = startProgress('copying Postgres', 'bytes');
      await makeBaseBackup({
        url: server.url,
        dataPath,
        target: join(unfinished, 'postgres'),
        onProgress: progress.report,
      });
      progress.end();
    } finally {
      await server.close();
    }
    copySimulator(directory, unfinished);
    const hasKeys = !values['without-keys'];
    for (const name of ['postgres-password', 'api-secret', ...(hasKeys ? [KEYS] : [])])
      await copyIfThere(join(directory, name), join(unfinished, name));
    const manifest = {
      format: BACKUP_FORMAT,
      made_at: new Date().toISOString(),
      has_keys: hasKeys,
    };
    await writeFile(join(unfinished, MANIFEST), `${JSON.stringify(manifest)}\n`);
    await chmod(unfinished, 0o700);
    await rename(unfinished, target).catch((cause: Error) => {
      throw new AppError(
        'COMMAND_FAILED',
        `${basename(target)} is there already (${cause.message}); name a new folder`,
        {
          cause,
        },
      );
    });
    console.error(
      hasKeys
        ? 'It has the encryption keys: keep it as safe as the data themselves (--without-keys leaves them out).'
        : `It has no encryption keys. Keep ${join(directory, KEYS)} elsewhere: without it, webhooks lose their secrets.`,
    );
    return { backup: target, has_keys: hasKeys };
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    throw error;
  }
}

interface OpenServer {
  /** Of its database `postgres`. */
  readonly url: string;
  /** The `npm start` that runs it; undefined if this program runs it. */
  readonly start: RunningStart | undefined;
  readonly close: () => Promise<void>;
}

/**
 * The server of the running `npm start`. Without a running one, a server of our own; a lock keeps others from starting
 * meanwhile.
 */
async function openServer(directory: string): Promise<OpenServer> {
  const start = findRunningStart(ROOT, process.env, (pid) => void process.kill(pid, 0));
  if (start !== undefined) {
    const [password, port] = await Promise.all(
      ['postgres-password', 'postgres-port'].map((name) => readFile(join(directory, name), 'utf8')),
    );
    const url = `postgres://sluice:${password?.trim()}@127.0.0.1:${port?.trim()}/postgres`;
    return { url, start, close: () => Promise.resolve() };
  }
  const held = await holdDataDirectory(directory);
  const server = await startEmbeddedPostgres({
    directory,
    durability: 'full',
    onProgress: (line) => console.error(line),
  }).catch(async (error: unknown) => {
    await held.release();
    throw error;
  });
  return {
    url: server.url('postgres'),
    start,
    async close() {
      await server.stop();
      await held.release();
    },
  };
}

/**
 * Calls that were acknowledged while Postgres was away, before Postgres is copied: one that is in both has no second
 * effect. A running intake holds its file; its calls are in Postgres within seconds.
 */
async function copyDiskBuffer(
  directory: string,
  target: string,
  start: RunningStart | undefined,
): Promise<void> {
  if (start === undefined) return copyIfThere(join(directory, 'spill'), join(target, 'spill'));
  const answer = await fetch(`${start.intakeUrl}/metrics`);
  const [, count] =
    /^sluice_intake_spill_envelopes(?:\{[^}]*\})? (\S+)$/m.exec(await answer.text()) ?? [];
  if (count !== '0')
    throw new AppError(
      'COMMAND_FAILED',
      `intake has ${count ?? 'an unknown number of'} commit batches in its local disk buffer, and stores them once Postgres answers. Try again then, or stop npm start first`,
    );
}

/** In use or not: SQLite copies it as of one moment. */
function copySimulator(directory: string, target: string): void {
  let simulator: DatabaseSync;
  try {
    simulator = new DatabaseSync(join(directory, SIMULATOR), { readOnly: true, timeout: 5_000 });
  } catch {
    // With STRIPE_SECRET_KEY there is no simulator.
    return;
  }
  simulator.prepare('vacuum into ?').run(join(target, SIMULATOR));
  simulator.close();
}

async function copyIfThere(source: string, target: string): Promise<void> {
  const isThere = (await readdir(dirname(source))).includes(basename(source));
  if (isThere) await cp(source, target, { recursive: true });
}
