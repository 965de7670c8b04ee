/** Purchase workflows: one worker at a time, no worker during a manual review, and one ending. */
import { sql } from 'kysely';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  claimPurchaseWorkflow,
  countUnpaidCardPurchases,
  findPendingPurchase,
  findPurchaseOfInvoice,
  findPurchaseWorkflow,
  finishPurchaseWorkflow,
  insertPurchaseWorkflow,
  listDuePurchases,
  listPendingPurchases,
  listPurchasesWithPaymentDue,
  listPurchaseWorkflows,
  lockPurchaseWorkflow,
  releasePurchaseWorkflow,
  renewPurchaseLease,
  sendPurchaseToReview,
  updatePurchaseInvoice,
  updatePurchaseResult,
  type NewPurchaseWorkflow,
  type PurchaseWorkflow,
} from '../../../src/billing/purchase-workflows.ts';
import type { Database } from '../../../src/connection/connection.ts';
import { createTestDatabase, untilLockWaiters } from '../../../src/testing/testing.ts';

const NOW_MS = Date.parse('2026-03-01T00:00:00Z');
const LEASE_MS = 60_000;
const ENDING = {
  status: 'success',
  message: null,
  result: { charged: null, invoiceId: 'in_1' },
} as const;

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

const start = (
  more: Partial<NewPurchaseWorkflow> = {},
  nowMs = NOW_MS,
): Promise<PurchaseWorkflow | undefined> =>
  insertPurchaseWorkflow(
    database,
    {
      accountId,
      runId: `run_${++runCount}`,
      lane: 'card',
      kind: 'inbox_previews',
      rail: 'card',
      fingerprint: 'f',
      content: { type: 'addons', skus: [], contact: { name: 'A', email: 'a@x' } },
      origin: { actor: { type: 'system' } },
      expiresAtMs: null,
      ...more,
    },
    nowMs,
  );
const started = async (
  more: Partial<NewPurchaseWorkflow> = {},
  nowMs = NOW_MS,
): Promise<PurchaseWorkflow> => (await start(more, nowMs))!;
const claim = (workflow: PurchaseWorkflow) => claimPurchaseWorkflow(database, workflow, LEASE_MS);
const find = async ({ accountId: owner, runId }: PurchaseWorkflow): Promise<PurchaseWorkflow> =>
  (await findPurchaseWorkflow(database, owner, runId))!;
const finish = (
  workflow: PurchaseWorkflow,
  end: Parameters<typeof finishPurchaseWorkflow>[2] = ENDING,
) =>
  database
    .transaction()
    .execute((transaction) => finishPurchaseWorkflow(transaction, workflow, end, NOW_MS));
const updateResult = (workflow: PurchaseWorkflow) =>
  database
    .transaction()
    .execute((transaction) =>
      updatePurchaseResult(transaction, workflow, { charged: null, invoiceId: 'in_later' }),
    );
const endLease = ({ runId }: PurchaseWorkflow) =>
  sql`update runs set lease_until = clock_timestamp() - interval '1 ms' where run_id = ${runId}`.execute(
    database,
  );
const dueIds = async (nowMs = NOW_MS, limit = 10) =>
  (await listDuePurchases(database, nowMs, limit)).map(({ runId }) => runId);

describe('a purchase is one worker’s', () => {
  test('until its lease ends, and each claim has the next fencing number', async () => {
    const workflow = await started();
    expect((await claim(workflow))?.fence).toBe(workflow.fence + 1);
    expect(await claim(workflow)).toBeUndefined();
    await endLease(workflow);
    expect((await claim(workflow))?.fence).toBe(workflow.fence + 2);
  });

  test('one that was overtaken neither renews nor gives back the lease of the next', async () => {
    const workflow = await started();
    const overtaken = (await claim(workflow))!;
    await endLease(workflow);
    const owner = (await claim(workflow))!;
    expect(await renewPurchaseLease(database, overtaken, LEASE_MS)).toBe(false);
    await releasePurchaseWorkflow(database, overtaken, NOW_MS + 1, 9);
    expect(await claim(workflow)).toBeUndefined();
    expect(await find(workflow)).toMatchObject({ waitCount: 0, fence: owner.fence });
    await endLease(workflow);
    expect(await renewPurchaseLease(database, owner, LEASE_MS)).toBe(true);
    expect(await claim(workflow)).toBeUndefined();
  });

  test('one that was given back is not renewed, and is looked at again at its time', async () => {
    const workflow = await started();
    const owner = (await claim(workflow))!;
    await releasePurchaseWorkflow(database, owner, NOW_MS + 5_000, 3);
    expect(await renewPurchaseLease(database, owner, LEASE_MS)).toBe(false);
    expect(await dueIds(NOW_MS + 4_999)).toEqual([]);
    expect(await dueIds(NOW_MS + 5_000)).toEqual([workflow.runId]);
    expect(await claim(workflow)).toMatchObject({ waitCount: 3 });
  });

  test('of another account of the same name is another purchase', async () => {
    const workflow = await started({ runId: 'same' });
    const other = await addAccount();
    await started({ runId: 'same', accountId: other });
    const beside = await started();
    const owner = (await claim(workflow))!;
    expect(
      await claimPurchaseWorkflow(database, { accountId: other, runId: 'same' }, LEASE_MS),
    ).toMatchObject({
      accountId: other,
    });
    await sendPurchaseToReview(database, workflow, 'why');
    await database
      .transaction()
      .execute((transaction) => updatePurchaseInvoice(transaction, owner, 'in_own'));
    expect(await findPurchaseWorkflow(database, other, 'same')).toMatchObject({
      reviewReason: null,
      invoiceId: null,
    });
    expect(await find(beside)).toEqual(beside);
    expect(await findPurchaseOfInvoice(database, other, 'in_own')).toBeUndefined();
    expect(await findPurchaseOfInvoice(database, accountId, 'in_own')).toMatchObject({ accountId });
    await finish(workflow);
    await updateResult(workflow);
    expect(await findPurchaseWorkflow(database, other, 'same')).toMatchObject({
      status: 'pending',
      result: null,
    });
  });

  test('and its lease is given back alone, though others have the same fencing number', async () => {
    const workflow = await started({ runId: 'same' });
    const foreign = await started({ runId: 'same', accountId: await addAccount() });
    const others = [await started(), foreign];
    const owner = (await claim(workflow))!;
    for (const each of others) expect(await claim(each)).toMatchObject({ fence: owner.fence });
    await releasePurchaseWorkflow(database, owner, NOW_MS, 1);
    expect(await renewPurchaseLease(database, owner, LEASE_MS)).toBe(false);
    for (const each of [...others, workflow]) {
      const { accountId: of, runId } = each;
      const locked = database
        .transaction()
        .execute((transaction) => lockPurchaseWorkflow(transaction, each));
      const waitCount = others.includes(each) ? 0 : 1;
      expect(await locked).toMatchObject({ accountId: of, runId, waitCount });
    }
    for (const each of others) expect(await claim(each)).toBeUndefined();
    expect(await claim(workflow)).toBeDefined();
  });
});

test('a purchase keeps the time at which it ends unpaid, if it has one', async () => {
  const bounded = await started({ expiresAtMs: NOW_MS + 5 });
  expect((await find(bounded)).expiresAt).toEqual(new Date(NOW_MS + 5));
  expect((await find(await started())).expiresAt).toBeNull();
});

test('transactions that decide about one purchase do so one after the other', async () => {
  await started({ runId: 'a' });
  const workflow = await started({ runId: 'b' });
  await started({ runId: 'c' });
  let second: Promise<PurchaseWorkflow | undefined> | undefined;
  await database.transaction().execute(async (transaction) => {
    expect(await lockPurchaseWorkflow(transaction, workflow)).toEqual(workflow);
    second = database.transaction().execute((other) => lockPurchaseWorkflow(other, workflow));
    await untilLockWaiters(database, 1);
    await finishPurchaseWorkflow(transaction, workflow, ENDING, NOW_MS);
  });
  expect(await second).toMatchObject({ runId: workflow.runId, status: 'success' });
});

describe('in manual review', () => {
  test('no worker takes it, by its id or by the reconciliation loop, not even the one that had it', async () => {
    const workflow = await started();
    const owner = (await claim(workflow))!;
    await sendPurchaseToReview(database, owner, 'paid twice');
    expect(await find(workflow)).toMatchObject({ reviewReason: 'paid twice', status: 'pending' });
    expect(await claim(workflow)).toBeUndefined();
    expect(await dueIds()).toEqual([]);
    expect(await renewPurchaseLease(database, owner, LEASE_MS)).toBe(false);
  });

  test('an ending ends the review too', async () => {
    const workflow = await started();
    await sendPurchaseToReview(database, workflow, 'why');
    const end = { ...ENDING, status: 'failed', message: 'Buy again.' } as const;
    expect(await finish(workflow, end)).toBe(true);
    expect(await find(workflow)).toMatchObject({ ...end, reviewReason: null });
  });
});

describe('an ending', () => {
  test('is final, and a later ending does not change the status, message, result or time', async () => {
    const workflow = await started();
    expect(await finish(workflow)).toBe(true);
    const ended = await find(workflow);
    expect(ended).toMatchObject({ ...ENDING, finishedAt: new Date(NOW_MS) });
    const other = {
      status: 'failed',
      message: 'no',
      result: { charged: null, invoiceId: null },
    } as const;
    expect(await finish(workflow, other)).toBe(false);
    expect(await find(workflow)).toEqual(ended);
  });

  test('ends the lease and the work, so that a claim, a renewal and a release have no effect', async () => {
    const workflow = await started();
    const owner = (await claim(workflow))!;
    await finish(workflow);
    expect(await claim(workflow)).toBeUndefined();
    expect(await renewPurchaseLease(database, owner, LEASE_MS)).toBe(false);
    await releasePurchaseWorkflow(database, owner, NOW_MS, 5);
    expect(await dueIds()).toEqual([]);
    expect(await find(workflow)).toMatchObject({ waitCount: 0 });
    const { rows } = await sql`select lease_until as "leaseUntil" from runs`.execute(database);
    expect(rows).toEqual([{ leaseUntil: null }]);
  });

  test('of one leaves the others as they are', async () => {
    const [workflow, beside] = [await started(), await started()];
    const owner = (await claim(beside))!;
    await finish(workflow);
    await updateResult(workflow);
    expect(await find(workflow)).toMatchObject({ result: { invoiceId: 'in_later' } });
    expect(await find(beside)).toMatchObject({ status: 'pending', result: null });
    expect(await renewPurchaseLease(database, owner, LEASE_MS)).toBe(true);
  });
});

describe('exclusion groups', () => {
  test('have one pending purchase an account; cards have as many as they like', async () => {
    const first = await started({ lane: 'addons' });
    expect(await start({ lane: 'addons' })).toBeUndefined();
    expect(await start({ lane: 'checkout' })).toBeDefined();
    expect(await start({ lane: 'addons', accountId: await addAccount() })).toBeDefined();
    await started({ lane: 'card' });
    expect(await start({ lane: 'card' })).toBeDefined();
    expect(await findPendingPurchase(database, accountId, 'addons')).toMatchObject({
      runId: first.runId,
    });
    expect(await findPendingPurchase(database, accountId, 'card')).toBeUndefined();
    expect(
      (await listPendingPurchases(database, accountId)).map(({ lane }) => lane).toSorted(),
    ).toEqual(['addons', 'checkout']);
    await finish(first);
    expect((await listPendingPurchases(database, accountId)).map(({ lane }) => lane)).toEqual([
      'checkout',
    ]);
    expect(await findPendingPurchase(database, accountId, 'addons')).toBeUndefined();
    expect(await start({ lane: 'addons' })).toBeDefined();
  });

  test('unpaid card purchases of the account are counted since a time, up to a bound', async () => {
    await started({}, NOW_MS);
    const paid = await started({}, NOW_MS + 1);
    await finish(paid);
    await started({ lane: 'addons' }, NOW_MS + 1);
    await started({ accountId: await addAccount() }, NOW_MS + 1);
    await started({}, NOW_MS + 1);
    await started({}, NOW_MS + 2);
    expect(await countUnpaidCardPurchases(database, accountId, NOW_MS, 9)).toBe(2);
    expect(await countUnpaidCardPurchases(database, accountId, NOW_MS - 1, 9)).toBe(3);
    expect(await countUnpaidCardPurchases(database, accountId, NOW_MS - 1, 1)).toBe(1);
  });
});

test('due purchase workflows come longest due first, up to a bound, without the leased ones', async () => {
  const late = await started({}, NOW_MS - 10);
  const later = await started({}, NOW_MS - 5);
  const now = await started({}, NOW_MS);
  await started({}, NOW_MS + 1);
  expect(await dueIds()).toEqual([late.runId, later.runId, now.runId]);
  expect(await dueIds(NOW_MS, 2)).toEqual([late.runId, later.runId]);
  await claim(late);
  expect(await dueIds()).toEqual([later.runId, now.runId]);
  await endLease(late);
  expect(await dueIds()).toEqual([late.runId, later.runId, now.runId]);
});

test('a page of an account’s purchases continues after the page before it, even with equal times', async () => {
  const runIds: string[] = [];
  for (const atMs of [NOW_MS, NOW_MS + 1, NOW_MS + 1, NOW_MS + 2])
    runIds.push((await started({}, atMs)).runId);
  await started({ accountId: await addAccount() }, NOW_MS + 3);
  const read: string[] = [];
  let before: { createdAtMs: number; runId: string } | undefined;
  while (read.length <= runIds.length) {
    const page = await listPurchaseWorkflows(database, accountId, before, 2);
    expect(page.length).toBeLessThanOrEqual(2);
    const last = page.at(-1);
    if (!last) break;
    read.push(...page.map(({ runId }) => runId));
    before = { createdAtMs: last.createdAt.getTime(), runId: last.runId };
  }
  expect(read).toEqual(runIds.toReversed());
});

test('a bank’s payment is waited for while it may still come, of purchases that succeeded and await one', async () => {
  const day = 86_400_000;
  const awaits = async (atMs: number, isAwaited: boolean, status: 'success' | 'failed') => {
    const workflow = await started({}, atMs);
    const result = { charged: null, invoiceId: `in_${workflow.runId}` };
    const due = isAwaited ? { due: { amount: 100, currency: 'usd' } } : {};
    await finish(workflow, { status, message: null, result: { ...result, ...due } });
    return workflow.runId;
  };
  const awaited = await awaits(NOW_MS - 30 * day + 1, true, 'success');
  await awaits(NOW_MS - 30 * day, true, 'success');
  await awaits(NOW_MS, false, 'success');
  await awaits(NOW_MS, true, 'failed');
  expect(await listPurchasesWithPaymentDue(database, NOW_MS, 10)).toEqual([
    { accountId, runId: awaited, invoiceId: `in_${awaited}` },
  ]);
  await awaits(NOW_MS, true, 'success');
  expect(await listPurchasesWithPaymentDue(database, NOW_MS, 1)).toHaveLength(1);
});
