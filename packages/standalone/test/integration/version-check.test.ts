/**
 * Processes of this version on the schema of a newer one.
 *
 * As during a rolling upgrade. Additions of a newer version do not matter to them; its removals keep them from
 * starting.
 */
import { fileURLToPath } from 'node:url';
import { migrate, MIGRATIONS } from '@sluice/database/schema/migrate';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { startServiceUnderTest } from '@sluice/platform/testing/service-under-test';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import { sql, type Kysely } from 'kysely';
import { expect, test, vi } from 'vitest';

const mainOf = (service: string) =>
  fileURLToPath(new URL(`../../../${service}/src/main.ts`, import.meta.url));
const WAIT = { timeout: 60_000, interval: 50 };
const SERVICES = ['intake', 'worker', 'api'] as const;

const newerStep = (statement: string) => ({
  async up(database: Kysely<unknown>) {
    await sql.raw(statement).execute(database);
  },
});
const EXPANDED = {
  ...MIGRATIONS,
  '9001_expand': newerStep(
    `alter table people add column nickname text;
     alter table events add column shown boolean not null default true;
     create table nicknames (environment_id bigint, nickname text, primary key (environment_id, nickname))`,
  ),
};
const CONTRACTED = {
  ...EXPANDED,
  '9002_contract': {
    ...newerStep('alter table people drop column attributes'),
    oldestCode: '9001_expand',
  },
};

const settingsFor = (url: string) => ({
  DATABASE_URL: url,
  REDIS_URL: testRedisUrl(),
  QUEUE_PREFIX: uniquePrefix(),
  SHARD_COUNT: '2',
  INTAKE_PORT: '0',
  WORKER_PORT: '0',
  API_PORT: '0',
});

test('an event passes through this version on a schema that a newer one has added to', async () => {
  const { database, url } = await createTestDatabase();
  await migrate(database, EXPANDED);
  await seedDemoWorkspace(database);
  const settings = settingsFor(url);
  const services = await Promise.all(
    SERVICES.map((service) => startServiceUnderTest(mainOf(service), settings)),
  );
  const answer = await fetch(`${services[0]?.url}/v1/track`, {
    method: 'POST',
    headers: {
      Authorization: `Basic ${Buffer.from(`${DEMO.writeKey}:`).toString('base64')}`,
      'X-Strict-Mode': '1',
    },
    body: JSON.stringify({ userId: 'ann', event: 'upgraded', messageId: 'during-upgrade' }),
  });
  expect(answer.status).toBe(200);
  await vi.waitFor(async () => {
    const { rows } = await sql`
      select from events where environment_id = ${DEMO.environmentId}
                           and event_id = 'during-upgrade'`.execute(database);
    expect(rows).toHaveLength(1);
  }, WAIT);
  await Promise.all(services.map((service) => service.kill('SIGTERM')));
}, 180_000);

test('processes of this version do not start on a schema that lost a required part, or on one not migrated yet', async () => {
  const ahead = await createTestDatabase();
  await migrate(ahead.database, CONTRACTED);
  const behind = await createTestDatabase();
  await sql`delete from kysely_migration where name = '0024_schema_requirements'`.execute(
    behind.database,
  );
  // Each looks, and the code that judges the result is the same.
  for (const [service, url, message] of [
    ['intake', ahead.url, 'ahead.*9001_expand.*start a newer version'],
    ['api', ahead.url, 'ahead.*9001_expand.*start a newer version'],
    ['worker', behind.url, 'behind.*npm run migrate, then start again'],
  ] as const) {
    const settings = { ...settingsFor(url), LOG_LEVEL: 'fatal' };
    await expect(startServiceUnderTest(mainOf(service), settings)).rejects.toThrow(
      new RegExp(
        `ended with 1:\\n{"level":60,[^\\n]*"code":"MIGRATION_MISMATCH","msg":"[^"]*${message}"}$`,
      ),
    );
  }
}, 180_000);
