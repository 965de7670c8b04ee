/**
 * A Postgres and a streaming replica of it, for tests: two real servers, the second a copy of the first's files that
 * follows its log. `pg_basebackup` makes such a copy too, but the embedded Postgres comes without it.
 */
import { execFile } from 'node:child_process';
import { copyFile, mkdir, realpath, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import {
  startEmbeddedPostgres,
  type EmbeddedPostgres,
  type EmbeddedPostgresOptions,
} from '../embedded/embedded-postgres.ts';

export interface ReplicatedPostgres {
  readonly primary: EmbeddedPostgres;
  readonly replica: EmbeddedPostgres;
  /** The replica gets the log and does not apply it, until `resumeReplay`. */
  pauseReplay(): Promise<void>;
  resumeReplay(): Promise<void>;
  /** Stops both and removes their data. */
  remove(): Promise<void>;
}

const OPTIONS = { durability: 'none', onProgress: () => {} } as const;
/** `durability: 'none'` leaves out settings that a replica needs. Confirmed changes must be in the log that it gets. */
const SETTINGS = {
  wal_level: 'replica',
  max_wal_senders: '4',
  synchronous_commit: 'on',
  hot_standby: 'on',
};

/** @param prepare - fills the primary, before the replica is made. */
export async function startReplicatedPostgres(
  directory: string,
  prepare: (primary: EmbeddedPostgres) => Promise<void>,
): Promise<ReplicatedPostgres> {
  const folders = { primary: join(directory, 'primary'), replica: join(directory, 'replica') };
  const start = (options: Pick<EmbeddedPostgresOptions, 'directory' | 'settings'>) =>
    startEmbeddedPostgres({ ...OPTIONS, ...options });
  const first = await start({ directory: folders.primary, settings: SETTINGS });
  await prepare(first);
  await first.stop();
  await copyCluster(folders.primary, folders.replica);
  const primary = await start({ directory: folders.primary, settings: SETTINGS });
  const replica = await start({
    directory: folders.replica,
    settings: { ...SETTINGS, primary_conninfo: conninfoOf(primary.url('postgres')) },
  });
  const onReplica = async (statement: string): Promise<void> => {
    const client = new pg.Client({ connectionString: replica.url('postgres') });
    await client.connect();
    try {
      await client.query(statement);
    } finally {
      await client.end();
    }
  };
  return {
    primary,
    replica,
    pauseReplay: () => onReplica('select pg_wal_replay_pause()'),
    resumeReplay: () => onReplica('select pg_wal_replay_resume()'),
    async remove() {
      await replica.remove();
      await primary.remove();
    },
  };
}

/** The files of a server that is stopped, with their owner; and the file that makes of the copy a replica. */
async function copyCluster(from: string, to: string): Promise<void> {
  const run = promisify(execFile);
  await mkdir(to, { mode: 0o711 });
  const data = await realpath(join(from, 'postgres'));
  const copy = `${data}-replica`;
  await run('cp', ['-a', data, copy]);
  await run('cp', ['-a', join(copy, 'PG_VERSION'), join(copy, 'standby.signal')]);
  await symlink(copy, join(to, 'postgres'));
  await copyFile(join(from, 'postgres-password'), join(to, 'postgres-password'));
}

/** As `primary_conninfo` wants it. */
function conninfoOf(url: string): string {
  const { hostname, port, username, password } = new URL(url);
  return `host=${hostname} port=${port} user=${username} password=${password} application_name=replica`;
}
