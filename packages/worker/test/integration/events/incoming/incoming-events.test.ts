/**
 * Incoming events in the delivery logs of webhooks.
 *
 * The format is the one of the specification. The domain decides which calls are reported (`domain/test/reports`).
 */
import {
  addDevice,
  identify,
  NOW_MS,
  relate,
  remove,
  suppress,
  track,
} from '@sluice/domain/testing/sample-operations';
import { beforeAll, beforeEach, expect, test } from 'vitest';
import { createCommitBatchWorld, type CommitBatchWorld } from '../../support/commit-batch-world.ts';
import { createIncomingWorld, type IncomingWorld } from './incoming-world.ts';

let world: CommitBatchWorld;
let workspace: IncomingWorld;
beforeAll(async () => {
  world = await createCommitBatchWorld();
});
beforeEach(async () => {
  workspace = await createIncomingWorld(world);
});

const INCOMING = ['event', 'page', 'screen', 'identify', 'group', 'delete'];

test('a tracked event reaches each webhook that asks for it in the format of the specification, and no other', async () => {
  const plain = await workspace.webhook({ events: ['event'] });
  const whole = await workspace.webhook({ events: ['*'], withPersonAttributes: true });
  const others = await workspace.webhook({
    events: ['page', 'customer_subscribed'],
    withContent: true,
  });
  await workspace.process(identify('id:ada', { email: 'ada@x.example', plan: 'pro' }));
  await workspace.process(
    track('id:ada', 'order_placed', {
      eventId: 'order-1',
      data: { total: 5 },
      occurredAtMs: NOW_MS - 61_500,
      source: 'pipelines.track',
    }),
  );
  const who = { id: 'ada', email: 'ada@x.example', svc_id: expect.stringMatching(/^a3/) };
  const body = {
    event_id: 'order-1',
    object_type: 'event',
    metric: 'order_placed',
    timestamp: Math.floor((NOW_MS - 61_500) / 1000),
    data: {
      customer_id: 'ada',
      email_address: 'ada@x.example',
      identifiers: who,
      name: 'order_placed',
      properties: { total: 5 },
      source: 'pipelines.track',
    },
  };
  const [only] = await workspace.logged(plain);
  expect(only).toEqual({ type: 'event', personId: expect.any(Number), body });
  expect((await workspace.logged(whole)).at(-1)?.body).toEqual({
    ...body,
    data: { ...body.data, person_attributes: { plan: 'pro' } },
  });
  expect(await workspace.logged(others)).toEqual([]);
});

test('every type that comes in is logged for a webhook that lists it', async () => {
  const webhookId = await workspace.webhook({ events: INCOMING });
  await workspace.process(
    track('id:1', 'order_placed'),
    track('id:1', 'Home', { kind: 'page' }),
    track('id:1', 'Cart', { kind: 'screen' }),
    identify('id:1', { plan: 'pro' }),
    relate('id:1', 'acme'),
    addDevice('id:1', 'token'),
    remove('id:1'),
  );
  expect(
    (await workspace.logged(webhookId)).map(({ type, body }) => `${type} ${body.metric}`),
  ).toEqual([
    'event order_placed',
    'page Home',
    'screen Cart',
    'identify identify',
    'group add_relationships',
    'delete delete',
  ]);
});

test('an anonymous event is reported with its anonymous id when it comes, and not again when it is somebody’s', async () => {
  const webhookId = await workspace.webhook({ events: ['event'] });
  await workspace.process(track('anonymous_id:v', 'seen'));
  await workspace.process(identify('id:1', {}, { anonymousId: 'v' }));
  await workspace.process(track('anonymous_id:v', 'bought'));
  const rows = await workspace.logged(webhookId);
  expect(rows.map(({ body }) => [body.metric, body.data])).toEqual([
    [
      'seen',
      expect.objectContaining({ anonymous_id: 'v', identifiers: { id: null, email: null } }),
    ],
    ['bought', expect.objectContaining({ anonymous_id: 'v', customer_id: '1' })],
  ]);
  expect(rows.map(({ personId }) => personId)).toEqual([null, expect.any(Number)]);
});

test('events of a suppressed person are not reported, and late events only if they are asked for', async () => {
  const webhookId = await workspace.webhook({ events: ['event', 'identify'] });
  const late = await workspace.webhook({ events: ['event'], withLate: true });
  await workspace.process(suppress('id:1'), suppress('email:b@x.example'));
  await workspace.process(
    track('id:1', 'a'),
    identify('id:1', { plan: 'pro' }),
    track('email:b@x.example', 'a'),
    track('id:2', 'old', { occurredAtMs: NOW_MS - 73 * 3_600_000 }),
  );
  expect(await workspace.names(webhookId)).toEqual([]);
  expect(await workspace.names(late)).toEqual(['old']);
});
