/** The API's role starts purchases. Postgres refuses it everything that only a worker may write of them. */
import { endEssentialsTrial } from '@sluice/database/billing/account-plans';
import {
  clearProviderEvents,
  insertProviderEvent,
  settleProviderEvent,
} from '@sluice/database/billing/provider-events';
import { publishPlans } from '@sluice/database/billing/catalogue-plans';
import { insertPurchaseWorkflow } from '@sluice/database/billing/purchase-workflows';
import type { Database, DatabaseOrTransaction } from '@sluice/database/connection/connection';
import { debitCredits, grantCredits, refundCredits } from '@sluice/database/credits/credits';
import { monthEndOf } from '@sluice/domain/billing/allowance';
import type { Plan } from '@sluice/domain/billing/catalogue';
import { BY_TEST, createTestDatabase, untilLockWaiters } from '@sluice/database/testing/testing';
import { sql } from 'kysely';
import { beforeAll, beforeEach, describe, expect, test } from 'vitest';

const NOW_MS = Date.parse('2026-03-01T12:00:00Z');
const BUILDER = { id: 'builder', name: 'Builder', tier: 'builder' } as const;
const LLM = { accountId: 1, kind: 'llm' } as const;

let owner: Database;
let api: Database;
let worker: Database;

beforeAll(async () => {
  const created = await createTestDatabase();
  owner = created.database;
  api = created.openAs('sluice_api', 'coordinator');
  worker = created.openAs('sluice_worker', 'coordinator');
  await sql`
    insert into accounts (account_id, name, plan_id, plan_tier, status, plan_status, plan_unpaid_run_id, trial_ends_at)
    values (1, 'On a plan', 'essentials_month', 'essentials', 'active', 'active', 'run_1', null),
           (2, 'In a trial', 'essentials_month', 'essentials', 'trialing', 'trialing', null, now()),
           (3, 'Closed', 'essentials_month', 'essentials', 'closed', 'active', null, null)`.execute(
    owner,
  );
  await sql`select setval(pg_get_serial_sequence('accounts', 'account_id'), 100)`.execute(owner);
  await sql`
    insert into runs (account_id, run_id, lane, kind, rail, fingerprint, content, origin, created_at)
    values (1, 'run_1', 'card', 'credits', 'card', 'f', '{}', '{}', now())`.execute(owner);
  await sql`insert into vendor_customers (account_id, customer_id) values (1, 'cus_1')`.execute(
    owner,
  );
  await insertProviderEvent(owner, { eventId: 'evt_1', type: 'a', objectId: 'in_1' }, NOW_MS);
  await owner.transaction().execute(async (transaction) => {
    const grant = {
      pool: 'purchased',
      amount: 100,
      expiresAtMs: NOW_MS + 1,
      key: 'grant:1',
    } as const;
    await grantCredits(transaction, LLM, grant, NOW_MS);
    await sql`
      update credit_grants set available = 60, expired = 30, held = 10 where account_id = 1`.execute(
      transaction,
    );
    await sql`
      insert into credit_transactions (account_id, kind, transaction_key, reason, created_at)
      values (1, 'llm', 'hold:1', 'hold', now())`.execute(transaction);
    await sql`
      insert into credit_holds (account_id, kind, hold_key, amount, expires_at)
      values (1, 'llm', 'hold:1', 10, now())`.execute(transaction);
  });
});

const RUN = sql`account_id, run_id, lane, kind, rail, fingerprint, content, origin, created_at`;
const A_RUN = sql`1, 'run_2', 'card', 'credits', 'card', 'f', '{}', '{}', now()`;
const GRANT = sql`account_id, kind, grant_id, granted, available, held, used, expired, created_at, pool`;
const FACT = sql`account_id, kind, transaction_key, created_at, reason`;
const ENTRY = sql`account_id, kind, entry_id, transaction_key, grant_id, amount, available_after, created_at, from_place, to_place`;

test.each([
  [
    'a purchase that succeeded at its start',
    sql`insert into runs (${RUN}, status, finished_at) values (${A_RUN}, 'success', now())`,
  ],
  [
    'the result of a purchase, at its start',
    sql`insert into runs (${RUN}, result) values (${A_RUN}, '{}')`,
  ],
  [
    'the invoice of a purchase, at its start',
    sql`insert into runs (${RUN}, invoice_id) values (${A_RUN}, 'in_1')`,
  ],
  [
    'a purchase that another worker holds, at its start',
    sql`insert into runs (${RUN}, fence) values (${A_RUN}, 7)`,
  ],
  ['the ending of a purchase', sql`update runs set status = 'success', finished_at = now()`],
  ['the result of a purchase', sql`update runs set result = '{}'`],
  ['the invoice of a purchase', sql`update runs set invoice_id = 'in_1'`],
  ['the content of a purchase that was started', sql`update runs set content = '{"a": 1}'`],
  [
    'a step of a purchase',
    sql`insert into run_steps (account_id, run_id, step, attempt, state, idempotency_key, input, started_at) values (1, 'run_1', 'pay', 1, 'done', 'k', '{}', now())`,
  ],
  [
    'a receipt',
    sql`insert into receipts (account_id, receipt_id, number, issued_at, billed_to, lines, total, currency, payment_method) values (1, 'run_1', '1', now(), 'a', '[]', 1, 'usd', 'card')`,
  ],
  [
    'bought credits',
    sql`insert into credit_grants (${GRANT}) values (1, 'llm', 9, 5, 5, 0, 0, 0, now(), 'purchased')`,
  ],
  [
    'credits of goodwill',
    sql`insert into credit_grants (${GRANT}) values (1, 'llm', 9, 5, 5, 0, 0, 0, now(), 'goodwill')`,
  ],
  [
    'more credits of a grant',
    sql`update credit_grants set granted = granted + 1, available = available + 1`,
  ],
  ['another pool of a grant', sql`update credit_grants set pool = 'monthly_allowance'`],
  ['a longer time of a grant', sql`update credit_grants set expires_at = null`],
  [
    'credits that had expired',
    sql`update credit_grants set available = available + expired, expired = 0`,
  ],
  ['credits that are held', sql`update credit_grants set available = available + held, held = 0`],
  [
    'the fact that bought credits were granted',
    sql`insert into credit_transactions (${FACT}) values (1, 'llm', 'grant:invoice:in_1', now(), 'grant')`,
  ],
  [
    'the fact that credits expired',
    sql`insert into credit_transactions (${FACT}) values (1, 'llm', 'expiry:1', now(), 'expiry')`,
  ],
  [
    'an issue of bought credits',
    sql`insert into credit_entries (${ENTRY}) values (1, 'llm', 9, 'grant:1', 1, 5, 5, now(), 'issued', 'available')`,
  ],
  [
    'a hold of credits, as an entry',
    sql`insert into credit_entries (${ENTRY}) values (1, 'llm', 9, 'grant:1', 1, 5, 5, now(), 'available', 'held')`,
  ],
  ['a hold of credits', sql`update credit_holds set captured = 0, ended_at = now()`],
  [
    'an account on a plan',
    sql`insert into accounts (name, plan_id, plan_tier) values ('a', 'premium_month', 'premium')`,
  ],
  [
    'an account that pays by invoice',
    sql`insert into accounts (name, billing_rail) values ('a', 'invoiced')`,
  ],
  ['payment by invoice', sql`update accounts set billing_rail = 'invoiced' where account_id = 1`],
  [
    'a greater plan',
    sql`update accounts set plan_id = 'premium_month', plan_tier = 'premium' where account_id = 1`,
  ],
  [
    'a greater plan after a trial',
    sql`update accounts set plan_id = 'premium_month', plan_tier = 'premium', plan_status = 'active', status = 'active' where account_id = 2`,
  ],
  [
    'another plan of the same tier',
    sql`update accounts set plan_id = 'essentials_year' where account_id = 1`,
  ],
  [
    'a plan that a bank has paid',
    sql`update accounts set plan_unpaid_run_id = null where account_id = 1`,
  ],
  [
    'a longer trial',
    sql`update accounts set trial_ends_at = now() + interval '1 year' where account_id = 2`,
  ],
  [
    'a closed account that opens again',
    sql`update accounts set status = 'active' where account_id = 3`,
  ],
  [
    'another customer of the payment provider',
    sql`update vendor_customers set customer_id = 'cus_2'`,
  ],
  [
    'an event of the payment provider that was applied at its receipt',
    sql`insert into vendor_events (event_id, type, object_id, received_at, next_at, settled_at) values ('e', 'a', 'o', now(), now(), now())`,
  ],
  ['an event of the payment provider as applied', sql`update vendor_events set settled_at = now()`],
  ['the loss of an event of the payment provider', sql`delete from vendor_events`],
])('Postgres refuses the API, and not the worker: %s', async (_name, statement) => {
  // Valid but for the rights: the owner may.
  const undone = new Error('undone');
  await expect(
    owner.transaction().execute(async (transaction) => {
      const { numAffectedRows } = await statement.execute(transaction);
      expect(numAffectedRows).toBeGreaterThan(0n);
      throw undone;
    }),
  ).rejects.toBe(undone);
  await expect(statement.execute(api)).rejects.toMatchObject({ code: '42501' });
});

test('a temporary table of the same name gives the API no right', async () => {
  await expect(
    api.transaction().execute(async (transaction) => {
      await sql`create temporary table receipts (a int) on commit drop`.execute(transaction);
      await sql`
        insert into credit_grants (${GRANT})
        values (1, 'llm', 9, 5, 5, 0, 0, 0, now(), 'purchased')`.execute(transaction);
    }),
  ).rejects.toMatchObject({ code: '42501' });
});

test('the API starts a purchase, spends credits and gives some back, ends a trial, and forgets applied events', async () => {
  const started = await insertPurchaseWorkflow(
    api,
    {
      accountId: 1,
      runId: 'run_3',
      lane: 'card',
      kind: 'credits',
      rail: 'card',
      fingerprint: 'f',
      content: { type: 'addons' } as never,
      origin: BY_TEST,
      expiresAtMs: NOW_MS,
    },
    NOW_MS,
  );
  expect(started).toMatchObject({ status: 'pending', result: null });
  const allowance = {
    included: 10,
    endsAtMs: NOW_MS + 1,
    key: 'allowance:2026-03:essentials_month',
  };
  const debit = { amount: 20, key: 'preview:1', hasAllowance: true, allowance };
  const refund = { amount: 5, debitKey: 'preview:1', key: 'preview:1:refund:1' };
  await api.transaction().execute(async (transaction) => {
    expect(await debitCredits(transaction, LLM, debit, NOW_MS)).toEqual({ outcome: 'debited' });
    expect(await refundCredits(transaction, LLM, refund, NOW_MS)).toEqual({ outcome: 'refunded' });
    expect(await endEssentialsTrial(transaction, 2, BUILDER, NOW_MS)).toBe('downgraded');
  });
  await insertProviderEvent(api, { eventId: 'evt_2', type: 'a', objectId: 'in_2' }, NOW_MS);
  await settleProviderEvent(worker, 'evt_2', NOW_MS - 1);
  await clearProviderEvents(api, NOW_MS, 10);
  const { rows } = await sql`select event_id as id from vendor_events`.execute(owner);
  expect(rows).toEqual([{ id: 'evt_1' }]);
});

describe('once a worker has published the plans', () => {
  const included = (llm: number) => ({ llm, builder: 0, inbox_previews: 0 });
  const PLANS = [
    { ...BUILDER, included: included(900) },
    { id: 'essentials_month', name: 'Essentials', tier: 'essentials', included: included(100) },
    { id: 'premium_month', name: 'Premium', tier: 'premium', included: included(500) },
  ] as unknown as readonly Plan[];
  const MONTH_ENDS_MS = monthEndOf(Date.now());
  let accountId = 10;

  beforeAll(() => publishPlans(worker, PLANS));
  beforeEach(async () => {
    accountId++;
    await sql`
      insert into accounts (account_id, name, plan_id, plan_name, plan_tier, status, plan_status)
      values (${accountId}, 'A', 'essentials_month', 'Essentials', 'essentials', 'active', 'active')`.execute(
      owner,
    );
  });

  /** With another key each time: the rule is not the key's. */
  const give = (by: Database, amount: number, endsAtMs = MONTH_ENDS_MS) => {
    const key = `allowance:${amount}:${endsAtMs}:${Math.random()}`;
    const grant = { pool: 'monthly_allowance', amount, expiresAtMs: endsAtMs, key } as const;
    const account = { accountId, kind: 'llm' } as const;
    return by
      .transaction()
      .execute((transaction) => grantCredits(transaction, account, grant, Date.now()));
  };
  const put = (change: string) =>
    sql`update accounts set ${sql.raw(change)} where account_id = ${accountId}`.execute(owner);
  const refused = { code: '42501' };

  test('the API gives the allowance of the plan, all of it once a month, and a worker any', async () => {
    await expect(give(api, 101)).rejects.toMatchObject(refused);
    expect(await give(api, 60, MONTH_ENDS_MS - 1)).toBe(true);
    expect(await give(api, 40)).toBe(true);
    await expect(give(api, 1)).rejects.toMatchObject(refused);
    await expect(give(api, 1, MONTH_ENDS_MS - 86_400_000)).rejects.toMatchObject(refused);
    expect(await give(worker, 1_000)).toBe(true);
  });

  test('two allowances that the API gives at the same time are together at most the plan’s', async () => {
    await sql`insert into credit_accounts (account_id, kind) values (${accountId}, 'llm')`.execute(
      owner,
    );
    const insert = (by: DatabaseOrTransaction, grantId: number) =>
      sql`
        insert into credit_grants (${GRANT}, expires_at)
        values (${accountId}, 'llm', ${grantId}, 60, 60, 0, 0, 0, now(), 'monthly_allowance',
                ${new Date(MONTH_ENDS_MS)})`.execute(by);
    let second: Promise<unknown> | undefined;
    await api.transaction().execute(async (transaction) => {
      await insert(transaction, 1);
      second = Promise.allSettled([insert(api, 2)]);
      await untilLockWaiters(owner, 1);
    });
    expect(await second).toMatchObject([{ status: 'rejected', reason: refused }]);
  });

  test('the API cannot give an allowance of a later month, or one without an end', async () => {
    // The clocks may differ by an hour, in which the next month may have begun.
    const laterMs = monthEndOf(monthEndOf(MONTH_ENDS_MS));
    await expect(give(api, 1, laterMs)).rejects.toMatchObject(refused);
    await expect(
      sql`insert into credit_accounts (account_id, kind) values (${accountId}, 'llm')`
        .execute(api)
        .then(() =>
          sql`
            insert into credit_grants (${GRANT})
            values (${accountId}, 'llm', 1, 1, 1, 0, 0, 0, now(), 'monthly_allowance')`.execute(
            api,
          ),
        ),
    ).rejects.toMatchObject(refused);
  });

  test.each([
    `plan_unpaid_run_id = 'run_1'`,
    `plan_status = 'paused'`,
    `plan_id = 'unknown'`,
    `plan_id = 'builder', plan_name = 'Builder', plan_tier = 'builder'`,
    // As a plan that was forged before the first publication.
    `plan_id = 'premium_month', plan_tier = 'builder'`,
  ])('the API cannot give an allowance to an account with %s', async (change) => {
    await put(change);
    await expect(give(api, 1)).rejects.toMatchObject(refused);
  });

  test('the API puts an account on the Builder plan of the catalogue after a trial, and on no other', async () => {
    await put(`plan_status = 'trialing', status = 'trialing', trial_ends_at = now()`);
    const end = (builder: Pick<Plan, 'id' | 'name' | 'tier'>) =>
      api
        .transaction()
        .execute((transaction) => endEssentialsTrial(transaction, accountId, builder, NOW_MS));
    for (const forged of [
      { ...BUILDER, id: 'premium_month' },
      { ...BUILDER, id: 'no_plan' },
    ])
      await expect(end(forged)).rejects.toMatchObject(refused);
    expect(await end(BUILDER)).toBe('downgraded');
  });

  test('a plan that is published again without a change is not written, and one that is gone is deleted', async () => {
    const versions = async () => {
      const { rows } = await sql<{ id: string; version: string }>`
        select plan_id as id, xmin::text as version from catalogue_plans order by 1`.execute(owner);
      return rows;
    };
    const before = await versions();
    await publishPlans(worker, PLANS);
    expect(await versions()).toEqual(before);
    await publishPlans(worker, PLANS.slice(0, 2));
    expect((await versions()).map(({ id }) => id)).toEqual(['builder', 'essentials_month']);
    await expect(publishPlans(api, PLANS)).rejects.toMatchObject(refused);
  });
});
