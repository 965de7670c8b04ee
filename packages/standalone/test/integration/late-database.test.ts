/**
 * Each service, started while its Postgres is not ready.
 *
 * Postgres is away, restores, or refuses connections. After a power cut everything comes up at once, and the services
 * are the first to be there. They run as the processes of operators.
 */
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDatabase } from '@sluice/database/connection/connection';
import {
  startEmbeddedPostgres,
  type EmbeddedPostgres,
} from '@sluice/database/embedded/embedded-postgres';
import { migrate } from '@sluice/database/schema/migrate';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { findFreePort } from '@sluice/platform/testing/free-port';
import { isOfAWait } from '@sluice/platform/testing/lines-of-a-wait';
import {
  beginServiceUnderTest,
  runProgramUnderTest,
  TEST_SEALING_KEYS,
} from '@sluice/platform/testing/service-under-test';
import { TickClock } from '@sluice/platform/testing/tick-clock';
import { startTcpProxyTo } from '@sluice/database/testing/tcp-proxy';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { mainOf } from './fleet-under-test.ts';

const SERVICES = ['intake', 'worker', 'api'] as const;
type ServiceName = (typeof SERVICES)[number];
/**
 * Longer than the minute between two lines about a Postgres that is away: the reason of the first one is another if the
 * process stood still during its first question.
 */
const WAIT = { timeout: 100_000, interval: 50 };
const TEST_TIMEOUT_MS = 400_000;
const LINE_INTERVAL_SECONDS = 60;
const IS_AWAY = /^Postgres is away: this process waits for it/;

let directory: string;
let url: string;
let emptyUrl: string;
let postgres: EmbeddedPostgres;

const startPostgres = (settings: Record<string, string> = {}) =>
  startEmbeddedPostgres({
    directory,
    durability: 'none',
    settings: { wal_level: 'replica', ...settings },
    onProgress: () => {},
  });

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sluice-test-late-'));
  // The user that runs Postgres for root must pass through.
  await chmod(directory, 0o711);
  postgres = await startPostgres();
  await Promise.all([postgres.createDatabase('late'), postgres.createDatabase('empty')]);
  url = postgres.url('late');
  emptyUrl = postgres.url('empty');
  const database = createDatabase({
    url,
    poolMax: 2,
    applicationName: 'test',
    onError: () => undefined,
  });
  await migrate(database);
  await seedDemoWorkspace(database);
  await database.destroy();
}, TEST_TIMEOUT_MS);

afterAll(async () => {
  await postgres.remove();
  await rm(directory, { recursive: true, force: true });
});

const settingsOf = (service: ServiceName, databaseUrl: string, port: number) => ({
  DATABASE_URL: databaseUrl,
  REDIS_URL: testRedisUrl(),
  QUEUE_PREFIX: uniquePrefix(),
  SHARD_COUNT: '2',
  SEALING_KEYS: TEST_SEALING_KEYS,
  [`${service.toUpperCase()}_PORT`]: String(port),
});

async function begin(
  service: ServiceName,
  databaseUrl: string,
  more: Readonly<Record<string, string>> = {},
) {
  const port = await findFreePort();
  const process = await beginServiceUnderTest(
    mainOf(service),
    { ...settingsOf(service, databaseUrl, port), ...more },
    undefined,
    undefined,
    TEST_TIMEOUT_MS,
  );
  onTestFinished(() => process.kill('SIGKILL').then(() => undefined));
  return {
    ...process,
    statusOf: async (path: string) => (await fetch(`http://127.0.0.1:${port}${path}`)).status,
    postEvent: async () =>
      (
        await fetch(`http://127.0.0.1:${port}/v1/track`, {
          method: 'POST',
          headers: {
            Authorization: `Basic ${Buffer.from(`${DEMO.writeKey}:`).toString('base64')}`,
            'X-Strict-Mode': '1',
          },
          body: JSON.stringify({ userId: 'ann', event: 'bought' }),
        })
      ).status,
    saysItWaits: (reason: RegExp) =>
      vi.waitFor(
        () =>
          expect(process.logs).toContainEqual(
            expect.objectContaining({
              msg: expect.stringMatching(IS_AWAY),
              reason: expect.stringMatching(reason),
            }),
          ),
        WAIT,
      ),
  };
}

test(
  'services that are there before their Postgres wait for it, also while it restores, and are ready once it is',
  async () => {
    await postgres.stop();
    const [intake, worker, api] = await Promise.all([
      begin('intake', url),
      begin('worker', url),
      begin('api', url),
    ]);
    await Promise.all([intake, worker, api].map((each) => each.saysItWaits(/ECONNREFUSED/)));
    // Without its keys intake could only refuse, so it does not listen yet.
    await expect(intake.statusOf('/livez')).rejects.toThrow('fetch failed');
    for (const service of [worker, api]) {
      await vi.waitFor(async () => expect(await service.statusOf('/livez')).toBe(200), WAIT);
      expect(await service.statusOf('/readyz')).toBe(503);
    }

    // A server that goes over its log, of which there may be more: it refuses connections (57P03).
    const files = join(directory, 'postgres');
    await writeFile(join(files, 'standby.signal'), '');
    await chmod(join(files, 'standby.signal'), 0o666);
    const restored = startPostgres({ hot_standby: 'off' });
    // It logs its first reason alone, so the server has to be there.
    const knocking = createDatabase({
      url,
      poolMax: 1,
      applicationName: 'test',
      onError: () => undefined,
    });
    onTestFinished(() => knocking.destroy());
    await vi.waitFor(
      () => expect(sql`select 1`.execute(knocking)).rejects.toMatchObject({ code: '57P03' }),
      WAIT,
    );
    const second = await begin('intake', url);
    await second.saysItWaits(/the database system is/);
    await expect(second.statusOf('/livez')).rejects.toThrow('fetch failed');

    // As `pg_ctl promote` does.
    await writeFile(join(files, 'promote'), '');
    const [pid] = (await readFile(join(files, 'postmaster.pid'), 'utf8')).split('\n');
    process.kill(Number(pid), 'SIGUSR1');
    postgres = await restored;
    for (const service of [intake, worker, api, second]) {
      await service.started;
      await vi.waitFor(async () => expect(await service.statusOf('/readyz')).toBe(200), WAIT);
    }
    expect(await intake.postEvent()).toBe(200);
    for (const service of [intake, worker, api, second]) {
      const lines = service.logs.filter(({ msg }) => IS_AWAY.test(String(msg)));
      expect(lines).not.toEqual([]);
      // At most one a minute. The time is rounded.
      for (const [index, { waitedSeconds }] of lines.entries())
        expect(waitedSeconds).toBeGreaterThanOrEqual(index * (LINE_INTERVAL_SECONDS - 1));
      expect(await service.kill('SIGTERM')).toBe(0);
    }
  },
  TEST_TIMEOUT_MS,
);

// With its whole process, so intake and API of `npm start` ended too, again and again while the machine was busy.
test(
  'a worker that does not get its session beside the pool waits for Postgres, and does not end',
  async () => {
    const { url: ownUrl, database } = await createTestDatabase();
    await sql`
      create function refuse_presence() returns event_trigger language plpgsql as $$
      begin
        if current_setting('application_name') like '%presence' then
          raise exception 'not yet' using errcode = '57P03';
        end if;
      end $$`.execute(database);
    await sql`create event trigger refuse_presence on login execute function refuse_presence()`.execute(
      database,
    );
    const worker = await begin('worker', ownUrl);
    await worker.saysItWaits(/not yet/);
    expect(await worker.statusOf('/readyz')).toBe(503);
    await sql`drop event trigger refuse_presence`.execute(database);
    await worker.started;
    await vi.waitFor(async () => expect(await worker.statusOf('/readyz')).toBe(200), WAIT);
    expect(await worker.kill('SIGTERM')).toBe(0);
  },
  TEST_TIMEOUT_MS,
);

/** Work that takes longer is cut, with exit code 1. Longer than a busy machine holds up a process. */
const SHORT_STOP = { DRAIN_TIMEOUT_MS: '20000', WEBHOOK_TIMEOUT_MS: '500' };
/** Less than any wait for an answer, which has five seconds. */
const AT_ONCE_MS_MAX = 4_000;

test.each(SERVICES)(
  '%s ends at once and with 0 when it is stopped while it waits, whether it is refused or not even answered',
  async (service) => {
    const refused = await begin(service, `postgres://sluice@127.0.0.1:1/sluice`, SHORT_STOP);
    const expectStopAtOnce = async (process: typeof refused): Promise<void> => {
      const clock = new TickClock(50);
      expect(await process.kill('SIGTERM'), JSON.stringify(process.logs)).toBe(0);
      clock.stop();
      expect(clock.nowMs).toBeLessThan(AT_ONCE_MS_MAX);
    };
    await refused.saysItWaits(/ECONNREFUSED/);
    await expectStopAtOnce(refused);

    const proxy = await startTcpProxyTo((await createTestDatabase()).url);
    onTestFinished(() => proxy.close());
    proxy.hold();
    const unanswered = await begin(service, proxy.url, SHORT_STOP);
    await unanswered.saysItWaits(/timeout|no answer/);
    await expectStopAtOnce(unanswered);
    for (const { logs } of [refused, unanswered])
      expect(logs.filter(({ level }) => Number(level) >= 50)).toEqual([]);
  },
  TEST_TIMEOUT_MS,
);

const refusals = (): readonly (readonly [string, string, RegExp])[] => {
  const badPassword = new URL(url);
  badPassword.password = 'wrong';
  const badName = new URL(url);
  badName.pathname = '/missing';
  return [
    [badPassword.href, 'DATABASE_UNAVAILABLE', /password authentication failed.*start again/],
    [badName.href, 'DATABASE_UNAVAILABLE', /database "missing" does not exist.*start again/],
    [emptyUrl, 'MIGRATION_MISMATCH', /npm run migrate/],
  ];
};

test.each(SERVICES)(
  '%s ends at once if waiting cannot help: a wrong password, a database that is not there, an old schema',
  async (service) => {
    for (const [databaseUrl, code, message] of refusals()) {
      const ended = await runProgramUnderTest(mainOf(service), {
        ...settingsOf(service, databaseUrl, await findFreePort()),
        LOG_LEVEL: 'warn',
        API_SECRET: 'a'.repeat(32),
      });
      expect(ended.code).toBe(1);
      const lines = ended.output
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Record<string, unknown>)
        .filter((line) => !isOfAWait(line));
      expect(lines).toMatchObject([{ level: 60, code, msg: expect.stringMatching(message) }]);
    }
  },
  TEST_TIMEOUT_MS,
);
