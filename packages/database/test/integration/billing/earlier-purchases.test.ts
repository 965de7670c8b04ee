/** Earlier purchases of an account: its plans and add-ons, as they were sold. */
import type { PurchaseContent, PurchaseResult } from '@sluice/domain/billing/purchase-content';
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  findLatestCheckout,
  findPaidPlan,
  listBoughtAddons,
  listBoughtPlanPrices,
} from '../../../src/billing/earlier-purchases.ts';
import {
  finishPurchaseWorkflow,
  insertPurchaseWorkflow,
} from '../../../src/billing/purchase-workflows.ts';
import type { Database } from '../../../src/connection/connection.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

const NOW_MS = Date.parse('2026-03-01T00:00:00Z');
const NO_CHARGE = { charged: null, invoiceId: null } as const;
const DUE = { amount: 100, currency: 'usd' } as const;

let database: Database;
let accountId: number;
let stranger: number;
let runCount = 0;
beforeEach(async () => {
  ({ database } = await createTestDatabase());
  accountId = await addAccount();
  stranger = await addAccount();
});

async function addAccount(): Promise<number> {
  const { rows } = await sql<{ accountId: number }>`
    insert into accounts (name) values ('a') returning account_id::int as "accountId"`.execute(
    database,
  );
  return rows[0]!.accountId;
}

interface Bought {
  readonly owner?: number;
  readonly status?: 'success' | 'refused' | 'pending';
  readonly result?: Partial<PurchaseResult>;
  readonly atMs?: number;
}

/** @returns its id. */
async function buy(
  kind: 'checkout' | 'addons',
  content: object,
  { owner = accountId, status = 'success', result = {}, atMs = NOW_MS }: Bought = {},
): Promise<string> {
  const workflow = await insertPurchaseWorkflow(
    database,
    {
      accountId: owner,
      runId: `run_${++runCount}`,
      lane: 'card',
      kind,
      rail: 'card',
      fingerprint: 'f',
      content: { type: kind, contact: { name: 'A', email: 'a@x' }, ...content } as PurchaseContent,
      origin: { actor: { type: 'system' } },
      expiresAtMs: null,
    },
    atMs,
  );
  if (status !== 'pending')
    await database
      .transaction()
      .execute((transaction) =>
        finishPurchaseWorkflow(
          transaction,
          workflow!,
          { status, message: null, result: { ...NO_CHARGE, ...result } },
          atMs,
        ),
      );
  return workflow!.runId;
}
const buyPlan = (id: string, bought?: Bought) =>
  buy('checkout', { plan: { id, priceId: `price_${id}` } }, bought);
const item = (sku: string, result: 'added' | 'already_present' | 'refused' = 'added') => ({
  sku,
  result,
  reason: null,
});

describe('plans', () => {
  test('that were bought have each price once, of this account and of purchases with success', async () => {
    await buyPlan('one');
    await buyPlan('two', { atMs: NOW_MS + 1 });
    await buyPlan('one', { atMs: NOW_MS + 2 });
    await buyPlan('refused', { status: 'refused' });
    await buyPlan('pending', { status: 'pending' });
    await buyPlan('of a stranger', { owner: stranger });
    await buy('addons', { plan: { id: 'none', priceId: 'price_none' } });
    const prices = await listBoughtPlanPrices(database, accountId);
    expect(prices.toSorted()).toEqual(['price_one', 'price_two']);
  });

  test('the latest checkout is the newest with success, by its id if two are as new', async () => {
    expect(await findLatestCheckout(database, accountId)).toBeUndefined();
    await buyPlan('old');
    const runId = await buyPlan('new', { atMs: NOW_MS + 5 });
    await buyPlan('between', { atMs: NOW_MS + 1 });
    await buyPlan('refused', { status: 'refused', atMs: NOW_MS + 6 });
    await buyPlan('pending', { status: 'pending', atMs: NOW_MS + 7 });
    await buyPlan('of a stranger', { owner: stranger, atMs: NOW_MS + 8 });
    await buy('addons', {}, { atMs: NOW_MS + 9 });
    expect(await findLatestCheckout(database, accountId)).toBe(runId);
    const second = await buyPlan('as new', { atMs: NOW_MS + 5 });
    expect(await findLatestCheckout(database, accountId)).toBe([runId, second].toSorted().at(-1));
  });

  test('the paid plan is the newest that no bank still has to pay', async () => {
    expect(await findPaidPlan(database, accountId)).toBeUndefined();
    await buyPlan('old');
    await buyPlan('paid', { atMs: NOW_MS + 1 });
    await buyPlan('older', { atMs: NOW_MS - 1 });
    await buyPlan('due', { result: { due: DUE }, atMs: NOW_MS + 2 });
    await buyPlan('given up', { result: { givenUp: DUE }, atMs: NOW_MS + 3 });
    await buyPlan('refused', { status: 'refused', atMs: NOW_MS + 4 });
    await buyPlan('of a stranger', { owner: stranger, atMs: NOW_MS + 5 });
    await buy('addons', { plan: { id: 'none' } }, { atMs: NOW_MS + 6 });
    expect(await findPaidPlan(database, accountId)).toMatchObject({ id: 'paid' });
    // As `findLatestCheckout` decides between two that are as new.
    await buyPlan('last', { atMs: NOW_MS + 10 });
    const runId = await buyPlan('very last', { atMs: NOW_MS + 10 });
    const isLater = (await findLatestCheckout(database, accountId)) === runId;
    const id = isLater ? 'very last' : 'last';
    expect(await findPaidPlan(database, accountId)).toMatchObject({ id });
  });
});

describe('add-ons', () => {
  const prices = [
    { sku: 'sso', addon: 'single sign-on' },
    { sku: 'ip', addon: 'address' },
  ];

  test('that were bought have the names of their purchase, or null from an older purchase', async () => {
    await buy('addons', { prices }, { result: { items: [item('sso'), item('ip')] } });
    await buy('addons', {}, { result: { items: [item('old')] } });
    const bought = await listBoughtAddons(database, accountId);
    expect(bought.toSorted((one, other) => (one.sku < other.sku ? -1 : 1))).toEqual([
      { sku: 'ip', addon: 'address' },
      { sku: 'old', addon: null },
      { sku: 'sso', addon: 'single sign-on' },
    ]);
  });

  test('are named once each, also if an older purchase kept no name', async () => {
    await buy('addons', {}, { result: { items: [item('sso')] } });
    await buy('addons', { prices }, { result: { items: [item('sso')] } });
    expect(await listBoughtAddons(database, accountId)).toEqual([prices[0]]);
  });

  test('that were there before, refused, or bought by a stranger are not bought', async () => {
    await buy('addons', { prices }, { result: { items: [item('sso', 'already_present')] } });
    const added = { items: [item('ip')] };
    await buy('addons', { prices }, { status: 'refused', result: added });
    await buy('addons', { prices }, { owner: stranger, result: added });
    await buy('checkout', { prices }, { result: added });
    expect(await listBoughtAddons(database, accountId)).toEqual([]);
  });
});
