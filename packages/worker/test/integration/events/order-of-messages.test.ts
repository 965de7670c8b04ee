/**
 * Reports and clicks name a message, and other calls its person.
 *
 * They take effect in the order of their addition. On both brokers; each test processes the batches by hand, the last
 * one first.
 */
import type { CommitBatch } from '@sluice/domain/operations/envelope';
import type { Operation } from '@sluice/domain/operations/operation';
import {
  identify,
  merge,
  metric,
  remove,
  suppress,
  unsubscribeDelivery,
} from '@sluice/domain/testing/sample-operations';
import { svcId } from '@sluice/domain/values/svc-id';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { processCommitBatch } from '../../../src/events/process-commit-batch.ts';
import { inEnvironment } from '../support/commit-batch-world.ts';
import { createShardsWorld, type ShardsWorld } from '../support/shards-world.ts';

describe.each(['redis', 'postgres'] as const)('on %s', (broker) => {
  let world: ShardsWorld;
  beforeAll(async () => {
    world = await createShardsWorld(broker);
  });
  afterAll(() => world.close());

  /** A workspace of its own, in which some operations are applied. */
  async function workspaceAfter(...operations: readonly Operation[]): Promise<number> {
    const environmentId = world.newEnvironment();
    await world.process(inEnvironment(environmentId, ...operations));
    return environmentId;
  }

  // The click names the message alone, and the later call names no message: the person stayed unsubscribed.
  test('a person who subscribes again after a click on the link of a message stays subscribed', async () => {
    const recipient = 'a@x.y';
    const environmentId = await workspaceAfter(
      identify('id:a', { email: recipient }),
      identify('id:b'),
      metric('m', 'delivered', { recipient }),
    );
    const [click, again, other] = (await world.add([
      inEnvironment(environmentId, unsubscribeDelivery('m')),
      inEnvironment(environmentId, identify('id:a', { unsubscribed: false })),
      inEnvironment(environmentId, identify('id:b', { unsubscribed: false })),
    ])) as [CommitBatch, CommitBatch, CommitBatch];
    const pending = world.newPending();
    expect(await processCommitBatch(world.deps, other, [], pending)).toMatchObject({
      outcome: 'applied',
      operations: 1,
    });
    await world.processToEnd(again, pending);
    await world.processToEnd(click, pending);
    expect(await world.rowsOf('people', environmentId, 'id, unsubscribed')).toEqual([
      { id: 'a', unsubscribed: false },
      { id: 'b', unsubscribed: false },
    ]);
  });

  test('a later call by svc_id waits for a click, also if the person has no identifier left', async () => {
    const recipient = 'a@x.y';
    const environmentId = await workspaceAfter(
      identify('id:a', { email: recipient }),
      metric('m', 'delivered', { recipient }),
    );
    const [person] = await world.rowsOf('people', environmentId, 'person_id');
    const who = `svc_id:${svcId(Number(person?.['person_id']))}`;
    await world.process(inEnvironment(environmentId, identify(who, { id: null, email: null })));
    const [click, again] = (await world.add([
      inEnvironment(environmentId, unsubscribeDelivery('m')),
      inEnvironment(environmentId, identify(who, { unsubscribed: false })),
    ])) as [CommitBatch, CommitBatch];
    const pending = world.newPending();
    await world.processToEnd(again, pending);
    await world.processToEnd(click, pending);
    expect(await world.rowsOf('people', environmentId, 'id, email, unsubscribed')).toEqual([
      { id: null, email: null, unsubscribed: false },
    ]);
  });

  // The report names an address of somebody else. Its message was theirs if its person was suppressed first.
  test.each<[string, () => Operation]>([
    ['suppressed', () => suppress('id:a')],
    ['deleted', () => remove('id:a')],
  ])(
    'a message whose person is %s after a report with another address stays theirs',
    async (_, end) => {
      const environmentId = await workspaceAfter(
        identify('id:a', { email: 'a@x.y' }),
        identify('id:b', { email: 'b@x.y' }),
        metric('m', 'delivered', { recipient: 'a@x.y' }),
      );
      const [report, ended, click] = (await world.add([
        inEnvironment(environmentId, metric('m', 'opened', { recipient: 'b@x.y' })),
        inEnvironment(environmentId, end()),
        inEnvironment(environmentId, unsubscribeDelivery('m')),
      ])) as [CommitBatch, CommitBatch, CommitBatch];
      const pending = world.newPending();
      await world.processToEnd(ended, pending);
      await world.processToEnd(report, pending);
      await world.processToEnd(click, pending);
      expect(await world.rowsOf('people', environmentId, 'id, unsubscribed')).toEqual([
        { id: 'b', unsubscribed: null },
      ]);
    },
  );

  test('a report without an address is about the person who was merged after it', async () => {
    const environmentId = await workspaceAfter(
      identify('id:a', { email: 'a@x.y' }),
      identify('id:p'),
      metric('m', 'delivered', { recipient: 'a@x.y' }),
    );
    const [report, merged] = (await world.add([
      inEnvironment(environmentId, metric('m', 'opened')),
      inEnvironment(environmentId, merge('id:p', 'id:a')),
    ])) as [CommitBatch, CommitBatch];
    const pending = world.newPending();
    expect(await processCommitBatch(world.deps, merged, [], pending)).toMatchObject({
      outcome: 'applied',
    });
    expect(await processCommitBatch(world.deps, report, [], pending)).toEqual({
      outcome: 'already-applied',
    });
  });

  test('a deletion does not wait for reports on messages of others', async () => {
    const environmentId = await workspaceAfter(
      identify('id:a', { email: 'a@x.y' }),
      identify('id:b', { email: 'b@x.y' }),
      metric('m', 'delivered', { recipient: 'b@x.y' }),
    );
    const [, ended] = (await world.add([
      inEnvironment(environmentId, metric('m', 'opened')),
      inEnvironment(environmentId, remove('id:a')),
    ])) as [CommitBatch, CommitBatch];
    expect(await processCommitBatch(world.deps, ended, [], world.newPending())).toMatchObject({
      outcome: 'applied',
      operations: 1,
    });
  });
});
