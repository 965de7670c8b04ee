import { Stripe } from 'stripe';
import { expect, test } from 'vitest';
import { callStripe } from '../../src/stripe/stripe-outcome.ts';

const raw = (statusCode: number, code: string, type = 'invalid_request_error') => ({
  message: 'a',
  statusCode,
  code,
  type: type as 'invalid_request_error',
});
const failWith = (what: Error) => () => Promise.reject(what);
const { StripeCardError, StripeInvalidRequestError } = Stripe.errors;

test.each([
  [new StripeInvalidRequestError(raw(400, 'invoice_payment_intent_requires_action'))],
  [
    new StripeCardError(
      raw(402, 'subscription_payment_intent_requires_action', 'card_error') as never,
    ),
  ],
  [new StripeCardError(raw(402, 'authentication_required', 'card_error') as never)],
])(
  'a card whose issuer asks for the cardholder is declined as authentication_required, for any payment',
  async (thrown) => {
    expect(await callStripe(failWith(thrown))).toEqual({
      outcome: 'declined',
      declineCode: 'authentication_required',
    });
  },
);

test('an error of our own code is thrown, not returned as an answer of the payment provider', async () => {
  const bug = new TypeError('a bug of ours');
  await expect(callStripe(failWith(bug))).rejects.toBe(bug);
});
