/** Steps of purchase workflows, on record before each request. */
import { sql } from 'kysely';
import { beforeEach, expect, test } from 'vitest';
import {
  forgiveAttempts,
  insertStepIntent,
  listPurchaseSteps,
  updateStep,
} from '../../../src/billing/purchase-steps.ts';
import {
  claimPurchaseWorkflow,
  finishPurchaseWorkflow,
  type PurchaseWorkflow,
} from '../../../src/billing/purchase-workflows.ts';
import type { Database } from '../../../src/connection/connection.ts';
import { createTestDatabase } from '../../../src/testing/testing.ts';

const NOW_MS = Date.parse('2026-03-01T00:00:00Z');
let database: Database;
let owner: PurchaseWorkflow;
/** Of another account, with the owner's name. */
let other: PurchaseWorkflow;
/** Of the owner's account. */
let beside: PurchaseWorkflow;

beforeEach(async () => {
  ({ database } = await createTestDatabase());
  await sql`insert into accounts (account_id, name) values (1, 'A'), (2, 'B')`.execute(database);
  await sql`
    insert into runs (account_id, run_id, lane, kind, rail, fingerprint, content, origin, created_at)
    select account_id, run_id, 'card', 'credits', 'card', 'f', '{}', '{}', now()
      from (values (1, 'same'), (2, 'same'), (1, 'beside')) as each (account_id, run_id)`.execute(
    database,
  );
  owner = (await claim(1))!;
  other = (await claim(2))!;
  beside = (await claim(1, 'beside'))!;
});

const claim = (accountId: number, runId = 'same') =>
  claimPurchaseWorkflow(database, { accountId, runId }, 60_000);
const endLeases = () => sql`update runs set lease_until = now() - interval '1 s'`.execute(database);
const intend = (
  workflow: PurchaseWorkflow,
  step: 'invoice' | 'pay',
  attempt = 1,
  input: object = { a: attempt },
) =>
  insertStepIntent(
    database,
    workflow,
    { step, attempt, idempotencyKey: `${step}:${attempt}`, input },
    60_000,
    NOW_MS + attempt,
  );
const update = (
  step: 'invoice' | 'pay',
  from: 'intent' | 'done',
  end: Parameters<typeof updateStep>[4],
  workflow = owner,
) =>
  database
    .transaction()
    .execute((transaction) =>
      updateStep(transaction, workflow, { step, attempt: 1 }, from, end, NOW_MS + 9),
    );
const states = async (workflow: PurchaseWorkflow) =>
  (await listPurchaseSteps(database, workflow)).map(
    ({ step, attempt, state }) => `${step} ${attempt} ${state}`,
  );

test('an intent keeps the input and the key of the first worker that noted it', async () => {
  expect(await intend(owner, 'pay', 1, { a: 'first' })).toMatchObject({
    state: 'intent',
    input: { a: 'first' },
  });
  await endLeases();
  const next = (await claim(1))!;
  expect(await intend(next, 'pay', 1, { a: 'second' })).toMatchObject({ input: { a: 'first' } });
  expect(await states(owner)).toEqual(['pay 1 intent']);
  expect(await states(other)).toEqual([]);
  expect(await states(beside)).toEqual([]);
});

test('a worker that was overtaken cannot note an intent, nor can one whose purchase has ended', async () => {
  await endLeases();
  const next = (await claim(1))!;
  expect(await intend(owner, 'pay')).toBeUndefined();
  const end = {
    status: 'failed',
    message: null,
    result: { charged: null, invoiceId: null },
  } as const;
  await database
    .transaction()
    .execute((transaction) => finishPurchaseWorkflow(transaction, next, end, NOW_MS));
  expect(await intend(next, 'pay')).toBeUndefined();
  expect(await states(next)).toEqual([]);
});

test('an intent keeps the lease for the time that its request may take, and no other lease', async () => {
  await endLeases();
  await intend(owner, 'pay');
  expect(await claim(1)).toBeUndefined();
  expect(await claim(2)).toBeDefined();
  expect(await claim(1, 'beside')).toBeDefined();
});

test('steps are listed in the order in which they were begun', async () => {
  await intend(owner, 'pay', 1);
  await intend(owner, 'pay', 3);
  await intend(owner, 'invoice', 2);
  expect(await states(owner)).toEqual(['pay 1 intent', 'invoice 2 intent', 'pay 3 intent']);
});

test('a step moves on from the named state alone, and no other step moves with it', async () => {
  await intend(owner, 'pay');
  await intend(owner, 'pay', 2);
  await intend(owner, 'invoice');
  await intend(other, 'pay');
  await intend(beside, 'pay');
  await update('pay', 'done', { state: 'declined', output: { declineCode: null } });
  expect(await states(owner)).toEqual(['invoice 1 intent', 'pay 1 intent', 'pay 2 intent']);
  await update('pay', 'intent', { state: 'done', output: { invoiceId: 'in_1' } });
  expect(await states(owner)).toEqual(['invoice 1 intent', 'pay 1 done', 'pay 2 intent']);
  expect(await states(other)).toEqual(['pay 1 intent']);
  expect(await states(beside)).toEqual(['pay 1 intent']);
  const pay = (await listPurchaseSteps(database, owner))[1];
  expect(pay).toMatchObject({
    output: { invoiceId: 'in_1' },
    startedAt: new Date(NOW_MS + 1),
    endedAt: new Date(NOW_MS + 9),
  });
  // A result stays.
  await update('pay', 'intent', { state: 'absent', output: {} });
  expect(await states(owner)).toEqual(['invoice 1 intent', 'pay 1 done', 'pay 2 intent']);
});

test('attempts without a result are forgiven to one purchase, and keep their findings', async () => {
  for (const workflow of [owner, other, beside]) {
    await intend(workflow, 'pay');
    await update('pay', 'intent', { state: 'declined', output: { declineCode: 'x' } }, workflow);
    await intend(workflow, 'invoice');
  }
  await database.transaction().execute((transaction) => forgiveAttempts(transaction, owner));
  const steps = async (workflow: PurchaseWorkflow) =>
    (await listPurchaseSteps(database, workflow)).map(({ step, isForgiven, output }) => ({
      step,
      isForgiven,
      output,
    }));
  const intent = { step: 'invoice', isForgiven: false, output: null };
  const output = { declineCode: 'x' };
  expect(await steps(owner)).toEqual([
    intent,
    { step: 'pay', isForgiven: true, output: { ...output, forgiven: true } },
  ]);
  for (const workflow of [other, beside])
    expect(await steps(workflow)).toEqual([intent, { step: 'pay', isForgiven: false, output }]);
});
