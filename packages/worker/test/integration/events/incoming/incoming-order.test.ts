/** The log of incoming events has each once, in order. */
import { identify, metric, track } from '@sluice/domain/testing/sample-operations';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { processCommitBatch } from '../../../../src/events/process-commit-batch.ts';
import {
  createCommitBatchWorld,
  inEnvironment,
  type CommitBatchWorld,
} from '../../support/commit-batch-world.ts';
import { createIncomingWorld, type IncomingWorld } from './incoming-world.ts';

let world: CommitBatchWorld;
let workspace: IncomingWorld;
beforeAll(async () => {
  world = await createCommitBatchWorld();
});
beforeEach(async () => {
  workspace = await createIncomingWorld(world);
});

test('an event id is reported once: in one commit batch, in a later one, and of a batch that runs again', async () => {
  const webhookId = await workspace.webhook({ events: ['event'] });
  const same = (name: string) => track('id:1', name, { eventId: 'same' });
  const batch = {
    id: world.newId(),
    operations: inEnvironment(workspace.environmentId, same('a'), same('b')),
  };
  await processCommitBatch(world.deps, batch);
  await processCommitBatch(world.deps, batch);
  await workspace.process(same('c'), track('id:1', 'd'));
  expect(await workspace.names(webhookId)).toEqual(['a', 'd']);
});

test('a commit batch that is cut at any statement logs no event, and then each event once', async () => {
  const webhookId = await workspace.webhook({ events: ['*'] });
  const operations = inEnvironment(
    workspace.environmentId,
    track('anonymous_id:v', 'seen'),
    identify('id:1', { unsubscribed: true }, { anonymousId: 'v' }),
    track('id:1', 'bought'),
  );
  const batch = { id: world.newId(), operations };
  let cutAfter = 0;
  for (let isApplied = false; !isApplied; cutAfter++) {
    let left = cutAfter;
    const database = world.database.withPlugin({
      transformQuery: ({ node }) => node,
      transformResult: ({ result }) => {
        if (left-- === 0) throw new Error('cut');
        return Promise.resolve(result);
      },
    });
    try {
      await processCommitBatch({ ...world.deps, database }, batch);
      isApplied = true;
    } catch (error) {
      expect((error as Error).message).toBe('cut');
      expect(await workspace.logged(webhookId)).toEqual([]);
    }
  }
  expect(cutAfter).toBeGreaterThan(8);
  expect(await workspace.names(webhookId)).toEqual(['seen', 'unsubscribed', 'identify', 'bought']);
});

test("one person's events and reporting events stand in the order of the calls, each about that person", async () => {
  const webhookId = await workspace.webhook({ events: ['*'] });
  await workspace.process(identify('id:1', { unsubscribed: false }));
  await workspace.process(
    track('id:1', 'a'),
    identify('id:1', { unsubscribed: true }),
    track('id:1', 'b'),
    metric('m', 'sent', { recipient: 'nobody@x.example' }),
  );
  await workspace.process(track('id:1', 'c'));
  const rows = await workspace.logged(webhookId);
  expect(rows.map(({ body }) => body.metric)).toEqual([
    'subscribed',
    'identify',
    'a',
    'unsubscribed',
    'identify',
    'b',
    'sent',
    'c',
  ]);
  const people = new Set(rows.filter(({ body }) => body.metric !== 'sent').map((r) => r.personId));
  expect([...people]).toEqual([expect.any(Number)]);
});

test('an operation that a fault of ours keeps back is left out, and its neighbours are reported', async () => {
  const webhookId = await workspace.webhook({ events: ['*'] });
  const poison = { ...identify('id:2', {}), attributes: null as never };
  await workspace.process(track('id:1', 'a'), poison, track('id:1', 'b'));
  expect(await workspace.names(webhookId)).toEqual(['a', 'b']);
});
