/** Purchases of the API's role with contents that are not sold. */
import {
  insertPurchaseWorkflow,
  type NewPurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import type { Database } from '@sluice/database/connection/connection';
import { pricePack } from '@sluice/domain/billing/catalogue';
import type { PurchaseContent } from '@sluice/domain/billing/purchase-content';
import { laneOf } from '@sluice/domain/billing/purchase-workflow';
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import { settleInvoice } from '../../../src/settlement/settle-invoice.ts';
import { CATALOGUE } from '../support/purchase-world.ts';
import { startSubscriptions, type Subscriptions } from '../support/subscription-world.ts';

let world: Subscriptions;
let api: Database;
let count = 0;
beforeEach(async () => {
  world = await startSubscriptions();
  api = world.openAs('sluice_api');
});

type Without<Content> = Content extends unknown ? Omit<Content, 'contact'> : never;
type Forged = Without<PurchaseContent>;

/** As a process with the login of the API alone could. */
async function startAsApi(
  accountId: number,
  kind: NewPurchaseWorkflow['kind'],
  content: Forged,
  rail: NewPurchaseWorkflow['rail'] = 'invoiced',
) {
  const contact = { name: 'Acme', email: `billing-${accountId}@example.com` };
  const workflow = {
    accountId,
    runId: `run_forged_${++count}`,
    lane: laneOf(kind, rail),
    kind,
    rail,
    fingerprint: 'f',
    content: { ...content, contact } as PurchaseContent,
    origin: { actor: { type: 'system' } } as const,
    expiresAtMs: null,
  };
  return (await insertPurchaseWorkflow(api, workflow, world.deps.now()))!;
}

const pack = pricePack(CATALOGUE, 'pack_100')!;
const premium = CATALOGUE.plans.find(({ id }) => id === 'premium_month')!;
const checkout = {
  type: 'checkout',
  plan: premium,
  quantity: 1,
  couponCode: null,
  paymentMethodId: null,
} as const;

const FORGED: readonly [
  name: string,
  kind: NewPurchaseWorkflow['kind'],
  content: Forged,
  refusal?: string,
][] = [
  [
    'a lower price',
    'inbox_previews',
    { type: 'purchase', purchase: { ...pack, price: { amount: 1, currency: 'usd' } } },
  ],
  [
    'a higher price',
    'inbox_previews',
    { type: 'purchase', purchase: { ...pack, price: { amount: 900_000, currency: 'usd' } } },
  ],
  [
    'more credits for the price',
    'inbox_previews',
    { type: 'purchase', purchase: { ...pack, quantity: 1_000_000 } },
  ],
  [
    'credits that do not expire',
    'inbox_previews',
    { type: 'purchase', purchase: { ...pack, expiresAfterDays: null } },
  ],
  [
    'a plan at the price of another',
    'checkout',
    { ...checkout, plan: { ...premium, priceId: 'price_essentials_month' } },
  ],
  [
    'a plan with a greater allowance',
    'checkout',
    { ...checkout, plan: { ...premium, included: { ...premium.included, llm: 10_000_000 } } },
  ],
  ['a plan with a quantity of 0', 'checkout', { ...checkout, quantity: 0 }],
  [
    'a coupon that the catalogue does not have',
    'checkout',
    { ...checkout, couponCode: 'GIFT' },
    'coupon_expired',
  ],
];

test('a worker refuses another price or content than the catalogue’s, without a charge or a grant', async () => {
  const { state } = world.simulator;
  const gift = { ...state.get('coupon', 'FIFTY')!, id: 'GIFT' };
  state.save('coupon', { ...gift, percent_off: 100, amount_off: null });
  for (const [name, kind, content, refusal = 'amount_changed'] of FORGED) {
    const accountId = await world.addAccount('pm_card_visa');
    const ended = await world.finish(await startAsApi(accountId, kind, content));
    expect(ended, name).toMatchObject({ status: 'failed', result: { charged: null, refusal } });
  }
  const { rows } = await sql`select 1 from credit_grants`.execute(world.database);
  expect(rows).toEqual([]);
  expect(world.charges()).toEqual([]);
  expect(state.list('subscription')).toEqual([]);
});

test('a card purchase at another price ends before its customer gets an invoice to pay', async () => {
  const accountId = await world.addAccount(null, 'card');
  for (const amount of [1, 900_000]) {
    const price = { amount, currency: 'usd' };
    const content = { type: 'purchase', purchase: { ...pack, price } } as const;
    const started = await startAsApi(accountId, 'inbox_previews', content, 'card');
    expect(await world.finish(started), `${amount}`).toMatchObject({
      status: 'failed',
      invoiceId: null,
      result: { charged: null, refusal: 'amount_changed' },
    });
    expect(await world.steps(started)).toEqual([]);
  }
  expect(world.simulator.state.list('invoice')).toEqual([]);
  expect(world.charges()).toEqual([]);
});

test('an invoice that names a run is applied only if a worker made it, and else goes to manual review', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const workflow = await startAsApi(accountId, 'inbox_previews', {
    type: 'purchase',
    purchase: pack,
  });
  const paid = { invoiceId: 'in_of_another', status: 'paid', total: pack.price } as const;
  const settle = () =>
    world.database
      .transaction()
      .execute((transaction) => settleInvoice(transaction, workflow, paid, world.deps.now()));
  expect(await settle()).toBe('parked');
  expect(await world.balance(accountId)).toBe(0);
});

test('the same contents as the catalogue has them are bought', async () => {
  const accountId = await world.addAccount('pm_card_visa');
  const bought = await startAsApi(accountId, 'inbox_previews', {
    type: 'purchase',
    purchase: pack,
  });
  expect(await world.finish(bought)).toMatchObject({ status: 'success' });
  expect(await world.finish(await startAsApi(accountId, 'checkout', checkout))).toMatchObject({
    status: 'success',
  });
});
