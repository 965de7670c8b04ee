/** The steps of a purchase that is one invoice: made, priced, finalized, paid or void. */
import {
  STILL_PROCESSING,
  type ProviderInvoice,
} from '@sluice/billing-vendor/port/payment-provider';
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
    async perform({ provider, workflow, known, key }) {
      const { currency } = purchaseOf(workflow).price;
      const { accountId, runId } = workflow;
      return mapResult(
        await provider.createInvoice(
          { customerId: customerOf(known), accountId, runId, currency },
          key,
        ),
        describeInvoice,
      );
    },
    async lookUp({ provider, workflow, known }) {
      const found = await provider.findInvoiceOfRun(customerOf(known), workflow.runId);
      return mapResult(found, (invoice) => invoice && describeInvoice(invoice));
    },
  },

  line: {
    async perform({ provider, workflow, known, key }) {
      const purchase = purchaseOf(workflow);
      const added = await provider.addLine(
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
    async perform({ provider, known, key }) {
      return mapResult(await provider.finalizeInvoice(invoiceOf(known), key), describeInvoice);
    },
    lookUp: lookUpInvoice((invoice) => invoice.status === 'open' || invoice.status === 'paid'),
  },

  pay: {
    async perform({ provider, known, key }) {
      return mapResult(await provider.payInvoice(invoiceOf(known), key), describeInvoice);
    },
    async lookUp({ provider, known }) {
      const found = await provider.findInvoice(invoiceOf(known));
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
    async perform({ provider, known, key }) {
      return mapResult(await provider.discardInvoice(invoiceOf(known), key), describeInvoice);
    },
    async lookUp({ provider, known }) {
      const found = await provider.findInvoice(invoiceOf(known));
      if (found.outcome !== 'ok') return found;
      const { status, payment } = found.value;
      if (!['draft', 'open', 'uncollectible'].includes(status))
        return ok(describeInvoice(found.value));
      return payment?.state === 'processing' ? STILL_PROCESSING : ok(null);
    },
  },
} satisfies Record<string, Step>;

/** Of a payment that the payment provider had taken on; undefined while it may still succeed. */
export function failureOf({ status, payment }: ProviderInvoice): StepEnd | undefined {
  if (payment?.state === 'failed')
    return { state: 'declined', output: { declineCode: payment.declineCode } };
  // Given up at the payment provider, by hand.
  return status === 'void' || status === 'deleted' || status === 'uncollectible'
    ? { state: 'refused', output: { code: `invoice_${status}` } }
    : undefined;
}

function lookUpInvoice(isDone: (invoice: ProviderInvoice) => boolean): Step['lookUp'] {
  return async ({ provider, known }) => {
    const found = await provider.findInvoice(invoiceOf(known));
    return mapResult(found, (invoice) => (isDone(invoice) ? describeInvoice(invoice) : null));
  };
}

const describeInvoice = (invoice: ProviderInvoice): StepOutput => ({
  invoiceId: invoice.invoiceId,
  invoiceStatus: invoice.status,
  total: invoice.total,
  amountDue: invoice.amountDue,
  ...(invoice.clientSecret !== null && { clientSecret: invoice.clientSecret }),
});
