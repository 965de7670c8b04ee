/**
 * An account is one customer of the payment provider.
 *
 * That holds if its first purchases begin at the same moment.
 */
import { findProviderCustomer } from '@sluice/database/billing/provider-customers';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { startSubscriptions } from '../support/subscription-world.ts';

test('two first purchases at once, between which the address for bills changed, pay by one customer', async () => {
  const world = await startSubscriptions();
  const { rows } = await sql<{ accountId: number }>`
    insert into accounts (name, billing_rail, plan_id, plan_tier, plan_status)
    values ('Acme', 'invoiced', 'premium_month', 'premium', 'active')
    returning account_id::int as "accountId"`.execute(world.database);
  const { accountId } = rows[0]!;
  const card = { paymentMethodId: 'pm_card_visa' };
  const checkout = await world.checkout(accountId, 'essentials_month', card);
  const pack = await world.buyPack(accountId);
  // The same key with other words: the payment provider refuses it, and finds no customer under the new address.
  await sql`
    update runs set content = jsonb_set(content, '{contact,email}', '"new@example.com"')
     where run_id = ${pack.runId}`.execute(world.database);

  await world.advance(checkout, {
    async onPoint(point) {
      if (point === 'after-vendor:customer') await world.advance(pack);
    },
  });
  expect(await world.finish(checkout)).toMatchObject({ status: 'success' });

  // It finds the subscription of the first checkout, instead of making another one beside it.
  await world.finish(await world.checkout(accountId, 'premium_month', card));
  const subscriptions = world.simulator.state.list('subscription');
  expect(subscriptions).toHaveLength(1);
  expect(subscriptions[0]!['customer']).toBe(await findProviderCustomer(world.database, accountId));
});
