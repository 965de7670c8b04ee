/** `npm start` on three logins: a call is applied and delivered, a purchase is made and settled, each service by its own login. */
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createDatabase } from '@sluice/database/connection/connection';
import { DEMO } from '@sluice/database/demo/seed-demo';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';
import { startStandaloneUnderTest } from './standalone-under-test.ts';

const WAIT = { timeout: 60_000, interval: 200 };

test('all of Sluice runs on three logins of the embedded Postgres that are not the owner', async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sluice-test-logins-'));
  onTestFinished(() => rm(directory, { recursive: true, force: true }));
  const running = await startStandaloneUnderTest(directory);
  const [port, password] = await Promise.all(
    ['postgres-port', 'postgres-password'].map((name) => readFile(join(directory, name), 'utf8')),
  );
  const owner = createDatabase({
    url: `postgres://sluice:${password}@127.0.0.1:${port}/sluice`,
    poolMax: 1,
    applicationName: 'test',
    onError: () => undefined,
  });

  const taken = await running.call('/v1/identify', {
    userId: 'of-logins',
    traits: { plan: 'pro' },
  });
  expect(taken.status).toBe(200);
  await vi.waitFor(async () => {
    const { rows } = await sql`
      select from people where id = 'of-logins' and attributes ->> 'plan' = 'pro'`.execute(owner);
    expect(rows).toHaveLength(1);
  }, WAIT);

  const person = await fetch(`${running.apiUrl}/v1/customers/of-logins/attributes`, {
    headers: { authorization: `Bearer ${DEMO.appKey}` },
  });
  expect(person.status).toBe(200);

  // A pool closes its idle connections, and the start closes its own one.
  await vi.waitFor(async () => {
    const { rows } = await sql<{ login: string }>`
      select distinct usename as login from pg_stat_activity
       where backend_type = 'client backend' and pid <> pg_backend_pid()
         and application_name like 'sluice-%' order by 1`.execute(owner);
    expect(rows.map(({ login }) => login)).toEqual([
      'sluice_api_login',
      'sluice_intake_login',
      'sluice_worker_login',
    ]);
  }, WAIT);
  await owner.destroy();
  await running.stop();
  // Jobs, reconciliation loops and the upkeep of partitions have run by now, each at its start.
  expect(await readFile(join(directory, 'postgres.log'), 'utf8')).not.toContain(
    'permission denied',
  );
}, 300_000);
