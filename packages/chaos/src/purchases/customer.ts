/**
 * A customer's program.
 *
 * It starts a purchase and asks again, with the same `Idempotency-Key`, until the answer is that the purchase has
 * begun. By card it pays the invoice, or does not.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { listCharges } from '@sluice/billing-vendor/simulator/simulator-controls';
import { refundCharge } from '@sluice/billing-vendor/simulator/objects/simulator-reversals';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import { sql } from 'kysely';
import type { PurchaseFleet } from './fleet.ts';
import type { Workflow } from './cells.ts';

export interface Customer {
  readonly accountId: number;
  readonly token: string;
}

interface Answer {
  readonly status: number;
  readonly body: Record<string, unknown>;
}

const RETRY_MS = 100;
const START_DEADLINE_MS = 60_000;

let customerCount = 0;

/** An account of its own, which may buy. */
export async function addCustomer(fleet: PurchaseFleet, workflow: Workflow): Promise<Customer> {
  const rail = workflow.startsWith('invoiced') ? 'invoiced' : 'card';
  const token = `sa_sandbox_customer_${++customerCount}`;
  const { rows } = await sql<{ accountId: number }>`
    with account as (
      insert into accounts (name, billing_rail, plan_id, plan_tier, plan_status, billing_email)
      values ('Acme', ${rail}, 'premium', 'premium', 'active', ${`${token}@example.com`})
      returning account_id
    ), service_account as (
      insert into service_accounts (account_id, name, role)
      select account_id, 'chaos', 'account_admin' from account
      returning account_id, service_account_id
    )
    insert into api_credentials
      (account_id, service_account_id, kind, name, secret_hash, secret_hint, scopes)
    select account_id, service_account_id, 'service_account', 'chaos', ${hashSecret(token)}, 'hint', '{}'
      from service_account
    returning account_id::int as "accountId"`.execute(fleet.database);
  return { accountId: (rows[0] as { accountId: number }).accountId, token };
}

const GOOD_CARD = 'pm_card_visa';
/** It can be saved; every charge fails. */
const BAD_CARD = 'pm_card_chargeCustomerFail';

/** The steps before the purchase; no fault happens here. */
export async function prepare(
  fleet: PurchaseFleet,
  customer: Customer,
  workflow: Workflow,
): Promise<void> {
  if (workflow.startsWith('card')) return;
  const isDeclined = workflow.endsWith('declined');
  const isLeaving = workflow === 'plan left again' || workflow === 'refunded plan left';
  const hasPlan = workflow.startsWith('add-ons') || workflow === 'change of plan' || isLeaving;
  await putCard(fleet, customer, isDeclined && !hasPlan ? BAD_CARD : GOOD_CARD);
  if (!hasPlan) return;
  const plan = isLeaving ? '/plans/premium_month' : '/plans/essentials_month';
  const coupon = workflow === 'plan left again' ? { coupon_code: 'WELCOME20' } : {};
  await post(fleet, customer, plan, coupon, [200, 409]);
  await waitForPlan(fleet, customer);
  if (workflow === 'refunded plan left') await refundPlan(fleet, customer);
  if (isDeclined) await putCard(fleet, customer, BAD_CARD);
}

/** A checkout that outlives its wait, on a machine that has much to do, goes on. */
async function waitForPlan(fleet: PurchaseFleet, { accountId }: Customer): Promise<void> {
  for (const deadlineMs = performance.now() + START_DEADLINE_MS; ; await sleep(RETRY_MS)) {
    const { rows } = await sql`
      select from runs where account_id = ${accountId} and status = 'success'`.execute(
      fleet.database,
    );
    if (rows.length > 0) return;
    if (performance.now() > deadlineMs) throw new Error('the plan was never bought');
  }
}

/** By its operator, at the payment provider. */
async function refundPlan({ database, simulator }: PurchaseFleet, { accountId }: Customer) {
  const { rows } = await sql<{ runId: string }>`
    select run_id as "runId" from runs where account_id = ${accountId} and status = 'success'`.execute(
    database,
  );
  const charge = listCharges(simulator.state).find(
    ({ runId, status }) => runId === rows[0]?.runId && status === 'succeeded',
  );
  if (!charge) throw new Error('the plan was never paid');
  refundCharge(simulator.state, charge.id, undefined);
}

const putCard = (fleet: PurchaseFleet, customer: Customer, card: string) =>
  post(fleet, customer, '/payment_method/default', { payment_method_id: card }, [204]);

/** The customer's part of the purchase itself. */
export async function buy(
  fleet: PurchaseFleet,
  customer: Customer,
  workflow: Workflow,
): Promise<void> {
  switch (workflow) {
    case 'invoiced':
    case 'invoiced, declined': {
      const path = '/inbox_previews/invoiced_purchase';
      return void (await post(fleet, customer, path, { pack: 'pack_100' }, [200]));
    }
    case 'add-ons':
    case 'add-ons, declined': {
      const skus = { add: ['price_addon_ip_month', 'price_addon_sms_month'] };
      return void (await post(fleet, customer, '/addons', { skus }, [200]));
    }
    case 'checkout':
    case 'change of plan':
    case 'checkout, declined':
      // Bought, declined or pending: each shows that the purchase has begun.
      return void (await post(fleet, customer, '/plans/premium_month', {}, [200, 402, 409]));
    case 'plan left again':
    case 'refunded plan left':
      return void (await post(fleet, customer, '/plans/builder', {}, [200, 402, 409]));
    case 'card, paid':
    case 'card, not paid': {
      const path = '/inbox_previews/payment_intent';
      const { body } = await post(fleet, customer, path, { pack: 'pack_100' }, [200]);
      if (workflow === 'card, paid') await pay(fleet, String(body['client_secret']));
    }
  }
}

async function post(
  fleet: PurchaseFleet,
  customer: Customer,
  path: string,
  body: object,
  wanted: readonly number[],
): Promise<Answer> {
  const key = `${customer.accountId} ${path} ${JSON.stringify(body)}`.replaceAll(/[^!-~]/g, '_');
  const deadlineMs = performance.now() + START_DEADLINE_MS;
  let last = '';
  for (; performance.now() < deadlineMs; await sleep(RETRY_MS)) {
    const answer = await call(fleet, customer, path, body, key).catch((error: Error) => error);
    if (answer instanceof Error) {
      // The API is gone; a minute later the next one takes the call over from it.
      await sql`update idempotency_keys set locked_until = now() where answer is null`.execute(
        fleet.database,
      );
      last = answer.message;
    } else if (wanted.includes(answer.status) && answer.body['code'] !== IN_USE) return answer;
    else if (answer.status < 500 && answer.body['code'] !== IN_USE)
      throw new Error(`${path} answered ${answer.status}: ${JSON.stringify(answer.body)}`);
    else last = JSON.stringify(answer);
  }
  throw new Error(`${path} never began: ${last}`);
}

const IN_USE = 'idempotency_key_in_use';

async function call(
  fleet: PurchaseFleet,
  { accountId, token }: Customer,
  path: string,
  body: object,
  key: string,
): Promise<Answer> {
  const answer = await fetch(`${fleet.apiUrl}/v1/accounts/${accountId}/billing${path}`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'idempotency-key': key,
    },
    body: JSON.stringify(body),
    signal: AbortSignal.timeout(20_000),
  });
  const text = await answer.text();
  return {
    status: answer.status,
    body: (text === '' ? {} : JSON.parse(text)) as Record<string, unknown>,
  };
}

/** As the payment provider's form in the browser does; it tries again until it has an answer. */
async function pay(fleet: PurchaseFleet, clientSecret: string): Promise<void> {
  const [intent] = clientSecret.split('_secret_');
  const url = `${fleet.settings['SIMULATOR_URL']}/v1/payment_intents/${intent}/confirm`;
  for (const deadlineMs = performance.now() + START_DEADLINE_MS; ; await sleep(RETRY_MS)) {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { authorization: 'Bearer pk_test' },
      body: new URLSearchParams({ payment_method: GOOD_CARD, client_secret: clientSecret }),
      signal: AbortSignal.timeout(1_000),
    }).catch(() => undefined);
    // 400: an earlier try, whose answer was lost, has paid it.
    if (answer?.ok === true || answer?.status === 400) return;
    if (performance.now() > deadlineMs) throw new Error('the payment was never confirmed');
  }
}
