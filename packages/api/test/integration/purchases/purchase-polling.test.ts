/** Calls that come a thousand times while a purchase runs. */
import { readCatalogue } from '@sluice/billing-vendor/catalogue/read-catalogue';
import { startSimulator } from '@sluice/billing-vendor/simulator/simulator';
import {
  createStripeProvider,
  openStripeClient,
} from '@sluice/billing-vendor/stripe/stripe-provider';
import { insertProviderCustomer } from '@sluice/database/billing/provider-customers';
import { sql } from 'kysely';
import { expect, onTestFinished, test } from 'vitest';
import { startBilling } from '../support/billing-world.ts';

const POLL_COUNT = 1_000;
const AT_ONCE = 20;

test('I20: a thousand polls of every kind leave the payment provider and the database unchanged', async () => {
  const simulator = await startSimulator({
    host: '127.0.0.1',
    port: 0,
    webhookSecret: 'whsec_test',
    catalogue: readCatalogue(undefined),
    now: Date.now,
    random: Math.random,
  });
  onTestFinished(() => simulator.close());
  const baseUrl = `http://127.0.0.1:${simulator.port}`;
  const provider = createStripeProvider(
    openStripeClient({ secretKey: 'sk_test', baseUrl, timeoutMs: 30_000 }),
  );
  const billing = await startBilling({ provider });
  onTestFinished(() => billing.api.close());
  const { accountId } = billing.api.a;
  const made = await provider.createCustomer({ accountId, name: 'a', email: 'a@example.com' }, 'a');
  const customerId = made.outcome === 'ok' ? made.value : '';
  await insertProviderCustomer(
    billing.api.database,
    accountId,
    customerId,
    billing.api.clock.nowMs,
  );
  const invoice = await provider.createInvoice(
    { customerId, accountId, runId: 'run_card', currency: 'usd' },
    'invoice',
  );
  const invoiceId = invoice.outcome === 'ok' ? invoice.value.invoiceId : '';

  await provider.setDefaultCard(customerId, 'pm_card_visa');
  const invoiced = (await billing.buyPack('pack_100')).json().run_id;
  await billing.setAccount("billing_rail = 'card'");
  const addons = (
    await billing.call('POST', '/addons', { body: { skus: { add: ['price_addon_ip_month'] } } })
  ).json().run_id;
  const checkout = (await billing.call('POST', '/plans/premium_month', { body: {} })).json().meta
    .run_id;
  // A purchase of credits by card, whose invoice waits for its customer; no worker makes it here.
  const card = await billing.api.app.inject({
    method: 'POST',
    url: `${billing.base}/credits/purchase`,
    headers: { authorization: `Bearer ${billing.api.a.token}` },
    payload: { llm: { quantity: 1_000 } },
  });
  expect(card.statusCode).toBe(503);
  await sql`update runs set invoice_id = ${invoiceId} where kind = 'credits'`.execute(
    billing.api.database,
  );
  const paths = [
    `/inbox_previews/invoiced_purchase_status?run_id=${invoiced}`,
    `/addons/status/${addons}`,
    `/plans/checkout_status?run_id=${checkout}&plan_id=premium_month`,
    `/ai_credits/purchase_status?invoice_id=${invoiceId}`,
    `/runs/${invoiced}`,
    '/runs',
    '/credits/balance',
    '/credits/ledger',
    '/info',
    '/payment',
  ];
  const everything = async () => {
    const tables = ['runs', 'run_steps', 'credit_transactions', 'credit_entries', 'audit_logs'];
    const counted = await Promise.all(
      [...tables, 'outbox', 'delivery_log', 'vendor_events', 'idempotency_keys'].map(
        async (table) => {
          const { rows } = await sql<{ rows: unknown }>`
            select jsonb_agg(t order by t::text) as rows from ${sql.table(table)} t`.execute(
            billing.api.database,
          );
          return [table, rows[0]?.rows];
        },
      ),
    );
    const kept = ['customer', 'invoice', 'payment_intent', 'charge', 'event', 'answer'] as const;
    return { counted, provider: kept.map((name) => simulator.state.list(name)) };
  };
  const before = await everything();
  for (let done = 0; done < POLL_COUNT; done += AT_ONCE) {
    const answers = await Promise.all(
      Array.from({ length: AT_ONCE }, (_, index) =>
        billing.call('GET', paths[(done + index) % paths.length]!),
      ),
    );
    for (const [index, answer] of answers.entries())
      // The card on file is shown by invoice only.
      expect(answer.statusCode).toBe(
        paths[(done + index) % paths.length] === '/payment' ? 422 : 200,
      );
  }
  expect(await everything()).toEqual(before);
  expect(billing.api.wokenPurchases).toHaveLength(4);
}, 240_000);
