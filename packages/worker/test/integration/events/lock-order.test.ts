/**
 * Transactions that lock the same rows do so in one order.
 *
 * The order is in `database/README.md`. So Postgres ends no transaction.
 */
import { endEssentialsTrial, updateAccountStanding } from '@sluice/database/billing/account-plans';
import { recordChange } from '@sluice/database/changes/record-change';
import { holdAccountToBuy } from '@sluice/database/billing/card-changes';
import type { Transaction } from '@sluice/database/connection/connection';
import { appendDeliveries } from '@sluice/database/delivery/deliveries';
import { probeNow } from '@sluice/database/replays/lane-actions';
import { cancelReplay } from '@sluice/database/replays/replays';
import { insertTestWebhook, insertTestWorkspace } from '@sluice/database/testing/test-tenants';
import { deleteApplication, makeApplication } from '@sluice/database/webhooks/applications';
import {
  findPendingPurchase,
  findPurchaseWorkflow,
  insertPurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import {
  BY_TEST,
  createTestDatabase,
  lockWaiterCount,
  untilLockWaiters,
} from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { status } from '../support/lane-world.ts';
import { CATALOGUE } from '../support/purchase-world.ts';
import { createDelivered, start } from '../support/replay-world.ts';
import { startSubscriptions } from '../support/subscription-world.ts';

test('a purchase that starts while a checkout ends joins it, and the checkout ends', async () => {
  const world = await startSubscriptions();
  const { database } = world;
  const accountId = await world.addAccount('pm_card_visa');
  const workflow = await world.checkout(accountId, 'premium_month');
  const held = Promise.withResolvers<void>();
  const starting = async () =>
    database.transaction().execute(async (transaction) => {
      expect(await holdAccountToBuy(transaction, accountId, false)).toBe('free');
      held.resolve();
      // The worker has locked the purchase workflow, and now wants the account.
      await untilLockWaiters(database, 1);
      const other = { ...workflow, runId: 'run_other', expiresAtMs: null };
      expect(await insertPurchaseWorkflow(transaction, other, world.deps.now())).toBeUndefined();
      return findPendingPurchase(transaction, accountId, 'checkout');
    });
  let started: ReturnType<typeof starting> | undefined;
  const ended = await world.advance(workflow, {
    async onPoint(point) {
      if (point !== 'after-vendor:subscribe') return;
      started = starting();
      await held.promise;
    },
  });
  expect(ended).toBe('ended');
  expect(await started).toMatchObject({ runId: workflow.runId });
  expect(await findPurchaseWorkflow(database, accountId, workflow.runId)).toMatchObject({
    status: 'success',
  });
});

test.each<[string, (transaction: Transaction, accountId: number) => Promise<unknown>]>([
  [
    'an account becomes past due',
    (transaction, accountId) => {
      const standing = { accountStatus: 'past_due', planStatus: 'active' };
      return updateAccountStanding(transaction, accountId, standing, Date.now());
    },
  ],
  [
    'an account leaves its trial',
    (transaction, accountId) => {
      const builder = CATALOGUE.plans.find((plan) => plan.tier === 'builder');
      return endEssentialsTrial(transaction, accountId, builder, Date.now());
    },
  ],
])('the first entry of an audit log is written while %s', async (_what, change) => {
  const { database } = await createTestDatabase();
  const { rows } = await sql<{ accountId: number }>`
    insert into accounts (name, status, plan_id, plan_tier, plan_status)
    values ('Acme', 'active', 'essentials_month', 'essentials', 'trialing')
    returning account_id::int as "accountId"`.execute(database);
  const { accountId } = rows[0]!;
  const record = (transaction: Transaction, name: string) =>
    recordChange(
      transaction,
      accountId,
      { actor: { type: 'system' } },
      { objectType: 'account', objectId: accountId, before: { name: 'Acme' }, after: { name } },
      Date.now(),
    );
  let isFirstDone = false;
  let first: Promise<unknown> | undefined;
  const second = await database.transaction().execute(async (transaction) => {
    expect(await change(transaction, accountId)).toBeDefined();
    first = database.transaction().execute((other) => record(other, 'A'));
    void first.finally(() => (isFirstDone = true)).catch(() => undefined);
    // Until the other has written its entry, or waits for us.
    await expect
      .poll(async () => isFirstDone || (await lockWaiterCount(database)) > 0, { timeout: 60_000 })
      .toBe(true);
    return record(transaction, 'B');
  });
  expect(new Set([await first, second])).toEqual(new Set([1, 2]));
});

test('a webhook is probed while its replay is cancelled', async () => {
  const { database } = await createTestDatabase();
  const world = await createDelivered(database, 1);
  const { key } = await start(world);
  await world.log(1);
  world.behave = () => status(404);
  await world.replay();
  await world.deliverAll();
  world.nowMs += 1_000;
  const { rows } = await sql<{ accountId: number }>`
    select account_id::int as "accountId" from environments
     where environment_id = ${world.environmentId}`.execute(database);
  const { accountId } = rows[0]!;
  let probed: Promise<unknown> | undefined;
  let cancelled: Promise<unknown> | undefined;
  await database.transaction().execute(async (transaction) => {
    // Another change of the account: both wait for the audit log.
    await recordChange(
      transaction,
      accountId,
      { actor: { type: 'system' } },
      { objectType: 'account', objectId: accountId, before: { name: 'A' }, after: { name: 'B' } },
      world.nowMs,
    );
    probed = probeNow(database, world.key, BY_TEST, world.nowMs);
    await untilLockWaiters(database, 1);
    cancelled = cancelReplay(database, key, BY_TEST, world.nowMs);
    await untilLockWaiters(database, 2);
  });
  expect(await probed).toBe('due');
  expect(await cancelled).toMatchObject({ state: 'cancelled' });
});

test('an application is deleted while a message for it is logged', async () => {
  const { database } = await createTestDatabase();
  await insertTestWorkspace(database, 1);
  await makeApplication(database, 1, { applicationId: 'acme', name: 'Acme' }, BY_TEST, 0);
  const endpoint = async () =>
    (await insertTestWebhook(database, 1, { applicationId: 'acme' })).webhookId;
  const [first, last] = [await endpoint(), await endpoint()];
  // Its row and its lane's now stand behind the rows of the last one.
  await sql`update webhooks set name = 'changed' where webhook_id = ${first}`.execute(database);
  await sql`update lanes set send_window = send_window where webhook_id = ${first}`.execute(
    database,
  );
  // As autovacuum does: of so few rows Postgres then reads the tables, and not the indexes.
  await sql`analyze webhooks, lanes`.execute(database);
  let deleted: Promise<boolean> | undefined;
  const logged = await database.transaction().execute(async (transaction) => {
    await sql`select from lanes where environment_id = 1 and webhook_id = ${first} for no key update`.execute(
      transaction,
    );
    deleted = deleteApplication(database, 1, 'acme', BY_TEST, 0);
    deleted.catch(() => undefined);
    await untilLockWaiters(database, 1);
    return appendDeliveries(transaction, [
      {
        environmentId: 1,
        applicationId: 'acme',
        webhookIds: [first, last],
        eventId: 'e',
        eventType: 'message',
        objectType: 'message',
        metric: 'paid',
        occurredAtMs: 0,
        data: {},
      },
    ]);
  });
  expect(new Set(logged.map(({ webhookId }) => webhookId))).toEqual(new Set([first, last]));
  expect(await deleted).toBe(true);
});
