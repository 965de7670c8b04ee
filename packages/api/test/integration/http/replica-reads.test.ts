/** Reads of a replica by real API processes: two servers, the second follows the log of the first. */
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDatabase, type Database } from '@sluice/database/connection/connection';
import { migrate } from '@sluice/database/schema/migrate';
import {
  startReplicatedPostgres,
  type ReplicatedPostgres,
} from '@sluice/database/testing/replicated-postgres';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { afterEach, beforeAll, expect, test, vi } from 'vitest';
import { insertTenant, insertToken, type Tenant } from '../support/inserted-rows.ts';
import { startProcess } from '../support/process-under-test.ts';

const WAIT = { timeout: 60_000, interval: 50 };
const TEST_TIMEOUT_MS = 180_000;
/** Longer than a test takes: the replica counts as fresh also while it applies no log. */
const LONG_MS = 600_000;
const SHORT_MS = 500;
const TRIES_MAX = 5;
const NAME = 'sluice';

let postgres: ReplicatedPostgres;
let database: Database;
let tenant: Tenant;
const OTHER_TOKEN = 'sa_sandbox_other';

beforeAll(async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-test-replica-'));
  // The account that runs Postgres for root must pass through.
  await chmod(directory, 0o711);
  postgres = await startReplicatedPostgres(directory, async (primary) => {
    await primary.createDatabase(NAME);
    const filled = open(primary.url(NAME));
    await migrate(filled);
    tenant = await insertTenant(filled, 'key_of_a');
    await insertToken(filled, tenant.accountId, OTHER_TOKEN);
    await filled.destroy();
  });
  database = open(postgres.primary.url(NAME));
  return async () => {
    await database.destroy();
    await postgres.remove();
    await rm(directory, { recursive: true, force: true });
  };
}, TEST_TIMEOUT_MS);

afterEach(() => postgres.resumeReplay().catch(() => undefined));

const open = (url: string): Database =>
  createDatabase({ url, poolMax: 2, applicationName: 'test', onError: () => {} });

async function startApi(stalenessMsMax: number, readUrl = postgres.replica.url(NAME)) {
  const url = await startProcess(
    { url: postgres.primary.url(NAME) },
    {
      DATABASE_READ_URL: readUrl,
      DATABASE_READ_STALENESS_MS_MAX: String(stalenessMsMax),
      REDIS_URL: testRedisUrl(),
      QUEUE_PREFIX: uniquePrefix(),
      API_KEY_RATE_LIMIT_PER_SECOND: '0',
      API_RATE_LIMIT_PER_MINUTE: '0',
    },
  ).ready();
  const ask = async (path: string, credential: string, body?: object) => {
    const answer = await fetch(`${url}${path}`, {
      headers: {
        authorization: `Bearer ${credential}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { method: 'POST', body: JSON.stringify(body) }),
    });
    const staleness = answer.headers.get('x-sluice-staleness-ms-max');
    return { status: answer.status, staleness, text: await answer.text() };
  };
  return {
    url,
    ask,
    issues: () => ask('/v1/ingestion_issues?limit=100', tenant.key),
    auditLog: (token: string) => ask(`/v1/accounts/${tenant.accountId}/audit_logs`, token),
    makeKey: (token: string, name: string) =>
      ask(`/v1/accounts/${tenant.accountId}/api_credentials`, token, {
        name,
        type: 'service_account',
        scopes: [],
      }),
    /** Once the primary has answered within the two seconds that `/readyz` gives it. */
    replicaInReadiness: () =>
      vi.waitFor(async () => {
        const answer = await fetch(`${url}/readyz`);
        const { checks } = (await answer.json()) as { checks: Record<string, string> };
        expect(checks['database']).toBe('answers');
        return { status: answer.status, replica: checks['replica'] };
      }, WAIT),
  };
}
type Api = Awaited<ReturnType<typeof startApi>>;

const untilRead = (api: Api, stalenessMsMax: number) =>
  vi.waitFor(
    async () =>
      expect(await api.issues()).toMatchObject({ status: 200, staleness: String(stalenessMsMax) }),
    WAIT,
  );

/**
 * Looks at the answers while the replica applies no log.
 *
 * If a server or an API process stalls for two seconds, a look at the replica fails. While the replica gets on no further
 * its age is unknown from then on, so the API reads the primary, as it should. Then `look` is tried again.
 */
async function whileReplayIsPaused(
  apis: readonly Api[],
  look: (tries: number) => Promise<void>,
): Promise<void> {
  for (let tries = 1; ; tries++) {
    await Promise.all(apis.map((api) => untilRead(api, LONG_MS)));
    await postgres.pauseReplay();
    try {
      await look(tries);
      return;
    } catch (error) {
      const states = await Promise.all(apis.map((api) => api.replicaInReadiness()));
      const areAllRead = states.every(({ replica }) => replica?.startsWith('is read'));
      if (areAllRead || tries === TRIES_MAX) throw error;
    } finally {
      await postgres.resumeReplay();
    }
  }
}

/** As an intake's call leads to, of which no credential of the API knows. */
const addIssue = (code: string) =>
  sql`insert into ingestion_issues (environment_id, day, code, source, field, count, first_at, last_at, message)
      values (${tenant.environmentId}, current_date, ${code}, 'test', '', 1, now(), now(), 'm')`.execute(
    database,
  );

test(
  'an answer of the replica has the state of the replica, and a caller finds its own change at every API process',
  async () => {
    const [one, other] = await Promise.all([startApi(LONG_MS), startApi(LONG_MS)]);
    let issue = '';
    await whileReplayIsPaused([one, other], async (tries) => {
      issue = `while_paused_${tries}`;
      await addIssue(issue);
      const before = await one.issues();
      expect(before.staleness).toBe(String(LONG_MS));
      expect(before.text).not.toContain(issue);
      expect((await one.replicaInReadiness()).replica).toMatch(/^is read: at most \d+ ms behind$/);

      const key = `made by its caller, ${tries}`;
      expect((await one.makeKey(tenant.token, key)).status).toBe(200);
      for (const api of [one, other]) {
        const own = await api.auditLog(tenant.token);
        expect(own).toMatchObject({ status: 200, staleness: '0' });
        expect(own.text).toContain(key);
        const elses = await api.auditLog(OTHER_TOKEN);
        expect(elses).toMatchObject({ status: 200, staleness: String(LONG_MS) });
        expect(elses.text).not.toContain(key);
      }
      // A call that was refused has made no change.
      expect((await one.makeKey(OTHER_TOKEN, '')).status).toBe(422);
      expect((await other.auditLog(OTHER_TOKEN)).staleness).toBe(String(LONG_MS));
    });

    await vi.waitFor(async () => {
      const found = await one.issues();
      expect(found.staleness).toBe(String(LONG_MS));
      expect(found.text).toContain(issue);
    }, WAIT);
  },
  TEST_TIMEOUT_MS,
);

test(
  'a replica that is further behind than the bound is not read until it has caught up',
  async () => {
    const api = await startApi(SHORT_MS);
    await untilRead(api, SHORT_MS);
    await postgres.pauseReplay();
    await addIssue('beyond_the_bound');
    await vi.waitFor(async () => {
      const found = await api.issues();
      expect(found.staleness).toBe('0');
      expect(found.text).toContain('beyond_the_bound');
    }, WAIT);
    expect(await api.replicaInReadiness()).toMatchObject({
      status: 200,
      replica: expect.stringMatching(/^is not read/),
    });
    await postgres.resumeReplay();
    await untilRead(api, SHORT_MS);
  },
  TEST_TIMEOUT_MS,
);

test(
  'a URL that leads to no replica of this database is never read',
  async () => {
    const primaryItself = await startApi(LONG_MS, postgres.primary.url(NAME));
    const anotherDatabase = await startApi(LONG_MS, postgres.replica.url('postgres'));
    for (const [api, why] of [
      [primaryItself, 'no streaming replica'],
      [anotherDatabase, 'another database'],
    ] as const) {
      await vi.waitFor(
        async () =>
          expect(await api.replicaInReadiness()).toMatchObject({
            status: 200,
            replica: expect.stringContaining(why),
          }),
        WAIT,
      );
      expect(await api.issues()).toMatchObject({ status: 200, staleness: '0' });
    }
  },
  TEST_TIMEOUT_MS,
);

test(
  'a replica that goes away costs no caller an answer',
  async () => {
    const api = await startApi(LONG_MS);
    await untilRead(api, LONG_MS);
    const statuses: number[] = [];
    const stopped = postgres.replica.stop();
    for (let isStopped = false; !isStopped;) {
      isStopped = await Promise.race([stopped.then(() => true), api.issues().then(() => false)]);
      statuses.push((await api.issues()).status);
    }
    for (let calls = 0; calls < 20; calls++) statuses.push((await api.issues()).status);
    expect(new Set(statuses)).toEqual(new Set([200]));
    await vi.waitFor(async () => expect((await api.issues()).staleness).toBe('0'), WAIT);
    expect((await api.replicaInReadiness()).status).toBe(200);
  },
  TEST_TIMEOUT_MS,
);
