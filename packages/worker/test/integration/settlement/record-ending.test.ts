/** Reports of a purchase's end, and their receivers. */
import { insertTestWebhook } from '@sluice/database/testing/test-tenants';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { startPurchases, type Purchases } from '../support/purchase-world.ts';

async function addWebhook(
  world: Purchases,
  accountId: number,
  events: readonly string[],
  isDeleted = false,
): Promise<number> {
  const { rows } = await sql<{ environmentId: number }>`
    insert into environments (account_id, name, webhook_signing_key, deleted_at)
    values (${accountId}, 'Shop', 'key', ${isDeleted ? new Date() : null})
    returning environment_id as "environmentId"`.execute(world.database);
  const { environmentId } = rows[0]!;
  await insertTestWebhook(world.database, environmentId, { events });
  return environmentId;
}

test('every workspace of the account whose webhook chose it gets one report of a purchase with any ending', async () => {
  const world = await startPurchases();
  const accountId = await world.addAccount('pm_card_visa');
  const declined = await world.addAccount('pm_card_chargeCustomerFail');
  const told = [
    await addWebhook(world, accountId, ['purchase_ended', 'email_sent']),
    await addWebhook(world, accountId, ['purchase_ended']),
  ];
  await addWebhook(world, accountId, ['email_sent']);
  await addWebhook(world, accountId, ['purchase_ended'], true);
  const other = await addWebhook(world, declined, ['purchase_ended']);
  const workflows = [
    await world.finish(await world.buyPack(accountId)),
    await world.finish(await world.buyPack(declined)),
  ];
  // Events of the payment provider for an ended purchase cause no report.
  await world.settleEvents();
  const { rows } = await sql<{ environmentId: number; body: string; eventType: string }>`
    select environment_id as "environmentId", body, event_type as "eventType" from delivery_log
     order by environment_id`.execute(world.database);
  expect(rows.map((row) => row.environmentId)).toEqual([...told, other]);
  expect(new Set(rows.map((row) => row.eventType))).toEqual(new Set(['purchase_ended']));
  expect(JSON.parse(rows[0]!.body)).toMatchObject({
    object_type: 'purchase',
    metric: 'ended',
    data: {
      account_id: accountId,
      run_id: workflows[0]!.runId,
      kind: 'inbox_previews',
      rail: 'invoiced',
      status: 'success',
      message: null,
      invoice_id: workflows[0]!.invoiceId,
      charged: { amount: 2_000, currency: 'usd' },
    },
  });
  expect(JSON.parse(rows[2]!.body).data).toMatchObject({ status: 'declined', charged: null });
});

test('an ending that is rolled back is not reported', async () => {
  const world = await startPurchases();
  const accountId = await world.addAccount('pm_card_visa');
  await addWebhook(world, accountId, ['purchase_ended']);
  const workflow = await world.buyPack(accountId);
  await sql`
    create function fail() returns trigger language plpgsql as $$ begin raise exception 'no'; end $$`.execute(
    world.database,
  );
  await sql`create trigger fail before insert on audit_logs for each row execute function fail()`.execute(
    world.database,
  );
  await expect(world.advance(workflow)).rejects.toThrow('no');
  const { rows } = await sql`select from delivery_log`.execute(world.database);
  expect(rows).toEqual([]);
  expect(await world.balance(accountId)).toBe(0);
  await sql`drop trigger fail on audit_logs`.execute(world.database);
  await sql`update runs set lease_until = null`.execute(world.database);
  expect(await world.finish(workflow)).toMatchObject({ status: 'success' });
  expect(world.succeeded()).toHaveLength(1);
});
