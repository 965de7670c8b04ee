/** A purchase that is started again: taken for the same click, or for another purchase. */
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  finishPurchaseWorkflow,
  insertPurchaseWorkflow,
  type NewPurchaseWorkflow,
  type PurchaseWorkflow,
} from '../../../src/billing/purchase-workflows.ts';
import { extendPurchase, findSamePurchase } from '../../../src/billing/same-purchases.ts';
import type { Database } from '../../../src/connection/connection.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

const NOW_MS = Date.parse('2026-03-01T00:00:00Z');
/** As long as a repeated click counts as the same, once credit has paid. */
const REPEAT_MS = 120_000;

let database: Database;
let accountId: number;
let runCount = 0;
beforeEach(async () => {
  ({ database } = await createTestDatabase());
  accountId = await addAccount();
});

async function addAccount(): Promise<number> {
  const { rows } = await sql<{ accountId: number }>`
    insert into accounts (name) values ('a') returning account_id::int as "accountId"`.execute(
    database,
  );
  return rows[0]!.accountId;
}

async function start(
  more: Partial<NewPurchaseWorkflow> = {},
  nowMs = NOW_MS,
): Promise<PurchaseWorkflow> {
  const workflow = await insertPurchaseWorkflow(
    database,
    {
      accountId,
      runId: `run_${++runCount}`,
      lane: 'card',
      kind: 'inbox_previews',
      rail: 'card',
      fingerprint: 'pack',
      content: { type: 'addons', skus: [], contact: { name: 'A', email: 'a@x' } },
      origin: { actor: { type: 'system' } },
      expiresAtMs: null,
      ...more,
    },
    nowMs,
  );
  return workflow!;
}

const find = (
  nowMs = NOW_MS,
  { owner = accountId, lane = 'card', fingerprint = 'pack' } = {},
): Promise<string | undefined> =>
  database.transaction().execute(async (transaction) => {
    const asked = { lane: lane as 'card' | 'invoiced', fingerprint };
    return (await findSamePurchase(transaction, owner, asked, nowMs))?.runId;
  });
const finish = (
  workflow: PurchaseWorkflow,
  status: 'success' | 'declined',
  result: object = { charged: null, invoiceId: null },
) => {
  const end = { status, message: null, result: result as { charged: null; invoiceId: null } };
  return database
    .transaction()
    .execute((transaction) => finishPurchaseWorkflow(transaction, workflow, end, NOW_MS));
};
const PAID_BY_CREDIT = { charged: null, invoiceId: 'in_1', isPaidByCredit: true };

test('a pending purchase is the same only for its account, content and group', async () => {
  const { runId } = await start();
  const stranger = await addAccount();
  expect(await find()).toBe(runId);
  expect(await find(NOW_MS, { owner: stranger })).toBeUndefined();
  expect(await find(NOW_MS, { fingerprint: 'another pack' })).toBeUndefined();
  expect(await find(NOW_MS, { lane: 'invoiced' })).toBeUndefined();
});

test.each(['credits', 'inbox_previews'] as const)('%s are joined', async (kind) => {
  const { runId } = await start({ kind });
  expect(await find()).toBe(runId);
});

test.each(['addons', 'checkout'] as const)('%s are not: their groups join them', async (kind) => {
  await start({ kind });
  expect(await find()).toBeUndefined();
});

test('a pending purchase is the same until its time to pay is over', async () => {
  const { runId } = await start({ expiresAtMs: NOW_MS + 1_000 });
  expect(await find(NOW_MS + 999)).toBe(runId);
  expect(await find(NOW_MS + 1_000)).toBeUndefined();
});

test('of several the latest is taken', async () => {
  await start({}, NOW_MS - 1);
  const { runId } = await start();
  await start({}, NOW_MS - 2);
  expect(await find()).toBe(runId);
});

describe('a purchase that has ended', () => {
  test('by the customer’s credit is the same for two minutes', async () => {
    const workflow = await start();
    await finish(workflow, 'success', PAID_BY_CREDIT);
    expect(await find(NOW_MS + REPEAT_MS - 1)).toBe(workflow.runId);
    expect(await find(NOW_MS + REPEAT_MS)).toBeUndefined();
  });

  test('by a card or without success is not: its customer buys again', async () => {
    await finish(await start(), 'success', { charged: null, invoiceId: 'in_1' });
    await finish(await start(), 'declined');
    await finish(await start({ expiresAtMs: NOW_MS + 1_000 }), 'declined', PAID_BY_CREDIT);
    expect(await find()).toBeUndefined();
  });

  test('by credit of another account or for another content is not', async () => {
    await finish(await start({ accountId: await addAccount() }), 'success', PAID_BY_CREDIT);
    await finish(await start({ fingerprint: 'another pack' }), 'success', PAID_BY_CREDIT);
    await finish(
      await start({ lane: 'addons', kind: 'addons', fingerprint: 'pack' }),
      'success',
      PAID_BY_CREDIT,
    );
    expect(await find()).toBeUndefined();
  });
});

describe('the time to pay', () => {
  const extend = (workflow: PurchaseWorkflow, expiresAtMs: number) =>
    database
      .transaction()
      .execute((transaction) => extendPurchase(transaction, workflow, expiresAtMs));
  const endOf = async ({ runId, accountId: owner }: PurchaseWorkflow) => {
    const { rows } = await sql<{ endsAt: Date | null }>`
      select expires_at as "endsAt" from runs
       where account_id = ${owner} and run_id = ${runId}`.execute(database);
    return rows[0]!.endsAt?.getTime();
  };
  const FIRST_MS = NOW_MS + 1_000;

  test('grows for a purchase that is started again, and never shrinks', async () => {
    const workflow = await start({ expiresAtMs: FIRST_MS });
    await extend(workflow, FIRST_MS - 1);
    expect(await endOf(workflow)).toBe(FIRST_MS);
    await extend(workflow, FIRST_MS + 1);
    expect(await endOf(workflow)).toBe(FIRST_MS + 1);
  });

  test('stays without a limit, after the ending, and for every other purchase', async () => {
    const workflow = await start({ expiresAtMs: FIRST_MS });
    const endless = await start();
    const ended = await start({ expiresAtMs: FIRST_MS });
    await finish(ended, 'declined');
    const beside = await start({ expiresAtMs: FIRST_MS });
    const namesake = await start({
      accountId: await addAccount(),
      runId: workflow.runId,
      expiresAtMs: FIRST_MS,
    });
    for (const each of [workflow, endless, ended]) await extend(each, FIRST_MS + 5);
    expect(await endOf(workflow)).toBe(FIRST_MS + 5);
    expect(await endOf(endless)).toBeUndefined();
    for (const each of [ended, beside, namesake]) expect(await endOf(each)).toBe(FIRST_MS);
  });
});
