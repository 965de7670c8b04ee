/**
 * Sends the payment provider an account's invoice data: name, address and the addresses for invoices
 * (`account-conventions.md` §4.1). One entry of the outbox a change; each sends the present values.
 *
 * Two processes may send two entries at once, and the older values may reach the payment provider last. So the account
 * is read again after sending, and sent again if it has changed. The process that writes last has therefore checked
 * after its write.
 */
import type { Database } from '@sluice/database/connection/connection';
import type {
  CustomerDetails,
  PaymentProvider,
} from '@sluice/billing-vendor/port/payment-provider';
import { findAccount, type Account } from '@sluice/database/accounts/accounts';
import { findProviderCustomer } from '@sluice/database/billing/provider-customers';
import type { OutboxEntry } from '@sluice/database/changes/outbox';
import { contactOf } from '../billing/billing.ts';

export interface TellCustomerEffects {
  readonly database: Database;
  readonly provider: Pick<PaymentProvider, 'updateCustomer'>;
}

/** @throws Error if the payment provider did not take it; the entry is sent again later. */
export async function updateProviderCustomer(
  { database, provider }: TellCustomerEffects,
  entry: Pick<OutboxEntry, 'outboxId' | 'attempt' | 'payload'>,
): Promise<void> {
  const accountId = Number(entry.payload['account_id']);
  const customerId = await findProviderCustomer(database, accountId);
  // It is sent once the payment provider has a customer.
  if (customerId === undefined) return;
  let told = '';
  for (let round = 1; ; round += 1) {
    const account = await findAccount(database, accountId);
    if (!account) return;
    const details = detailsOf(account);
    const text = JSON.stringify(details);
    if (text === told) return;
    // The content differs each time, so the key does too.
    const key = `outbox_${entry.outboxId}_${entry.attempt}_${round}`;
    const result = await provider.updateCustomer(customerId, details, key);
    if (result.outcome !== 'ok')
      throw new Error(`the payment provider answered: ${result.outcome}`);
    told = text;
  }
}

function detailsOf(account: Account): CustomerDetails {
  const { address } = account;
  return {
    name: address?.company ?? account.name,
    email: contactOf(account).email,
    address: address && {
      line1: address.line1,
      line2: address.line2,
      city: address.city,
      state: address.state,
      postalCode: address.postal_code,
      country: address.country,
    },
    taxId: address?.tax_id ?? null,
  };
}
