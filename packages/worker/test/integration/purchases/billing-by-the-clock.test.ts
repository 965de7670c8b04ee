/** Billing tasks of a worker process, from its start on. */
import { parseSettings } from '@sluice/platform/settings/config';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';
import { createPurchases } from '../../../src/purchases/purchases.ts';
import { workerSettings } from '../../../src/process/settings.ts';
import { startSubscriptions } from '../support/subscription-world.ts';

test('credits are renewed, closed accounts unsubscribed and payments of banks found', async () => {
  const world = await startSubscriptions();
  const { database, clock, simulator } = world;
  const subscribed = async (card: string) => {
    const accountId = await world.addAccount(card);
    await world.finish(await world.checkout(accountId, 'premium_month'));
    return accountId;
  };
  const closed = await subscribed('pm_card_visa');
  await sql`update accounts set status = 'closed' where account_id = ${closed}`.execute(database);
  const paying = await subscribed('pm_usBankAccount_success');
  const renewed = await world.addAccount(null);
  world.moveClocks(5 * 86_400_000);

  const purchases = await createPurchases({
    database,
    producer: { wakePurchaseWorkflow: () => Promise.resolve() },
    settings: parseSettings(workerSettings, {
      DATABASE_URL: world.url,
      SEALING_KEYS: `test:${Buffer.alloc(32).toString('base64')}`,
      SIMULATOR_URL: `http://127.0.0.1:${simulator.port}`,
    }),
    now: () => Date.now() + clock.aheadMs,
    logger: world.deps.logger,
  });
  const repetitions = purchases.startByTheClock();
  onTestFinished(async () => {
    await Promise.all(repetitions.map((each) => each.stop()));
  });
  await vi.waitFor(async () => {
    const statuses = simulator.state.list('subscription').map((each) => each['status']);
    expect(statuses).toEqual(['canceled', 'active']);
    expect(await world.balance(paying)).toBe(200);
    expect(await world.balance(renewed)).toBe(200);
  }, 60_000);
});
