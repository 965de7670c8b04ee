/**
 * The steps of a purchase workflow by their names. `domain/src/billing/workflow-steps.ts` decides their order;
 * `advance-purchase-workflow.ts` calls them.
 */
import type { StepName } from '@sluice/domain/billing/workflow-steps';
import { INVOICE_STEPS } from './invoice-steps.ts';
import { mapResult, ok, type Step } from '../settlement/purchase-step.ts';
import { SUBSCRIPTION_STEPS } from './subscription-steps.ts';

const CUSTOMER_STEP: Step = {
  async perform({ provider, workflow, existingCustomerId, key }) {
    if (existingCustomerId !== undefined) return ok({ customerId: existingCustomerId });
    const created = await provider.createCustomer(
      { accountId: workflow.accountId, ...workflow.content.contact },
      key,
    );
    return mapResult(created, (customerId) => ({ customerId }));
  },
  async lookUp({ provider, workflow }) {
    const found = await provider.findCustomer(workflow.accountId, workflow.content.contact.email);
    return mapResult(found, (customerId) => (customerId === null ? null : { customerId }));
  },
};

export const STEPS: Readonly<Record<StepName, Step>> = {
  customer: CUSTOMER_STEP,
  ...INVOICE_STEPS,
  ...SUBSCRIPTION_STEPS,
};
