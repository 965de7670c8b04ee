/**
 * What a step of a purchase workflow is: what is fixed before the payment provider is asked (`prepare`), the asking
 * (`perform`), and how to find out what an earlier asking did (`lookUp`, which answers null only where the step
 * provably had no effect). The steps: `invoice-steps.ts`, `subscription-steps.ts`.
 */
import type { AddonDecision, BoughtAddon } from '@sluice/domain/billing/addon-decision';
import type { Catalogue } from '@sluice/domain/billing/catalogue';
import type { CheckoutRefusal } from '@sluice/domain/billing/decline-message';
import { AppError } from '@sluice/domain/values/errors';
import type { Money } from '@sluice/domain/values/money';
import type { BoughtSubscription, PurchaseContent } from '@sluice/domain/billing/purchase-content';
import type { PurchaseWorkflow } from '@sluice/database/billing/purchase-workflows';
import type {
  InvoiceStatus,
  PaymentProvider,
  ProviderResult,
} from '@sluice/billing-vendor/port/payment-provider';

/** What a step leaves for the steps after it. */
export interface StepOutput {
  readonly customerId?: string;
  readonly invoiceId?: string;
  readonly invoiceStatus?: InvoiceStatus;
  readonly clientSecret?: string | null;
  readonly total?: Money;
  /** In minor units of its total: what the customer's credit leaves to be paid of an invoice. */
  readonly amountDue?: number;
  readonly decision?: AddonDecision;
  /** Of add-ons, where nothing may be added to the subscription now. */
  readonly refusal?: CheckoutRefusal;
  readonly subscriptionId?: string | null;
  readonly charged?: Money | null;
  /** What a bank still has to pay. */
  readonly due?: Money;
  readonly subscription?: BoughtSubscription;
}

/** Fixed with the intent. */
export interface StepInput {
  /** The payment provider's refusal, when it was asked what this would cost. */
  readonly refusal?: string;
  readonly prorationAtMs?: number;
  readonly subscriptionId?: string | null;
  readonly itemId?: string | null;
  /** The card on file before a checkout that names another. */
  readonly earlierPaymentMethodId?: string | null;
  /** In minor units: of the credit for unused time, what was refunded before and is charged again. */
  readonly withheld?: number;
  /** What a checkout will charge, where its customer was shown an amount. */
  readonly amount?: Money;
}

export interface StepContext {
  readonly provider: PaymentProvider;
  readonly catalogue: Catalogue;
  readonly workflow: PurchaseWorkflow;
  /** Of all steps that are done, together. */
  readonly known: StepOutput;
  readonly input: StepInput;
  /** Of this attempt. */
  readonly key: string;
  /**
   * Of a checkout: the payment provider's prices of the plans that the account has bought, whatever the catalogue says
   * by now.
   */
  readonly boughtPlanPriceIds: readonly string[];
  /** Of add-ons: those that the account has bought before. */
  readonly boughtAddons: readonly BoughtAddon[];
  /** The account's customer, if it has one. */
  readonly existingCustomerId: string | undefined;
  readonly nowMs: number;
}

/**
 * What came of asking the payment provider; `cardOnFile` if that has changed the card on file, however else it
 * ended.
 */
export type StepResult<Value> = ProviderResult<Value> & { readonly cardOnFile?: string };

export interface Step {
  readonly prepare?: (context: Omit<StepContext, 'input'>) => Promise<ProviderResult<StepInput>>;
  readonly perform: (context: StepContext) => Promise<StepResult<StepOutput>>;
  readonly lookUp: (context: StepContext) => Promise<StepResult<StepOutput | null>>;
}

export const ok = <Value>(value: Value): ProviderResult<Value> => ({ outcome: 'ok', value });

export function mapResult<From, To>(
  result: ProviderResult<From>,
  to: (value: From) => To,
): ProviderResult<To> {
  return result.outcome === 'ok' ? ok(to(result.value)) : result;
}

export const customerOf = (known: StepOutput): string => needed(known.customerId, 'a customer');
export const invoiceOf = (known: StepOutput): string => needed(known.invoiceId, 'an invoice');

function needed(value: string | undefined, what: string): string {
  if (value === undefined) throw new AppError('BUG', `a step of a run comes before ${what}`);
  return value;
}

/** @throws AppError BUG where the purchase workflow is no purchase of credits. */
export function purchaseOf({ content }: PurchaseWorkflow) {
  if (content.type !== 'purchase') throw new AppError('BUG', 'a run is no purchase of credits');
  return content.purchase;
}

/** @throws AppError BUG where the purchase workflow is no purchase of add-ons. */
export function addonsOf(content: PurchaseContent) {
  if (content.type !== 'addons') throw new AppError('BUG', 'a run is no purchase of add-ons');
  return content;
}

/** @throws AppError BUG where the purchase workflow is no checkout. */
export function checkoutOf(content: PurchaseContent) {
  if (content.type !== 'checkout') throw new AppError('BUG', 'a run is no checkout');
  return content;
}
