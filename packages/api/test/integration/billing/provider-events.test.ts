import { Stripe } from 'stripe';
import { sql } from 'kysely';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { PROVIDER_EVENT_SECRET } from '../support/api-under-test.ts';
import { startBilling, type Billing } from '../support/billing-world.ts';

let billing: Billing;
beforeEach(async () => {
  billing = await startBilling();
});
afterEach(() => billing.api.close());

describe('events of the payment provider', () => {
  const stripe = new Stripe('sk_test');
  const payload = JSON.stringify({
    id: 'evt_1',
    object: 'event',
    type: 'invoice.paid',
    data: { object: { id: 'in_1', object: 'invoice' } },
  });
  const nowSeconds = () => Math.floor(billing.api.clock.nowMs / 1_000);
  const sign = (text: string, secret = PROVIDER_EVENT_SECRET, timestamp = nowSeconds()) =>
    stripe.webhooks.generateTestHeaderString({ payload: text, secret, timestamp });
  const send = (text: string, signature: string | undefined) =>
    billing.api.app.inject({
      method: 'POST',
      url: '/v1/vendor_events',
      headers: {
        'content-type': 'application/json',
        ...(signature !== undefined && { 'stripe-signature': signature }),
      },
      payload: text,
    });
  const kept = async () => {
    const { rows } = await sql<{ id: string }>`select event_id as id from vendor_events`.execute(
      billing.api.database,
    );
    return rows.map((row) => row.id);
  };

  test('I22: with the payment provider’s own signature are kept once', async () => {
    for (let time = 0; time < 3; time++)
      expect((await send(payload, sign(payload))).statusCode).toBe(200);
    expect(await kept()).toEqual(['evt_1']);
  });

  test.each([
    ['no signature', () => undefined],
    ['junk', () => 'junk'],
    ['another secret', () => sign(payload, 'whsec_other')],
    ['a signature of eleven minutes ago', () => sign(payload, undefined, nowSeconds() - 660)],
    ['one altered byte', () => sign(payload.replace('in_1', 'in_2'))],
  ])('I22: with %s are refused and not stored', async (_what, signature) => {
    expectProblem(await send(payload, signature()), 400, 'invalid_signature');
    expect(await kept()).toEqual([]);
  });

  test.each([
    'invoice.payment_failed',
    'customer.subscription.deleted',
    'charge.refunded',
    'charge.refund.updated',
    'refund.created',
    'refund.failed',
    'charge.dispute.closed',
    'charge.dispute.funds_withdrawn',
  ])('%s are kept for the worker', async (type) => {
    const told = payload.replace('invoice.paid', type);
    expect((await send(told, sign(told))).statusCode).toBe(200);
    expect(await kept()).toEqual(['evt_1']);
  });

  test('I22: of unused types are answered 200 and not stored', async () => {
    const thin = { id: 'evt_2', object: 'v2.core.event', type: 'v2.core.account.updated' };
    for (const other of [
      payload.replace('invoice.paid', 'price.created'),
      payload.replace('invoice.paid', 'charge.succeeded'),
      JSON.stringify(thin),
      JSON.stringify({ ...thin, object: 'event', type: 'invoice.paid', data: { object: null } }),
      JSON.stringify({ ...thin, object: 'event', type: 'balance.available', data: {} }),
    ]) {
      expect((await send(other, sign(other))).statusCode).toBe(200);
      expect(await kept()).toEqual([]);
    }
  });
});
