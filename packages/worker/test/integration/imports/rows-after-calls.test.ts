/**
 * A batch of rows counts as acknowledged when it commits: a call that was acknowledged before it takes effect first,
 * though it is still queued.
 */
import { PendingBatches } from '@sluice/platform/consumers/pending-batches';
import type { PendingBatch } from '@sluice/platform/consumers/pending-index';
import { openTakingSide } from '@sluice/platform/consumers/queue-taking';
import { createLogger } from '@sluice/platform/process/logger';
import { openProducer, type Producer } from '@sluice/platform/queue/queue';
import { writeFlush } from '@sluice/platform/queue/staged-flushes';
import { testRedisUrl, uniquePrefix } from '@sluice/platform/testing/testing';
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import { identify, merge as mergeInto, track } from '@sluice/domain/testing/sample-operations';
import { sql } from 'kysely';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import {
  waitForAcknowledged,
  type AcknowledgedCalls,
} from '../../../src/events/acknowledged-calls.ts';
import { keysOfOwners } from '../../../src/events/earlier-batches.ts';
import { processCommitBatch } from '../../../src/events/process-commit-batch.ts';
import { ImportsWorld, newId } from '../support/imports-world.ts';

let world: ImportsWorld;
let pending: PendingBatches;
let producer: Producer;
let calls: AcknowledgedCalls;
const add = (envelope: CommitBatch) => producer.addCommitBatches([{ shard: 0, envelope }]);
const closes: (() => Promise<unknown>)[] = [];

beforeAll(async () => {
  world = await ImportsWorld.create();
  const options = {
    databaseUrl: '',
    redisUrl: testRedisUrl(),
    prefix: uniquePrefix(),
    shardCount: 1,
    logger: createLogger('test', 'silent'),
  };
  producer = await openProducer(options);
  const side = openTakingSide(options, 0, () => undefined);
  pending = new PendingBatches(side.pendingLog, side.readBatches, () => performance.now());
  calls = { pending, stage: producer.stage };
  closes.push(
    () => producer.close(),
    async () => side.leave(),
    () => side.close(),
  );
});
afterAll(async () => {
  for (const close of closes) await close();
});

const WAIT_MS_MAX = 30_000;
const FILE = '_svc_customer_id,_svc_name,_svc_timestamp\nnew,bought,1769860000\n';

test('rows wait for queued calls about their people, and for no others', async () => {
  const signUp = { id: newId(), operations: [identify('id:new')] };
  await add(signUp);
  await add({ id: newId(), operations: [identify('id:somebody else')] });
  const key = await world.upload(FILE);
  const running = world.run({ calls });
  // It looks at the log again and again meanwhile, without a write.
  const looks = vi.spyOn(pending, 'changed');
  await vi.waitFor(() => expect(looks).toHaveBeenCalled(), WAIT_MS_MAX);
  expect(await world.events()).toEqual([]);
  const { outcome } = await processCommitBatch(world.processing(), signUp, [], pending);
  expect(outcome).toBe('applied');
  await running;
  expect(await world.shown(key)).toMatchObject({ rowsImported: 1, rowsFailed: 0 });
});

test('rows wait for a queued merge that names their person by an identifier of an earlier queued call', async () => {
  const other = { id: newId(), operations: [identify('id:primary')] };
  await processCommitBatch(world.processing(), other, [], undefined);
  const sets = { id: newId(), operations: [identify('id:given', { email: 'given@x.example' })] };
  const merge = {
    id: newId(),
    operations: [mergeInto('id:primary', 'email:given@x.example')],
  };
  await add(sets);
  await add(merge);
  const key = await world.upload(FILE.replace('new', 'given'));
  const lookedUp = vi.spyOn(pending, 'naming');
  const running = world.run({ calls });
  await vi.waitFor(() => expect(lookedUp).toHaveBeenCalledOnce(), WAIT_MS_MAX);
  await processCommitBatch(world.processing(), sets, [], pending);
  // Whether it looks again and waits, or writes the row, this ends.
  const looksAgain = vi.waitFor(() => expect(lookedUp).toHaveBeenCalledTimes(2), WAIT_MS_MAX);
  await Promise.race([running, looksAgain]);
  await processCommitBatch(world.processing(), merge, [], pending);
  await running;
  // The merge came first, so the id has no person any more.
  expect(await world.shown(key)).toMatchObject({ rowsImported: 0, rowsFailed: 1 });
});

test('rows wait for a merge by a name that their person gets while names are looked up', async () => {
  const other = { id: newId(), operations: [identify('id:kept')] };
  await processCommitBatch(world.processing(), other, [], undefined);
  const sets = { id: newId(), operations: [identify('id:late', { email: 'late@x.example' })] };
  const merge = { id: newId(), operations: [mergeInto('id:kept', 'email:late@x.example')] };
  await add(sets);
  await add(merge);
  // The email is given between the answer of the look-up and the question to the log.
  const lookUps = new Set<object>();
  let isGiven = false;
  const database = world.database.withPlugin({
    transformQuery({ node, queryId }) {
      if (JSON.stringify(node).includes('from named left join person_identifiers'))
        lookUps.add(queryId);
      return node;
    },
    async transformResult({ result, queryId }) {
      if (isGiven || !lookUps.has(queryId)) return result;
      isGiven = true;
      await processCommitBatch(world.processing(), sets, [], pending);
      return result;
    },
  });
  const rows = [track('id:late', 'bought')];
  const looks = vi.spyOn(pending, 'changed').mockClear();
  const bound = { renewIntervalMs: WAIT_MS_MAX, renew: async () => true };
  const waiting = waitForAcknowledged(database, calls, rows, bound);
  const looksAgain = vi.waitFor(() => expect(looks).toHaveBeenCalled(), WAIT_MS_MAX);
  const first = await Promise.race([waiting.then(() => 'ended'), looksAgain.then(() => 'waits')]);
  expect(first).toBe('waits');
  expect(isGiven).toBe(true);
  await processCommitBatch(world.processing(), merge, [], pending);
  expect(await waiting).toBe(true);
});

test('the lease is renewed while the people of rows are renamed again and again', async () => {
  const rows = [track('id:renamed', 'bought')];
  const keys = await keysOfOwners(world.database, rows);
  const applied = { place: -1, keys: Uint32Array.from(keys) } as PendingBatch;
  const looks = vi.spyOn(pending, 'watchForgotten').mockImplementation(() => ({
    batches: looks.mock.calls.length > 10 ? [] : [applied],
    end: () => undefined,
  }));
  const bound = { renewIntervalMs: 0, renew: async () => false };
  expect(await waitForAcknowledged(world.database, calls, rows, bound)).toBe(false);
  expect(looks).toHaveBeenCalledOnce();
  looks.mockRestore();
});

test('the lease of an import whose calls take longer is kept, and calls that come meanwhile are not waited for', async () => {
  const signUp = { id: newId(), operations: [identify('id:slow')] };
  await add(signUp);
  const key = await world.upload(FILE.replace('new', 'slow'));
  const leaseMs = 2_000;
  const running = world.run({ calls, leaseMs });
  const looks = vi.spyOn(pending, 'changed');
  await vi.waitFor(() => expect(looks).toHaveBeenCalled(), WAIT_MS_MAX);
  await add({ id: newId(), operations: [identify('id:slow')] });
  const heldUntil = async () =>
    (
      await sql<{ ms: string }>`
      select extract(epoch from held_until) * 1000 as ms from imports
       where import_id = ${key.importId}`.execute(world.database)
    ).rows[0]?.ms;
  const firstMs = Number(await heldUntil());
  await vi.waitUntil(async () => Number(await heldUntil()) > firstMs, WAIT_MS_MAX);
  await processCommitBatch(world.processing(), signUp, [], pending);
  await running;
  expect(await world.shown(key)).toMatchObject({ rowsImported: 1, rowsFailed: 0 });
});

test('an import whose calls are waited for is given back by a worker that stops', async () => {
  const signUp = { id: newId(), operations: [identify('id:stopped')] };
  await add(signUp);
  const key = await world.upload(FILE.replace('new', 'stopped'));
  const stopping = new AbortController();
  const running = world.run({ calls, leaseMs: 300, stopping: stopping.signal });
  stopping.abort();
  await running;
  await processCommitBatch(world.processing(), signUp, [], pending);
  await world.run({ calls });
  expect(await world.shown(key)).toMatchObject({ rowsImported: 1, rowsFailed: 0 });
});

test('rows of an import whose calls do not come to an end are left for the next try', async () => {
  const signUp = { id: newId(), operations: [identify('id:later')] };
  await add(signUp);
  const key = await world.upload(FILE.replace('new', 'later'));
  await world.run({ calls, leaseMs: 20 });
  expect(await world.shown(key)).toMatchObject({ rowsImported: 0, rowsFailed: 0 });
  await processCommitBatch(world.processing(), signUp, [], pending);
  await world.endLeases();
  await world.run({ calls });
  expect(await world.shown(key)).toMatchObject({ rowsImported: 1, rowsFailed: 0 });
});

test('rows wait for calls that are not in the queues yet: staged, or on the disk of an intake', async () => {
  const signUp = { id: newId(), operations: [identify('id:staged')] };
  const intake = { intakeId: 'one', formerIds: [], leaseEndMs: undefined, leaseMs: 60_000 };
  const { nowMs } = await producer.stage.report({ ...intake, oldestMs: undefined });
  await producer.stage.report({ ...intake, oldestMs: nowMs });
  const key = await world.upload(FILE.replace('new', 'staged'));
  const looks = vi.spyOn(producer.stage, 'isEmpty');
  const running = world.run({ calls });
  await vi.waitFor(() => expect(looks).toHaveBeenCalled(), WAIT_MS_MAX);
  await producer.stage.put([{ atMs: nowMs, text: writeFlush([{ shard: 0, envelope: signUp }]) }]);
  await vi.waitUntil(async () => {
    await producer.stage.report({ ...intake, oldestMs: undefined });
    return (await producer.moveStaged('one')) === 1;
  }, WAIT_MS_MAX);
  expect(await world.shown(key)).toMatchObject({ rowsImported: 0, rowsFailed: 0 });
  await processCommitBatch(world.processing(), signUp, [], pending);
  await running;
  expect(await world.shown(key)).toMatchObject({ rowsImported: 1, rowsFailed: 0 });
  await producer.stage.leave('one');
});

test('rows of an import whose calls do not leave the disk of an intake are left for the next try', async () => {
  const intake = { intakeId: 'two', formerIds: [], leaseEndMs: undefined, leaseMs: 60_000 };
  await producer.stage.report({ ...intake, oldestMs: 1 });
  await world.people('there');
  const key = await world.upload(FILE.replace('new', 'there'));
  await world.run({ calls, leaseMs: 20 });
  expect(await world.shown(key)).toMatchObject({ rowsImported: 0, rowsFailed: 0 });
  await producer.stage.leave('two');
  await world.endLeases();
  await world.run({ calls });
  expect(await world.shown(key)).toMatchObject({ rowsImported: 1, rowsFailed: 0 });
});
