/** The steps of a purchase that is one invoice: made, priced, finalized, paid or void. */
import { STILL_PROCESSING, type VendorInvoice } from '@sluice/billing-vendor/vendor';
import {
  customerOf,
  invoiceOf,
  mapResult,
  ok,
  purchaseOf,
  type Step,
  type StepOutput,
} from './run-step.ts';

export const INVOICE_STEPS = {
  invoice: {
    async perform({ vendor, run, known, key }) {
      const { currency } = purchaseOf(run).price;
      const { accountId, runId } = run;
      return mapResult(
        await vendor.createInvoice(
          { customerId: customerOf(known), accountId, runId, currency },
          key,
        ),
        describeInvoice,
      );
    },
    async lookUp({ vendor, run, known }) {
      const found = await vendor.findInvoiceOfRun(customerOf(known), run.runId);
      return mapResult(found, (invoice) => invoice && describeInvoice(invoice));
    },
  },

  line: {
    async perform({ vendor, run, known, key }) {
      const purchase = purchaseOf(run);
      const what =
        purchase.kind === 'inbox_previews' ? 'inbox previews' : `${purchase.kind} credits`;
      const added = await vendor.addLine(
        {
          customerId: customerOf(known),
          invoiceId: invoiceOf(known),
          price: purchase.price,
          description: `${purchase.quantity} ${what}`,
          runId: run.runId,
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
