/** The effects of the billing routes. Each route takes the ones that it needs (`Pick`). */
import type { PaymentProvider } from '@sluice/billing-vendor/port/payment-provider';
import type { PurchaseKey } from '@sluice/database/billing/purchase-workflows';
import type { Database } from '@sluice/database/connection/connection';
import type { Catalogue } from '@sluice/domain/billing/catalogue';

export interface BillingEffects {
  readonly database: Database;
  readonly provider: PaymentProvider;
  readonly catalogue: Catalogue;
  /** Signs purchase handles and cursors. */
  readonly secret: string;
  /** Secret with which the payment provider signs its events. */
  readonly providerEventSecret: string;
  readonly wakePurchaseWorkflow: (workflow: PurchaseKey) => Promise<void>;
  readonly wakeProviderEvents: () => Promise<void>;
  readonly newId: () => string;
  readonly now: () => number;
  /** Payment by card: how long the customer may take to pay. */
  readonly cardPaymentMs: number;
  /** How long a call of the payment provider may take. */
  readonly providerTimeoutMs: number;
  /** How long a call waits for a purchase that it must answer with. */
  readonly purchaseWaitMs: number;
}

export type StartRunEffects = Pick<
  BillingEffects,
  'database' | 'wakePurchaseWorkflow' | 'newId' | 'now' | 'cardPaymentMs'
>;
