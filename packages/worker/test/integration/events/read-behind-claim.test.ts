/** Rows that a transaction reads before its claim is answered. */
import { createDatabase } from '@sluice/database/connection/connection';
import { inPipelinedTransaction } from '@sluice/database/connection/pipelined-transaction';
import { startTcpProxyTo } from '@sluice/database/testing/tcp-proxy';
import { identify, suppress, track } from '@sluice/domain/testing/sample-operations';
import type { RecordIssue } from '@sluice/domain/operations/operation';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { applyBatches, findLogged } from '../../../src/events/batch-transaction.ts';
import { inEnvironment } from '../support/commit-batch-world.ts';
import { createShardsWorld, type ShardsWorld } from '../support/shards-world.ts';

const APPLICATION_NAME = 'answers held';

let world: ShardsWorld;
beforeAll(async () => {
  world = await createShardsWorld('redis');
});
afterAll(() => world.close());

test('a suppression that is applied behind the read, and known before the look at earlier batches, counts', async () => {
  const environmentId = world.newEnvironment();
  const email = 'ada@example.com';
  await world.process(inEnvironment(environmentId, identify('id:5', { email })));
  const [suppression, event] = await world.add([
    inEnvironment(environmentId, suppress('id:5')),
    inEnvironment(environmentId, track(`email:${email}`, 'order_placed')),
  ]);
  if (!suppression || !event) throw new Error('nothing was added');
  const pending = world.newPending();
  await pending.find(event.id);
  const proxy = await startTcpProxyTo(world.databaseUrl);
  onTestFinished(() => proxy.close());
  const database = createDatabase({
    url: proxy.url,
    poolMax: 1,
    applicationName: APPLICATION_NAME,
    onError: () => undefined,
  });
  onTestFinished(() => database.destroy());
  await inPipelinedTransaction(database, () => Promise.resolve());
  proxy.holdAnswers();
  const applied = world.processToEnd(event, pending, { ...world.deps, database });
  await vi.waitFor(
    async () => {
      const { rows } = await sql<{ query: string }>`
        select query from pg_stat_activity
         where application_name = ${APPLICATION_NAME} and state = 'idle in transaction'`.execute(
        world.database,
      );
      expect(rows[0]?.query).toContain('join person_identifiers');
    },
    { timeout: 60_000, interval: 20 },
  );
  await world.processToEnd(suppression, pending);
  proxy.restore();
  await applied;
  expect(await world.eventNames(environmentId)).toEqual([]);
});

test('issues of named fields are recorded in the transaction of their batch', async () => {
  const environmentId = world.newEnvironment();
  const issue: RecordIssue = {
    type: 'issue.record',
    environmentId,
    receivedAtMs: 1_770_000_000_000,
    source: 'identify',
    count: 1,
    issue: { code: 'invalid', field: 'traits.age', message: 'is no number', sample: '{}' },
  };
  const [batch] = await world.add([[issue]]);
  if (!batch) throw new Error('nothing was added');
  const pending = world.newPending();
  const outcome = await applyBatches(world.deps, [batch], pending, {
    isOfOneShard: true,
    isIsolating: false,
    looksForTakenIds: false,
    looksForRemadeNames: false,
    logged: await findLogged(pending, [batch]),
  });
  expect(outcome).toMatchObject({ outcome: 'applied', counts: { issues: 1, parked: 0 } });
});
