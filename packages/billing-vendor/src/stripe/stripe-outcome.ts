/** The endings of a call of the payment provider: with an effect, without one, or unknown. */
import { Stripe } from 'stripe';
import type { ProviderResult } from '../port/payment-provider.ts';

/**
 * Runs one exchange with the payment provider. A failure without a sign of the effect (no answer, 5xx, a lock, a limit)
 * is `unknown`. An answer of the payment provider is never thrown.
 */
export async function callStripe<Value>(
  call: () => Promise<Value>,
): Promise<ProviderResult<Value>> {
  try {
    return { outcome: 'ok', value: await call() };
  } catch (error) {
    if (!(error instanceof Stripe.errors.StripeError)) throw error;
    return judge(error);
  }
}

function judge(error: Stripe.errors.StripeError): ProviderResult<never> {
  const { statusCode, code } = error;
  if (code !== undefined && ASKS_FOR_CARDHOLDER.test(code))
    return { outcome: 'declined', declineCode: 'authentication_required' };
  if (error instanceof Stripe.errors.StripeCardError)
    return { outcome: 'declined', declineCode: declineCodeOf(error) };
  const unknown = (isFinal: boolean): ProviderResult<never> => ({
    outcome: 'unknown',
    reason: `${statusCode ?? 'no answer'} ${code ?? error.type}`,
    isFinal,
  });
  // Another request under the same key, with other content: its effect stays.
  if (error instanceof Stripe.errors.StripeIdempotencyError) return unknown(statusCode !== 409);
  if (statusCode === undefined || statusCode === 409 || statusCode === 429) return unknown(false);
  // A wrong key is an operator's mistake: the purchase waits until it is corrected.
  if (statusCode === 401 || statusCode === 403) return unknown(false);
  // Kept under the key, so asking again gives the same answer; only a look-up shows the effect.
  if (statusCode >= 500) return unknown(isReplayed(error));
  return { outcome: 'refused', code: code ?? error.type };
}

/** The code of a payment of an invoice or a subscription that corresponds to an intent's `authentication_required`. */
const ASKS_FOR_CARDHOLDER = /_payment_intent_requires_action$/;

/** The more specific of the two words that the payment provider gives. */
const declineCodeOf = (error: Stripe.errors.StripeCardError): string | null => {
  const declineCode = error.decline_code;
  return typeof declineCode === 'string' && declineCode !== '' ? declineCode : (error.code ?? null);
};

const isReplayed = (error: Stripe.errors.StripeError): boolean =>
  error.headers?.['idempotent-replayed'] === 'true';
