/** Purchases and changes of the card on file exclude each other. */
import { readCatalogue } from '@sluice/billing-vendor/catalogue/read-catalogue';
import { startSimulator, type Simulator } from '@sluice/billing-vendor/simulator/simulator';
import {
  createStripeProvider,
  openStripeClient,
} from '@sluice/billing-vendor/stripe/stripe-provider';
import {
  beginCardChange,
  endCardChange,
  holdAccountToBuy,
} from '@sluice/database/billing/card-changes';
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { expectProblem } from '../../support/error-shapes.ts';
import { startPurchaseWorkflow } from '../../../src/billing/start-purchase-workflow.ts';
import { startBilling, type Billing } from '../support/billing-world.ts';

let billing: Billing;
let simulator: Simulator;
/** Runs while the payment provider is asked to change the card. */
let meanwhile: () => Promise<unknown>;

beforeEach(async () => {
  meanwhile = async () => {};
  simulator = await startSimulator({
    host: '127.0.0.1',
    port: 0,
    webhookSecret: 'whsec_test',
    catalogue: readCatalogue(undefined),
    now: Date.now,
    random: Math.random,
  });
  const baseUrl = `http://127.0.0.1:${simulator.port}`;
  const provider = createStripeProvider(
    openStripeClient({ secretKey: 'sk_test', baseUrl, timeoutMs: 30_000 }),
  );
  billing = await startBilling({
    // As the client has it: a change holds the account for so long, for each try.
    providerTimeoutMs: 30_000,
    provider: {
      ...provider,
      async setDefaultCard(...given) {
        await meanwhile();
        return provider.setDefaultCard(...given);
      },
    },
  });
});
afterEach(async () => {
  await billing.api.close();
  await simulator.close();
});

const changeCard = (card = 'pm_card_visa') =>
  billing.call('POST', '/payment_method/default', { body: { payment_method_id: card } });

test('a purchase during a card change gets 409 with Retry-After, and starts after the change', async () => {
  const refused: Awaited<ReturnType<typeof billing.buyPack>>[] = [];
  meanwhile = async () => {
    refused.push(await billing.buyPack('pack_100'), await changeCard());
  };
  expect((await changeCard()).statusCode).toBe(204);
  expect(refused).toHaveLength(2);
  for (const answer of refused) {
    expect(expectProblem(answer, 409, 'conflict').message).toContain('is being changed');
    expect(answer.headers['retry-after']).toBe('1');
  }
  expect(await billing.countPurchases()).toBe(0);
  expect((await billing.buyPack('pack_100')).statusCode).toBe(200);
  expectProblem(await changeCard(), 409, 'purchase_in_flight');
});

test('of a purchase and a change that begin at the same moment neither meets the other', async () => {
  const runsMet: number[] = [];
  const pendingCount = async () => {
    const { rows } = await sql<{ count: number }>`
      select count(*)::int as count from runs where status = 'pending'`.execute(
      billing.api.database,
    );
    return rows[0]!.count;
  };
  meanwhile = async () => {
    for (let look = 0; look < 5; look++) runsMet.push(await pendingCount());
  };
  const ends = new Set<string>();
  for (let round = 0; round < 24; round++) {
    // Each is a little ahead in every other round.
    const first = round % 2 === 0 ? undefined : changeCard();
    const purchase = billing.buyPack('pack_100');
    const [bought, changed] = await Promise.all([purchase, first ?? changeCard()]);
    ends.add(`${bought.statusCode} ${changed.statusCode}`);
    if (bought.statusCode === 200)
      await billing.endPurchaseWorkflow(bought.json().run_id, 'declined');
  }
  expect(runsMet.filter((count) => count > 0)).toEqual([]);
  for (const end of ends) expect(['200 409', '409 204', '200 204']).toContain(end);
});

test.each([
  ['that the vendor refuses', 'pm_nobody', 404],
  ['that it takes', 'pm_card_visa', 204],
])('a change %s is over with its answer', async (_what, card, status) => {
  expect((await changeCard(card)).statusCode).toBe(status);
  if (status === 404) {
    expectProblem(await billing.buyPack('pack_100'), 409, 'payment_method_required');
    await changeCard();
  }
  expect((await billing.buyPack('pack_100')).statusCode).toBe(200);
});

test.each([
  ['chargeDeclinedInsufficientFunds', 'funds'],
  // An issuer's suspicion is never shown (`account-conventions.md` §4.9).
  ['chargeDeclinedLostCard', 'declined'],
])(
  'a card %s is declined in words for the customer, and the old card stays',
  async (card, word) => {
    expect((await changeCard()).statusCode).toBe(204);
    const declined = expectProblem(
      await changeCard(`pm_card_visa_${card}`),
      402,
      'payment_declined',
    );
    expect(declined.message).toContain(word);
    expect(declined.message).not.toMatch(/lost|vendor/);
    const { payment_method: kept } = (await billing.call('GET', '/payment')).json();
    expect(kept.card.last4).toBe('4242');
    expect((await billing.buyPack('pack_100')).statusCode).toBe(200);
  },
);

test('a change that the payment provider does not answer is over too, so that it may be asked for again', async () => {
  expect((await changeCard()).statusCode).toBe(204);
  meanwhile = () => simulator.close();
  // Not by `call`, which expects no failure of the server.
  const unknown = await billing.api.app.inject({
    method: 'POST',
    url: `${billing.base}/payment_method/default`,
    headers: { authorization: `Bearer ${billing.api.a.token}` },
    payload: { payment_method_id: 'pm_card_visa' },
  });
  expectProblem(unknown, 503, 'unavailable');
  expect((await billing.buyPack('pack_100')).statusCode).toBe(200);
});

test('a change whose process has died is over after its time, and ends no other one', async () => {
  const { database, a } = billing.api;
  const died = await beginCardChange(database, a.accountId, 60_000);
  if (died.outcome !== 'begun') throw new Error(died.outcome);
  expectProblem(await billing.buyPack('pack_100'), 409, 'conflict');
  await billing.setAccount('card_changing_until = clock_timestamp()');
  meanwhile = async () => {
    await endCardChange(database, a.accountId, died.until);
    expectProblem(await billing.buyPack('pack_100'), 409, 'conflict');
  };
  expect((await changeCard()).statusCode).toBe(204);
  expect((await billing.buyPack('pack_100')).statusCode).toBe(200);
});

test('an account cannot be closed while a purchase starts, and a closed account starts no purchase', async () => {
  const { database, a, clock } = billing.api;
  await database.transaction().execute(async (transaction) => {
    expect(await holdAccountToBuy(transaction, a.accountId, false)).toBe('free');
    const closing = database.transaction().execute(async (other) => {
      await sql`set local lock_timeout = '20ms'`.execute(other);
      await sql`update accounts set status = 'closed' where account_id = ${a.accountId}`.execute(
        other,
      );
    });
    await expect(closing).rejects.toThrow(/lock timeout/);
  });
  await billing.setAccount("status = 'closed'");
  for (const rail of ['card', 'invoiced'] as const)
    for (const kind of ['inbox_previews', 'checkout'] as const) {
      const started = await startPurchaseWorkflow(
        {
          database,
          wakePurchaseWorkflow: () => Promise.resolve(),
          newId: () => `${rail}_${kind}`,
          now: () => clock.nowMs,
          cardPaymentMs: 60_000,
        },
        // The content of the purchase does not matter.
        {
          accountId: a.accountId,
          kind,
          rail,
          content: { type: 'addons', skus: [], contact: { name: 'Acme', email: 'a@example.com' } },
          sameness: {},
          origin: { actor: { type: 'system' } },
        },
      );
      expect(started).toEqual({ outcome: 'closed' });
    }
  expect(await billing.countPurchases()).toBe(0);
});
