/** A backup of a running `npm start`, restored into a new folder: the same rows, the same last event, and it serves. */
import { execFile } from 'node:child_process';
import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createDatabase, type Database } from '@sluice/database/connection/connection';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest';
import { startStandaloneUnderTest } from './standalone-under-test.ts';

const ROOT = fileURLToPath(new URL('../../../../', import.meta.url));
/** Two starts, two backups and a restore, ten times slower on a busy machine. */
const TEST_TIMEOUT_MS = 480_000;

let parent: string;
beforeAll(async () => {
  parent = await mkdtemp(join(tmpdir(), 'sluice-test-backup-'));
  await chmod(parent, 0o711);
});
afterAll(() => rm(parent, { recursive: true, force: true }));

interface Ran {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** `npm run backup` or `restore`, as the script that it is. */
const run = (name: 'backup' | 'restore', directory: string, ...words: string[]): Promise<Ran> =>
  new Promise((resolve) => {
    const file = join(ROOT, 'scripts', `${name}.ts`);
    const env = {
      PATH: process.env['PATH'],
      NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'],
      SLUICE_DIRECTORY: directory,
    };
    const args = ['--disable-warning=ExperimentalWarning', file, ...words];
    execFile(process.execPath, args, { env }, (error, stdout, stderr) =>
      resolve({ code: error ? Number(error.code) : 0, stdout, stderr }),
    );
  });

async function openDatabase(directory: string): Promise<Database> {
  const [password, port] = await Promise.all(
    ['postgres-password', 'postgres-port'].map((name) => readFile(join(directory, name), 'utf8')),
  );
  const database = createDatabase({
    url: `postgres://sluice:${password?.trim()}@127.0.0.1:${port?.trim()}/sluice`,
    poolMax: 1,
    applicationName: 'test',
    onError: () => undefined,
  });
  return database;
}

/**
 * Every table's rows, except the queues' and the rows about processes, which write every few seconds: a start has
 * processes of its own.
 */
async function readContent(directory: string) {
  const database = await openDatabase(directory);
  try {
    const { rows: tables } = await sql<{ name: string }>`
      select c.oid::regclass::text as name from pg_class c join pg_namespace n on n.oid = relnamespace
       where relkind in ('r', 'p') and not relispartition and nspname = 'public'
         and relname not in ('worker_processes', 'process_heartbeats')
       order by 1`.execute(database);
    const counts: Record<string, number> = {};
    for (const { name } of tables) {
      const { rows } = await sql<{ count: number }>`
        select count(*)::int as count from ${sql.raw(name)}`.execute(database);
      counts[name] = rows[0]?.count ?? -1;
    }
    const { rows: events } = await sql<{ event: unknown }>`
      select to_jsonb(e) as event from events e order by received_at desc, event_id desc limit 1`.execute(
      database,
    );
    const {
      event_minutes: eventMinutes = 0,
      delivery_minutes: deliveryMinutes = 0,
      ...rest
    } = counts;
    return {
      counts: rest,
      minutes: { eventMinutes, deliveryMinutes },
      lastEvent: events[0]?.event,
    };
  } finally {
    await database.destroy();
  }
}

/** This start has no webhook, so its workers write no such row. */
async function addDeliveryMinute(directory: string): Promise<void> {
  const database = await openDatabase(directory);
  try {
    await sql`
      insert into delivery_minutes (environment_id, webhook_id, minute, process_id, delivered, failed, latency_counts)
      values (1, 1, date_trunc('minute', now()), 'test', 1, 0, '{1}')`.execute(database);
  } finally {
    await database.destroy();
  }
}

test(
  'a backup of a running start is restored into a new folder, row for row',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const [source, backup, target] = ['source', 'backup', 'target'].map((name) =>
      join(parent, name),
    );
    if (!source || !backup || !target) throw new Error('three names make three paths');
    const running = await startStandaloneUnderTest(source);
    const COUNT = 300;
    const answer = await running.call('/v1/batch', {
      batch: Array.from({ length: COUNT }, (_, n) => ({
        type: 'track',
        userId: `person-${n % 7}`,
        event: 'kept',
        messageId: `message-${n}`,
      })),
    });
    expect(answer.status).toBe(200);
    await expect
      .poll(async () => (await readContent(source)).counts['events'], { timeout: 90_000 })
      .toBeGreaterThanOrEqual(COUNT);
    await addDeliveryMinute(source);
    await expect
      .poll(async () => (await readContent(source)).minutes.eventMinutes, { timeout: 90_000 })
      .toBeGreaterThan(0);
    // Read before the backup: workers go on writing the rows of the minute.
    const { minutes } = await readContent(source);
    expect(minutes.deliveryMinutes).toBeGreaterThan(0);

    // It works beside a running start, and with the services' statements under way.
    const made = await run('backup', source, backup);
    expect(made, made.stderr).toMatchObject({ code: 0 });
    expect(JSON.parse(made.stdout)).toEqual({ backup, has_keys: true });
    const { counts, lastEvent } = await readContent(source);
    await running.stop();

    const restored = await run('restore', '/nowhere', backup, target);
    expect(restored, restored.stderr).toMatchObject({ code: 0 });
    const again = await startStandaloneUnderTest(target);
    const restoredContent = await readContent(target);
    expect(restoredContent).toMatchObject({ counts, lastEvent });
    expect(Object.keys(restoredContent.counts)).toEqual(Object.keys(counts));
    const { eventMinutes, deliveryMinutes } = restoredContent.minutes;
    expect(eventMinutes).toBeGreaterThanOrEqual(minutes.eventMinutes);
    expect(deliveryMinutes).toBeGreaterThanOrEqual(minutes.deliveryMinutes);
    expect(counts['people']).toBeGreaterThanOrEqual(7);
    expect(await readFile(join(target, 'sealing-keys'), 'utf8')).toBe(
      await readFile(join(source, 'sealing-keys'), 'utf8'),
    );
    // It goes on: the same messages again have no effect, a new one is stored.
    await again.call('/v1/track', { userId: 'person-1', event: 'kept', messageId: 'message-1' });
    await again.call('/v1/track', { userId: 'person-1', event: 'later', messageId: 'later' });
    await expect
      .poll(async () => (await readContent(target)).counts['events'], { timeout: 90_000 })
      .toBe((counts['events'] ?? 0) + 1);
    await again.stop();

    // A stopped one is backed up as well, without the keys if they are kept elsewhere.
    const stopped = await run('backup', target, `${backup}-2`, '--without-keys');
    expect(stopped, stopped.stderr).toMatchObject({ code: 0 });
    expect(await readdir(`${backup}-2`)).not.toContain('sealing-keys');
    // Secrets of customers: no other user of the machine may read them.
    expect((await stat(backup)).mode & 0o077).toBe(0);
  },
);

test(
  'backup and restore refuse wrong folders, and restore never overwrites data',
  { timeout: TEST_TIMEOUT_MS },
  async () => {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-test-backup-'));
    onTestFinished(() => rm(folder, { recursive: true, force: true }));
    await writeFile(join(folder, 'postgres-password'), 'kept');
    const nothing = await run('restore', '/nowhere', folder, join(folder, 'new'));
    expect(nothing.code).toBe(2);
    expect(nothing.stderr).toMatch(
      /is not a complete backup, as it has no backup\.json; name a folder that npm run backup made\n$/,
    );

    await writeFile(join(folder, 'backup.json'), '{"format":1}');
    const refused = await run('restore', folder, folder);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toMatch(
      /has data already .*: set it aside \(mv .*\) or name another folder\n$/,
    );
    expect(await readFile(join(folder, 'postgres-password'), 'utf8')).toBe('kept');

    const empty = await run('backup', folder, join(folder, 'backup'));
    expect(empty.code).toBe(2);
    expect(empty.stderr).toMatch(/has no embedded Postgres/);
  },
);
