/** Rows that a transaction reads before its claim is answered. */
import { createDatabase } from '@sluice/database/connection/connection';
import { inPipelinedTransaction } from '@sluice/database/connection/pipelined-transaction';
import { startTcpProxyTo } from '@sluice/database/testing/tcp-proxy';
import { identify, remove, suppress, track } from '@sluice/domain/testing/sample-operations';
import type { Operation, RecordIssue } from '@sluice/domain/operations/operation';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, onTestFinished, test, vi } from 'vitest';
import { applyBatches, findLogged } from '../../../src/events/batch-transaction.ts';
import { inEnvironment } from '../support/commit-batch-world.ts';
import { createShardsWorld, type ShardsWorld } from '../support/shards-world.ts';

let world: ShardsWorld;
beforeAll(async () => {
  world = await createShardsWorld('redis');
});
afterAll(() => world.close());

/**
 * Adds a call about `id:5` and an event of that person's email, and applies the call between the event's read and its look
 * at earlier batches.
 *
 * @param by - whose view of the log meets the end of the call.
 */
async function applyBehindRead(
  environmentId: number,
  call: Operation,
  by: 'this process' | 'another process',
): Promise<void> {
  const email = 'ada@example.com';
  const applicationName = `answers held, ${environmentId}`;
  await world.process(inEnvironment(environmentId, identify('id:5', { email })));
  const [earlier, event] = await world.add([
    inEnvironment(environmentId, call),
    inEnvironment(environmentId, track(`email:${email}`, 'order_placed')),
  ]);
  if (!earlier || !event) throw new Error('nothing was added');
  const pending = world.newPending();
  await pending.find(event.id);
  const proxy = await startTcpProxyTo(world.databaseUrl);
  onTestFinished(() => proxy.close());
  const database = createDatabase({
    url: proxy.url,
    poolMax: 1,
    applicationName,
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
         where application_name = ${applicationName} and state = 'idle in transaction'`.execute(
        world.database,
      );
      expect(rows[0]?.query).toContain('join person_identifiers');
    },
    { timeout: 60_000, interval: 20 },
  );
  await world.processToEnd(earlier, by === 'this process' ? pending : world.newPending());
  proxy.restore();
  await applied;
}

test('a suppression that is applied behind the read, and known before the look at earlier batches, counts', async () => {
  const environmentId = world.newEnvironment();
  await applyBehindRead(environmentId, suppress('id:5'), 'this process');
  expect(await world.eventNames(environmentId)).toEqual([]);
});

// The look at earlier batches does not find the identifier any more that both calls mean.
test('a deletion that another process applies behind the read counts before this one knows of it', async () => {
  const environmentId = world.newEnvironment();
  await applyBehindRead(environmentId, remove('id:5'), 'another process');
  const { events } = (await world.stateOf(environmentId)) as { readonly events: unknown };
  expect(events).toEqual([
    JSON.stringify({ name: 'order_placed', id: null, email: 'ada@example.com' }),
  ]);
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
