/**
 * Purchases over a real database and the simulated payment provider.
 *
 * The clock is the test's own.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { eventSubject } from '@sluice/billing-vendor/port/event-subject';
import { readCatalogue } from '@sluice/billing-vendor/catalogue/read-catalogue';
import { startSimulator } from '@sluice/billing-vendor/simulator/simulator';
import { listCharges } from '@sluice/billing-vendor/simulator/simulator-controls';
import {
  createStripeProvider,
  openStripeClient,
} from '@sluice/billing-vendor/stripe/stripe-provider';
import { listBalances } from '@sluice/database/credits/credit-reads';
import {
  findPurchaseWorkflow,
  insertPurchaseWorkflow,
  type PurchaseWorkflow,
} from '@sluice/database/billing/purchase-workflows';
import { listPurchaseSteps } from '@sluice/database/billing/purchase-steps';
import { createTestDatabase } from '@sluice/database/testing/testing';
import { insertProviderEvent, type ProviderEvent } from '@sluice/database/billing/provider-events';
import { pricePack, type Coupon } from '@sluice/domain/billing/catalogue';
import { viewBalance } from '@sluice/domain/billing/credit-ledger';
import {
  fingerprintOf,
  laneOf,
  type PaymentMethodType,
} from '@sluice/domain/billing/purchase-workflow';
import type { PurchaseContent } from '@sluice/domain/billing/purchase-content';
import { createLogger } from '@sluice/platform/process/logger';
import { sql } from 'kysely';
import { onTestFinished } from 'vitest';
import {
  advancePurchaseWorkflow,
  type AdvancePurchaseWorkflowDeps,
  type CrashPoint,
} from '../../../src/purchases/advance-purchase-workflow.ts';
import { settleProviderEvents } from '../../../src/settlement/settle-provider-events.ts';

export const CATALOGUE = readCatalogue(undefined);
/** The workers' catalogue names it, and the payment provider has no such coupon. */
const NOT_AT_THE_VENDOR: Coupon = {
  code: 'NOT_AT_THE_VENDOR',
  name: 'A coupon of nowhere',
  percentOff: 10,
  amountOff: null,
  expiresAtMs: null,
  duration: 'once',
  durationMonths: null,
  redemptionCountMax: null,
};

/** For one purchase workflow, on a machine that others use too. */
const DEADLINE_MS = 60_000;
const VENDOR_TIMEOUT_MS = 20_000;

/** Thrown in place of a kill: the worker writes no more. */
class Killed extends Error {}

export async function startPurchases(
  options: {
    readonly random?: () => number;
    /**
     * If absent, long enough for a busy machine. Short if the payment provider shall often not answer, and every answer
     * may be missed.
     */
    readonly providerTimeoutMs?: number;
  } = {},
) {
  const { database, url, openAs } = await createTestDatabase();
  const simulator = await startSimulator({
    host: '127.0.0.1',
    port: 0,
    webhookSecret: 'whsec_test',
    catalogue: CATALOGUE,
    now: Date.now,
    random: options.random ?? Math.random,
  });
  onTestFinished(() => simulator.close());
  const openPaymentProvider = (timeoutMs: number) =>
    createStripeProvider(
      openStripeClient({
        secretKey: 'sk_test_simulator',
        baseUrl: `http://127.0.0.1:${simulator.port}`,
        timeoutMs,
      }),
    );
  const provider = openPaymentProvider(VENDOR_TIMEOUT_MS);
  const clock = { aheadMs: 0 };
  const now = () => Date.now() + clock.aheadMs;
  const logger = createLogger('test', 'silent');
  // Steps before a purchase, and looks at it, are no part of the test and wait.
  const askedProvider = openPaymentProvider(options.providerTimeoutMs ?? VENDOR_TIMEOUT_MS);
  const deps = {
    database,
    provider: askedProvider,
    catalogue: { ...CATALOGUE, coupons: [...CATALOGUE.coupons, NOT_AT_THE_VENDOR] },
    leaseMs: 60_000,
    now,
    logger,
  };
  let runCount = 0;

  const world = {
    database,
    url,
    openAs,
    simulator,
    provider,
    /** For the one turn in which the payment provider does not answer one request. A busy machine answers the others. */
    hastyProvider: openPaymentProvider(3_000),
    clock,
    deps,
    charges: () => listCharges(simulator.state),
    succeeded: () => world.charges().filter((charge) => charge.status === 'succeeded'),

    /** An account with its customer at the payment provider and this card on file. */
    async addAccount(card: string | null, rail: PaymentMethodType = 'invoiced'): Promise<number> {
      const { rows } = await sql<{ accountId: number }>`
        insert into accounts (name, billing_rail, plan_id, plan_tier, plan_status)
        values ('Acme', ${rail}, 'premium_month', 'premium', 'active')
        returning account_id::int as "accountId"`.execute(database);
      const { accountId } = rows[0]!;
      const email = `billing-${accountId}@example.com`;
      const customer = await provider.createCustomer(
        { accountId, name: 'Acme', email },
        `account_${accountId}:customer:1`,
      );
      if (customer.outcome !== 'ok') throw new Error(customer.outcome);
      if (card !== null) await provider.setDefaultCard(customer.value, card);
      return accountId;
    },

    /** The account pays with this card from now on. */
    async putCard(accountId: number, card: string): Promise<void> {
      const email = `billing-${accountId}@example.com`;
      const found = await provider.findCustomer(accountId, email);
      if (found.outcome !== 'ok' || found.value === null) throw new Error('there is no customer');
      await provider.setDefaultCard(found.value, card);
    },

    async start(
      accountId: number,
      rail: PaymentMethodType,
      kind: 'inbox_previews' | 'addons' | 'checkout',
      content: PurchaseContent extends infer Each ? Omit<Each & PurchaseContent, 'contact'> : never,
    ): Promise<PurchaseWorkflow> {
      const workflow = await insertPurchaseWorkflow(
        database,
        {
          accountId,
          runId: `run_${++runCount}_${accountId}`,
          lane: laneOf(kind, rail),
          kind,
          rail,
          fingerprint: fingerprintOf(kind, {}),
          content: {
            ...content,
            contact: { name: 'Acme', email: `billing-${accountId}@example.com` },
          } as PurchaseContent,
          origin: { actor: { type: 'system' } },
          expiresAtMs: rail === 'card' && kind === 'inbox_previews' ? now() + 3_600_000 : null,
        },
        now(),
      );
      if (!workflow) throw new Error('the lane is taken');
      return workflow;
    },

    buyPack: (accountId: number, rail: PaymentMethodType = 'invoiced') =>
      world.start(accountId, rail, 'inbox_previews', {
        type: 'purchase',
        purchase: pricePack(CATALOGUE, 'pack_100')!,
      } as never),

    advance: (workflow: PurchaseWorkflow, changes: Partial<AdvancePurchaseWorkflowDeps> = {}) =>
      advancePurchaseWorkflow({ ...deps, ...changes }, workflow),

    /** Runs it until it ends, moving the clock past every wait; the first worker may be killed. */
    async finish(
      workflow: PurchaseWorkflow,
      killAt?: CrashPoint,
      changes: Partial<AdvancePurchaseWorkflowDeps> = {},
    ): Promise<PurchaseWorkflow> {
      const deadlineMs = performance.now() + DEADLINE_MS;
      for (let turn = 0; performance.now() < deadlineMs; turn++) {
        // The first worker dies at that moment; the second one continues its work.
        await world.turn(workflow, turn === 0 ? killAt : undefined, changes);
        const current = (await findPurchaseWorkflow(database, workflow.accountId, workflow.runId))!;
        if (current.status !== 'pending' || current.reviewReason !== null) return current;
        clock.aheadMs += 3_700;
        // A slow request of the payment provider takes its time, by any clock of ours.
        await sleep(10);
      }
      throw new Error('the run does not end');
    },

    /**
     * Gives a payment provider up that does not answer at once, or on a busy machine one that would have, and asks
     * again.
     */
    finishHastily: (workflow: PurchaseWorkflow): Promise<PurchaseWorkflow> =>
      world.finish(workflow, undefined, { provider: openPaymentProvider(150) }),

    /** Payment by card: until the customer may pay. */
    async wait(workflow: PurchaseWorkflow, killAt: CrashPoint): Promise<void> {
      const deadlineMs = performance.now() + DEADLINE_MS;
      for (let turn = 0; performance.now() < deadlineMs; turn++) {
        const steps = await world.steps(workflow);
        if (steps.some((step) => step.step === 'finalize' && step.state === 'done')) return;
        await world.turn(workflow, turn === 0 ? killAt : undefined);
      }
      throw new Error('the invoice is never finalized');
    },

    /** One worker takes the purchase workflow as far as it goes, or until it is killed; then its time is over. */
    async turn(
      workflow: PurchaseWorkflow,
      killAt?: CrashPoint,
      changes: Partial<AdvancePurchaseWorkflowDeps> = {},
    ): Promise<void> {
      await advancePurchaseWorkflow(
        {
          ...deps,
          ...changes,
          async onPoint(point) {
            if (point === killAt) throw new Killed();
          },
        },
        workflow,
      ).catch((error: unknown) => {
        if (!(error instanceof Killed)) throw error;
      });
      // A killed worker's lease runs out; a wait is over.
      await sql`update runs set lease_until = null, next_at = now() where run_id = ${workflow.runId}`.execute(
        database,
      );
    },

    async balance(accountId: number): Promise<number> {
      const balances = await listBalances(database, accountId, ['inbox_previews']);
      // Without credits that have ended and are not written down yet, as of a month that ends while a bank decides.
      return viewBalance(balances.get('inbox_previews')!, now(), true).totalAvailable;
    },

    steps: (workflow: PurchaseWorkflow) => listPurchaseSteps(database, workflow),

    settleEvents: () => settleProviderEvents({ database, provider, now, logger }),

    /**
     * The payment provider's waiting events until now, which it then forgets; only the ones that the API would keep.
     */
    takeEvents: (): ProviderEvent[] =>
      simulator.state
        .list('event')
        .map((event) => {
          const { object } = event['data'] as { object: { id: string } };
          simulator.state.delete('event', event.id);
          return { eventId: event.id, type: String(event['type']), objectId: object.id };
        })
        .filter(({ type }) => eventSubject(type) !== undefined),

    /** All events come, the oldest first or in the order of `order`, and are settled. */
    async tellEvents(
      order: (events: ProviderEvent[]) => ProviderEvent[] = (events) => events,
    ): Promise<void> {
      for (const event of order(world.takeEvents()))
        await insertProviderEvent(database, event, Date.now() - 1_000);
      await world.settleEvents();
    },

    /** The customer of an invoice by card confirms with this card. */
    async confirm(workflow: PurchaseWorkflow, card = 'pm_card_visa'): Promise<void> {
      const steps = await world.steps(workflow);
      const output = steps.find((step) => step.step === 'finalize' && step.state === 'done')
        ?.output as {
        clientSecret: string;
      };
      const intent = output.clientSecret.split('_secret_')[0]!;
      await fetch(`http://127.0.0.1:${simulator.port}/v1/payment_intents/${intent}/confirm`, {
        method: 'POST',
        headers: { authorization: 'Bearer pk_test' },
        body: new URLSearchParams({ payment_method: card, client_secret: output.clientSecret }),
      });
    },
  };
  return world;
}

export type Purchases = Awaited<ReturnType<typeof startPurchases>>;
