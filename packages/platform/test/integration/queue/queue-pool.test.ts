/** Connections of the queues in Postgres. */
import { startSessionPooler } from '@sluice/database/testing/session-pooler';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { createLogger } from '@sluice/platform/process/logger';
import { openQueuePool } from '@sluice/platform/queue/queue-pool';
import { expect, onTestFinished, test, vi } from 'vitest';

// It waited without an end, and kept its place in the pool.
test('a connection that does not get its schema in time ends with its statement', async () => {
  const { url } = await createTestDatabase();
  const pooler = await startSessionPooler(url, (clientCount) =>
    clientCount > 1 ? 'session' : 'silent',
  );
  const options = { databaseUrl: pooler.url, logger: createLogger('test', 'silent') };
  const pool = openQueuePool(options, { listenerCount: 0, schemaMsMax: 5_000 });
  onTestFinished(async () => {
    await pooler.close();
    await pool.end();
  });
  await expect(pool.query('select 1')).rejects.toThrow('Query read timeout');
  expect(pool.totalCount).toBe(0);
  // A busy Postgres may miss the time too.
  const { rows } = await vi.waitFor(
    () => pool.query<{ search_path: string }>('show search_path'),
    40_000,
  );
  expect(rows).toEqual([{ search_path: 'bullmq' }]);
});

test('the connections of the queues have an application name of their own', async () => {
  const { url } = await createTestDatabase();
  const logger = createLogger('test', 'silent');
  const options = { databaseUrl: url, applicationName: 'sluice-worker', logger };
  const pool = openQueuePool(options, { listenerCount: 0 });
  onTestFinished(() => pool.end());
  const { rows } = await pool.query('show application_name');
  expect(rows).toEqual([{ application_name: 'sluice-worker-queues' }]);
});
