/**
 * The card that an account pays with: read from the payment provider, and changed there, but not while a purchase runs.
 */
import type { BillingAccount } from '@sluice/database/billing/account-plans';
import type { ChangeOrigin } from '@sluice/database/changes/record-change';
import {
  beginCardChange,
  endCardChange,
  recordCardOnFile,
} from '@sluice/database/billing/card-changes';
import { transactOnce } from '@sluice/database/changes/transact-once';
import {
  findProviderCustomer,
  insertProviderCustomer,
} from '@sluice/database/billing/provider-customers';
import type { CardOnFile, ProviderResult } from '@sluice/billing-vendor/port/payment-provider';
import { declineMessage } from '@sluice/domain/billing/decline-message';
import type { Address } from '@sluice/domain/accounts/postal-address';
import { idempotencyKey } from '@sluice/domain/billing/workflow-steps';
import { z } from 'zod';
import { originOf } from '../auth/account-guard.ts';
import { addressShape } from '../accounts/account-view.ts';
import { billingAccountOf, cardChanging, contactOf, requirePaymentMethodType } from './billing.ts';
import type { BillingEffects } from './billing-effects.ts';
import { accountParams } from './billing-shapes.ts';
import {
  accountFailures,
  badBody,
  inFlight,
  paymentDeclined,
  providerFailed,
} from '../http/fields.ts';
import { notFound } from '../http/problem.ts';
import { RequestRefused } from '../http/request-validation.ts';
import type { ApiServer } from '../http/api-server.ts';

const tags = ['billing'];
const failures = { ...accountFailures, ...providerFailed };

/** Three calls, for the customer, the card and setting it, each repeated once if the connection breaks. */
const PROVIDER_TRIES_MAX = 6;
const MARGIN_MS = 5_000;

/** Null if there is no card. */
export const paymentMethodShape = z
  .object({
    id: z.string(),
    type: z.string(),
    is_default: z.literal(true),
    card: z.object({
      brand: z.string(),
      last4: z.string(),
      exp_month: z.int(),
      exp_year: z.int(),
      funding: z.string(),
      expired: z.boolean(),
    }),
    billing_details: z.object({ name: z.string().nullable(), address: addressShape.nullable() }),
    created_at: z.string(),
  })
  .meta({ id: 'PaymentMethod' })
  .nullable();

export function registerPaymentMethods(
  scope: ApiServer,
  effects: Pick<BillingEffects, 'database' | 'provider' | 'providerTimeoutMs' | 'now'>,
): void {
  const { database, provider } = effects;
  scope.get(
    '/v1/accounts/:account_id/billing/payment',
    {
      config: { access: { role: 'billing_admin' } },
      schema: {
        tags,
        summary: 'The default payment method of an invoice-billed account',
        params: accountParams,
        response: { 200: z.object({ payment_method: paymentMethodShape }), ...failures },
      },
    },
    async (request, reply) => {
      const account = await billingAccountOf(request, database);
      requirePaymentMethodType(account, 'invoiced');
      const customerId = await findProviderCustomer(database, account.accountId);
      return reply.send({ payment_method: await cardOf(effects, account, customerId) });
    },
  );

  scope.post(
    '/v1/accounts/:account_id/billing/payment_method/default',
    {
      config: { access: { role: 'billing_admin' } },
      schema: {
        tags,
        summary: 'Charge this card for later payments',
        description:
          'Refused during a purchase, so that each purchase keeps its card. During this call no purchase starts.',
        params: accountParams,
        body: z
          .strictObject({
            payment_method_id: z
              .string()
              .regex(/^pm_\w{1,100}$/, 'must be the id of a payment method, such as pm_1'),
          })
          .meta({ requestExamples: [{ payment_method_id: 'pm_card_visa' }] }),
        response: {
          204: z.undefined(),
          ...paymentDeclined,
          ...inFlight,
          ...badBody,
          ...failures,
        },
      },
    },
    async (request, reply) => {
      const account = await billingAccountOf(request, database);
      const until = await begin(effects, account.accountId);
      try {
        const customerId = await customerOf(effects, account);
        const set = await provider.setDefaultCard(customerId, request.body.payment_method_id);
        if (set.outcome === 'refused') throw new RequestRefused(notFound('the payment method was'));
        // The payment provider asks the card's issuer when a card is put on file. Only the customer can do something
        // about its refusal.
        if (set.outcome === 'declined')
          throw new RequestRefused({
            code: 'payment_declined',
            message: declineMessage(set.declineCode),
          });
        answerOf(set);
        await record(effects, account.accountId, originOf(request), request.body.payment_method_id);
      } finally {
        // Also if the payment provider did not answer in time: the caller may ask again at once.
        await endCardChange(database, account.accountId, until);
      }
      return reply.code(204).send(undefined);
    },
  );
}

async function record(
  { database, now }: Pick<BillingEffects, 'database' | 'now'>,
  accountId: number,
  origin: ChangeOrigin,
  paymentMethodId: string,
): Promise<void> {
  const isRecorded = (auditLogId: number | undefined): boolean => auditLogId !== undefined;
  await transactOnce(database, origin.call, isRecorded, (transaction) =>
    recordCardOnFile(transaction, accountId, origin, paymentMethodId, now()),
  );
}

/** From now on no purchase starts. @throws RequestRefused 409 if one runs, or the card is being changed. */
async function begin(
  { database, providerTimeoutMs }: Pick<BillingEffects, 'database' | 'providerTimeoutMs'>,
  accountId: number,
): Promise<Date> {
  const durationMs = PROVIDER_TRIES_MAX * providerTimeoutMs + MARGIN_MS;
  const change = await beginCardChange(database, accountId, durationMs);
  switch (change.outcome) {
    case 'begun':
      return change.until;
    case 'changing':
      throw cardChanging();
    case 'purchase-in-flight':
      throw new RequestRefused({
        code: 'purchase_in_flight',
        message: 'a purchase of this account is in progress; wait until it has ended',
        meta: { run_id: change.workflow.runId },
      });
  }
}

/** @throws RequestRefused 503 if the payment provider gives no answer, 502 if it refuses. */
export function answerOf<Value>(result: ProviderResult<Value>): Value {
  if (result.outcome === 'ok') return result.value;
  throw new RequestRefused(
    result.outcome === 'unknown'
      ? { code: 'unavailable', message: 'the payment provider does not answer; try again' }
      : {
          code: 'vendor_refused',
          message: 'the payment provider refused the payment method; use another one',
        },
  );
}

async function customerOf(
  { database, now, provider }: Pick<BillingEffects, 'database' | 'provider' | 'now'>,
  account: BillingAccount,
): Promise<string> {
  const { accountId } = account;
  const existing = await findProviderCustomer(database, accountId);
  if (existing !== undefined) return existing;
  // The same key as a purchase's first step, so both make one customer.
  const key = idempotencyKey(`account_${accountId}`, 'customer', 1);
  const created = answerOf(
    await provider.createCustomer({ accountId, ...contactOf(account) }, key),
  );
  return database
    .transaction()
    .execute((transaction) => insertProviderCustomer(transaction, accountId, created, now()));
}

/** The card that is charged now. */
export async function cardOf(
  { now, provider }: Pick<BillingEffects, 'provider' | 'now'>,
  account: BillingAccount,
  customerId: string | undefined,
): Promise<z.infer<typeof paymentMethodShape>> {
  if (customerId === undefined) return null;
  const card = answerOf(await provider.findDefaultCard(customerId));
  return card && cardToWire(card, account.address, now());
}

const cardToWire = (card: CardOnFile, address: Address | null, nowMs: number) => ({
  id: card.paymentMethodId,
  type: card.type,
  is_default: true as const,
  card: {
    brand: card.brand,
    last4: card.last4,
    exp_month: card.expMonth,
    exp_year: card.expYear,
    funding: card.funding,
    // Good until the last day of its month.
    expired: Date.UTC(card.expYear, card.expMonth, 1) <= nowMs,
  },
  billing_details: { name: card.holderName, address },
  created_at: new Date(card.createdAtMs).toISOString(),
});
