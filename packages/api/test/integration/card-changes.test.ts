/** The card on file is never changed while a purchase runs, nor does one start while it is changed. */
import { readCatalogue } from '@sluice/billing-vendor/read-catalogue';
import { startSimulator, type Simulator } from '@sluice/billing-vendor/simulator';
import { createStripeVendor, openStripeClient } from '@sluice/billing-vendor/stripe-vendor';
import { beginCardChange, endCardChange } from '@sluice/database/card-changes';
import { sql } from 'kysely';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { expectProblem } from '../error-shapes.ts';
import { startBilling, type Billing } from './billing-world.ts';

let billing: Billing;
let simulator: Simulator;
/** What happens while the vendor is asked to change the card. */
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
  const vendor = createStripeVendor(
    openStripeClient({ secretKey: 'sk_test', baseUrl, timeoutMs: 2_000 }),
  );
  billing = await startBilling({
    vendor: {
      ...vendor,
      async setDefaultCard(...given) {
        await meanwhile();
        return vendor.setDefaultCard(...given);
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

test('while a card is changed a purchase is told to come again, and then it starts', async () => {
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
  expect(await billing.countRuns()).toBe(0);
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
    if (bought.statusCode === 200) await billing.endRun(bought.json().run_id, 'declined');
  }
  expect(runsMet.filter((count) => count > 0)).toEqual([]);
  for (const end of ends) expect(['200 409', '409 204', '200 204']).toContain(end);
});

test.each([
  ['that the vendor refuses', 'pm_nobody', 404],
  ['that it takes', 'pm_card_visa', 204],
])('a change %s is over with its answer', async (_what, card, status) => {
  expect((await changeCard(card)).statusCode).toBe(status);
  expect((await billing.buyPack('pack_100')).statusCode).toBe(200);
});

test.each([
  ['chargeDeclinedInsufficientFunds', 'funds'],
  // What the issuer suspects is told nobody (`account-conventions.md` §4.9).
  ['chargeDeclinedLostCard', 'declined'],
])(
  'a card %s is declined in words for the customer, and charged by nothing',
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

test('a change that the vendor does not answer is over too, so that it may be asked for again', async () => {
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
