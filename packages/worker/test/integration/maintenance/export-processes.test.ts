/** An export, with the processes that operators run: ordered, its worker killed, polled, fetched. */
import { createHash } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import type { Database } from '@sluice/database/connection/connection';
import { DEMO, seedDemoWorkspace } from '@sluice/database/demo/seed-demo';
import { createTestDatabase } from '@sluice/database/testing/testing';
import {
  startServiceUnderTest,
  type ServiceUnderTest,
} from '@sluice/platform/testing/service-under-test';
import { sql } from 'kysely';
import { afterEach, expect, test, vi } from 'vitest';
import { insertAuditedAccount } from '../support/audit-log-rows.ts';

const ENTRIES = 60_000;

const running: ServiceUnderTest[] = [];
afterEach(async () => {
  await Promise.all(running.splice(0).map((service) => service.kill('SIGKILL')));
});

async function start(service: string, settings: Record<string, string>): Promise<ServiceUnderTest> {
  const main = fileURLToPath(new URL(`../../../../${service}/src/main.ts`, import.meta.url));
  const started = await startServiceUnderTest(main, settings);
  running.push(started);
  return started;
}

/** The export stands in its middle until `use` is done: otherwise it may be complete before its worker is killed. */
async function holdExport(database: Database, use: () => Promise<void>): Promise<void> {
  await sql`
    create function hold_export() returns trigger language plpgsql as $$
    begin
      perform pg_advisory_xact_lock(1);
      return new;
    end $$`.execute(database);
  await sql`
    create trigger hold_export before update on audit_log_exports for each row
    when (old.part_count <= 3 and new.part_count > 3) execute function hold_export()`.execute(
    database,
  );
  await database.connection().execute(async (holder) => {
    await sql`select pg_advisory_lock(1)`.execute(holder);
    await use();
    await sql`select pg_advisory_unlock(1)`.execute(holder);
  });
}

interface Polled {
  readonly id: string;
  readonly status: string;
  readonly progress: number;
  readonly row_count: number | null;
  readonly sha256: string | null;
  readonly download_url: string | null;
}

test(
  'a worker that is killed in the middle is followed by one that goes on',
  { timeout: 400_000 },
  async () => {
    const { database, url } = await createTestDatabase();
    await seedDemoWorkspace(database);
    await sql`delete from audit_chains where account_id = ${DEMO.accountId}`.execute(database);
    await insertAuditedAccount(database, DEMO.accountId, ENTRIES);
    const settings = { DATABASE_URL: url, SHARD_COUNT: '1', QUEUE_STALLED_AFTER_MS: '1500' };
    const [api, first] = await Promise.all([
      start('api', { ...settings, API_PORT: '0' }),
      start('worker', { ...settings, WORKER_PORT: '0' }),
    ]);
    const logs = `${api.url}/v1/accounts/${DEMO.accountId}/audit_logs`;
    const headers = {
      authorization: `Bearer ${DEMO.accountToken}`,
      'content-type': 'application/json',
    };
    const body = {
      format: 'ndjson',
      start_time: '2026-01-01T00:00:00Z',
      end_time: '2026-12-31T00:00:00Z',
      object_type: 'account',
    };
    let id = '';
    const poll = async (): Promise<Polled> => {
      const answer = await fetch(`${logs}/exports/${id}`, { headers });
      return ((await answer.json()) as { export: Polled }).export;
    };

    await holdExport(database, async () => {
      const ordered = await fetch(`${logs}/export`, {
        method: 'POST',
        headers,
        body: JSON.stringify(body),
      });
      ({ id } = ((await ordered.json()) as { export: Polled }).export);
      await vi.waitFor(async () => expect((await poll()).progress).toBeGreaterThan(0), {
        timeout: 60_000,
        interval: 50,
      });
      await first.kill('SIGKILL');
    });
    const atDeath = await poll();
    expect(atDeath).toMatchObject({ status: 'processing', download_url: null });

    await start('worker', { ...settings, WORKER_PORT: '0' });
    const done = await vi.waitFor(
      async () => {
        const polled = await poll();
        expect(polled.progress).toBeGreaterThanOrEqual(atDeath.progress);
        expect(polled.status).toBe('completed');
        return polled;
      },
      { timeout: 120_000, interval: 200 },
    );

    expect(done).toMatchObject({ progress: 1, row_count: ENTRIES });
    // The link needs no token.
    const fetched = await fetch(String(done.download_url));
    expect(fetched.headers.get('content-type')).toBe('application/x-ndjson');
    const file = Buffer.from(await fetched.arrayBuffer());
    expect(createHash('sha256').update(file).digest('hex')).toBe(done.sha256);
    const ids = file
      .toString()
      .trimEnd()
      .split('\n')
      .map((line) => (JSON.parse(line) as { id: number }).id);
    expect(ids).toEqual(Array.from({ length: ENTRIES }, (_, index) => index + 1));
  },
);
