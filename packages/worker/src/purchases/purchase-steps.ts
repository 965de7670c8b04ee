/**
 * The steps of a run by their names. Which comes when is `domain/src/billing/run-workflow.ts`'s to say;
 * `advance-run.ts` calls them.
 */
import type { StepName } from '@sluice/domain/billing/run-workflow';
import { INVOICE_STEPS } from './invoice-steps.ts';
import { mapResult, ok, type Step } from '../settlement/run-step.ts';
import { SUBSCRIPTION_STEPS } from './subscription-steps.ts';

const CUSTOMER_STEP: Step = {
  async perform({ vendor, run, existingCustomerId, key }) {
    if (existingCustomerId !== undefined) return ok({ customerId: existingCustomerId });
    const created = await vendor.createCustomer(
      { accountId: run.accountId, ...run.content.contact },
      key,
    );
    return mapResult(created, (customerId) => ({ customerId }));
  },
  async lookUp({ vendor, run }) {
    const found = await vendor.findCustomer(run.accountId, run.content.contact.email);
    return mapResult(found, (customerId) => (customerId === null ? null : { customerId }));
  },
};

export const STEPS: Readonly<Record<StepName, Step>> = {
  customer: CUSTOMER_STEP,
  ...INVOICE_STEPS,
  ...SUBSCRIPTION_STEPS,
};
