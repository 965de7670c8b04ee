/** The steps of a purchase that is one invoice: made, priced, finalized, paid or void. */
import { STILL_PROCESSING, type VendorInvoice } from '@sluice/billing-vendor/port/vendor';
import type { StepEnd } from '@sluice/database/billing/purchase-steps';
import { describeCredits } from '@sluice/domain/billing/catalogue';
import {
  customerOf,
  invoiceOf,
  mapResult,
  ok,
  purchaseOf,
  type Step,
  type StepOutput,
} from '../settlement/purchase-step.ts';

export const INVOICE_STEPS = {
  invoice: {
    async perform({ vendor, workflow, known, key }) {
      const { currency } = purchaseOf(workflow).price;
      const { accountId, runId } = workflow;
      return mapResult(
        await vendor.createInvoice(
          { customerId: customerOf(known), accountId, runId, currency },
          key,
        ),
        describeInvoice,
      );
    },
    async lookUp({ vendor, workflow, known }) {
      const found = await vendor.findInvoiceOfRun(customerOf(known), workflow.runId);
      return mapResult(found, (invoice) => invoice && describeInvoice(invoice));
    },
  },

  line: {
    async perform({ vendor, workflow, known, key }) {
      const purchase = purchaseOf(workflow);
      const added = await vendor.addLine(
        {
          customerId: customerOf(known),
          invoiceId: invoiceOf(known),
          price: purchase.price,
          description: describeCredits(purchase),
          runId: workflow.runId,
        },
        key,
      );
      return mapResult(added, () => ({}));
    },
    lookUp: lookUpInvoice((invoice) => invoice.lineCount > 0),
  },

  finalize: {
    async perform({ vendor, known, key }) {
      return mapResult(await vendor.finalizeInvoice(invoiceOf(known), key), describeInvoice);
    },
    lookUp: lookUpInvoice((invoice) => invoice.status === 'open' || invoice.status === 'paid'),
  },

  pay: {
    async perform({ vendor, known, key }) {
      return mapResult(await vendor.payInvoice(invoiceOf(known), key), describeInvoice);
    },
    async lookUp({ vendor, known }) {
      const found = await vendor.findInvoice(invoiceOf(known));
      if (found.outcome !== 'ok') return found;
      const { status, payment } = found.value;
      if (status === 'paid') return ok(describeInvoice(found.value));
      if (payment?.state === 'failed')
        return { outcome: 'declined', declineCode: payment.declineCode };
      // Taken on by a bank: paying again would charge twice.
      return ok(payment ? describeInvoice(found.value) : null);
    },
  },

  void: {
    async perform({ vendor, known, key }) {
      return mapResult(await vendor.discardInvoice(invoiceOf(known), key), describeInvoice);
    },
    async lookUp({ vendor, known }) {
      const found = await vendor.findInvoice(invoiceOf(known));
      if (found.outcome !== 'ok') return found;
      const { status, payment } = found.value;
      if (!['draft', 'open', 'uncollectible'].includes(status))
        return ok(describeInvoice(found.value));
      return payment?.state === 'processing' ? STILL_PROCESSING : ok(null);
    },
  },
} satisfies Record<string, Step>;

/** Of a payment that the vendor had taken on; undefined while it may still succeed. */
export function failureOf({ status, payment }: VendorInvoice): StepEnd | undefined {
  if (payment?.state === 'failed')
    return { state: 'declined', output: { declineCode: payment.declineCode } };
  // Given up at the vendor, by hand.
  return status === 'void' || status === 'deleted' || status === 'uncollectible'
    ? { state: 'refused', output: { code: `invoice_${status}` } }
    : undefined;
}

function lookUpInvoice(isDone: (invoice: VendorInvoice) => boolean): Step['lookUp'] {
  return async ({ vendor, known }) => {
    const found = await vendor.findInvoice(invoiceOf(known));
    return mapResult(found, (invoice) => (isDone(invoice) ? describeInvoice(invoice) : null));
  };
}

const describeInvoice = (invoice: VendorInvoice): StepOutput => ({
  invoiceId: invoice.invoiceId,
  invoiceStatus: invoice.status,
  total: invoice.total,
  ...(invoice.clientSecret !== null && { clientSecret: invoice.clientSecret }),
});
