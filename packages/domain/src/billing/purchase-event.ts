/**
 * Event about an ended purchase, for every ending. Webhooks may choose it like any other event type.
 *
 * It contains only facts that a caller with access to the account's purchases can read. Its id is the purchase
 * workflow's, so that a receiver recognises a second one.
 */
import type { ReportingEvent } from '../delivery/reporting-event.ts';
import type { PaymentMethodType, PurchaseEnding, PurchaseKind } from './purchase-workflow.ts';
import type { PurchaseResult } from './purchase-content.ts';

export interface EndedPurchase {
  readonly accountId: number;
  readonly runId: string;
  readonly kind: PurchaseKind;
  readonly rail: PaymentMethodType;
  readonly status: PurchaseEnding;
  /** Safe to show the customer. */
  readonly message: string | null;
  readonly result: PurchaseResult;
}

const RUN_PREFIX = 'run_';

/** As it is logged to the webhooks of one workspace. */
export function purchaseEndedEvent(
  purchase: EndedPurchase,
  environmentId: number,
  nowMs: number,
): ReportingEvent {
  const { runId, result } = purchase;
  return {
    environmentId,
    eventId: runId.startsWith(RUN_PREFIX) ? runId.slice(RUN_PREFIX.length) : runId,
    eventType: 'purchase_ended',
    objectType: 'purchase',
    metric: 'ended',
    occurredAtMs: nowMs,
    data: {
      account_id: purchase.accountId,
      run_id: runId,
      kind: purchase.kind,
      rail: purchase.rail,
      status: purchase.status,
      message: purchase.message,
      invoice_id: result.invoiceId,
      charged: result.charged && { ...result.charged },
    },
  };
}
