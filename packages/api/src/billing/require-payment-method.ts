/**
 * Refuses at once a purchase without a means of payment. Otherwise a purchase that charges the card on file would
 * start, fail minutes later and report only a declined card.
 *
 * The payment provider is asked only if no card was put on file here: there may be one on file there, and the
 * customer's credit pays without a card. If it does not answer, the purchase starts: it outlives the payment provider's
 * outages.
 */
import type { BillingAccount } from '@sluice/database/billing/account-plans';
import { findProviderCustomer } from '@sluice/database/billing/provider-customers';
import type { Money } from '@sluice/domain/values/money';
import type { ProviderResult } from '@sluice/billing-vendor/port/payment-provider';
import { RequestRefused } from '../http/request-validation.ts';
import { contactOf } from './billing.ts';
import type { BillingEffects } from './billing-effects.ts';

/**
 * @param price - the amount to charge, in minor units of the catalogue's currency.
 * @throws RequestRefused 409
 */
export async function requirePaymentMethod(
  { database, provider }: Pick<BillingEffects, 'database' | 'provider'>,
  account: BillingAccount,
  price: Money,
): Promise<void> {
  // While the card is changed, another check asks the caller to come again.
  if (account.hasCardOnFile || account.isCardChanging || price.amount === 0) return;
  const { accountId } = account;
  const known = await findProviderCustomer(database, accountId);
  const found: ProviderResult<string | null> =
    known === undefined
      ? await provider.findCustomer(accountId, contactOf(account).email)
      : { outcome: 'ok', value: known };
  if (found.outcome !== 'ok') return;
  if (found.value === null) throw paymentMethodRequired(accountId);
  const customer = await provider.readCustomer(found.value);
  if (customer.outcome !== 'ok') return;
  const { hasPaymentMethod, creditAmount } = customer.value;
  if (!hasPaymentMethod && creditAmount < price.amount) throw paymentMethodRequired(accountId);
}

const paymentMethodRequired = (accountId: number): RequestRefused =>
  new RequestRefused({
    code: 'payment_method_required',
    message: `the account has no card on file: put one on file with POST /v1/accounts/${accountId}/billing/payment_method/default, then buy again`,
  });
