/**
 * A step of a purchase workflow.
 *
 * `prepare` fixes its input before the payment provider is asked, `perform` asks, and `lookUp` finds out the effect of
 * an earlier call. `lookUp` answers null only if the step provably had no effect. The steps are in `invoice-steps.ts`
 * and `subscription-steps.ts`.
 */
import type { AddonDecision, BoughtAddon } from '@sluice/domain/billing/addon-decision';
import type { Catalogue } from '@sluice/domain/billing/catalogue';
import type { CheckoutRefusal } from '@sluice/domain/billing/decline-message';
import { AppError } from '@sluice/domain/values/errors';
import type { Money } from '@sluice/domain/values/money';
import type { BoughtSubscription, PurchaseContent } from '@sluice/domain/billing/purchase-content';
import type { PurchaseStep } from '@sluice/database/billing/purchase-steps';
import type { PurchaseWorkflow } from '@sluice/database/billing/purchase-workflows';
import type {
  InvoiceStatus,
  PaymentProvider,
  ProviderResult,
} from '@sluice/billing-vendor/port/payment-provider';

/** Results of a step for the steps after it. */
export interface StepOutput {
  readonly customerId?: string;
  readonly invoiceId?: string;
  readonly invoiceStatus?: InvoiceStatus;
  readonly clientSecret?: string | null;
  readonly total?: Money;
  /** In minor units of its total: the part of an invoice that the customer's credit does not pay. */
  readonly amountDue?: number;
  readonly decision?: AddonDecision;
  /** Of add-ons, if the subscription cannot take any now. */
  readonly refusal?: CheckoutRefusal;
  readonly subscriptionId?: string | null;
  readonly charged?: Money | null;
  /** The amount that a bank still has to pay. */
  readonly due?: Money;
  readonly subscription?: BoughtSubscription;
}

/** Fixed with the intent. */
export interface StepInput {
  /** The payment provider's refusal, when it was asked for the price. */
  readonly refusal?: string;
  readonly prorationAtMs?: number;
  readonly subscriptionId?: string | null;
  readonly itemId?: string | null;
  /** The card on file before a checkout that names another. */
  readonly earlierPaymentMethodId?: string | null;
  /** In minor units: the part of the credit for unused time that was refunded before and is charged again. */
  readonly withheld?: number;
  /** The amount that a checkout will charge, if its customer was shown one. */
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
   * Of a checkout: the payment provider's prices of the plans that the account has bought, also of plans that the
   * catalogue has no more.
   */
  readonly boughtPlanPriceIds: readonly string[];
  /** Of add-ons: the ones that the account has bought before. */
  readonly boughtAddons: readonly BoughtAddon[];
  /** The account's customer, if it has one. */
  readonly existingCustomerId: string | undefined;
  readonly nowMs: number;
}

/** Result of a call to the payment provider; `cardOnFile` if the call has changed the card on file, with any ending. */
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

/** Results of all steps that are done, together. */
export const knownOf = (steps: readonly PurchaseStep[]): StepOutput =>
  Object.assign(
    {},
    ...steps.filter((step) => step.state === 'done').map((step) => step.output as StepOutput),
  ) as StepOutput;

export const customerOf = (known: StepOutput): string => needed(known.customerId, 'a customer');
export const invoiceOf = (known: StepOutput): string => needed(known.invoiceId, 'an invoice');

function needed(value: string | undefined, what: string): string {
  if (value === undefined) throw new AppError('BUG', `a step of a run comes before ${what}`);
  return value;
}

/** @throws AppError BUG if the purchase workflow is no purchase of credits. */
export function purchaseOf({ content }: PurchaseWorkflow) {
  if (content.type !== 'purchase') throw new AppError('BUG', 'a run is no purchase of credits');
  return content.purchase;
}

/** @throws AppError BUG if the purchase workflow is no purchase of add-ons. */
export function addonsOf(content: PurchaseContent) {
  if (content.type !== 'addons') throw new AppError('BUG', 'a run is no purchase of add-ons');
  return content;
}

/** @throws AppError BUG if the purchase workflow is no checkout. */
export function checkoutOf(content: PurchaseContent) {
  if (content.type !== 'checkout') throw new AppError('BUG', 'a run is no checkout');
  return content;
}
