/** The comparison of a purchase with the catalogue: before it has an invoice, and never after. */
import { createLogger } from '@sluice/platform/process/logger';
import { expect, test } from 'vitest';
import { CATALOGUE, startPurchases } from '../support/purchase-world.ts';

/** As after a restart of the worker with another price of the pack. */
const dearer = {
  ...CATALOGUE,
  packs: CATALOGUE.packs.map((pack) => ({ ...pack, amount: pack.amount + 1 })),
};

test('a purchase whose invoice is out goes on at its price after the catalogue has another', async () => {
  const world = await startPurchases();
  const accountId = await world.addAccount(null, 'card');
  const workflow = await world.buyPack(accountId, 'card');
  await world.turn(workflow);
  await world.turn(workflow, undefined, { catalogue: dearer });
  await world.confirm(workflow);
  const ended = await world.finish(workflow, undefined, { catalogue: dearer });
  const { amount } = CATALOGUE.packs.find(({ id }) => id === 'pack_100')!;
  expect(ended).toMatchObject({
    status: 'success',
    reviewReason: null,
    result: { charged: { amount } },
  });
  expect(world.succeeded()).toHaveLength(1);
  expect(await world.balance(accountId)).toBe(100);
});

test.each(['after-intent:invoice', 'after-vendor:invoice', 'after-record:invoice'] as const)(
  'a purchase whose worker dies at %s is not compared again',
  async (point) => {
    const world = await startPurchases();
    const accountId = await world.addAccount('pm_card_visa');
    const workflow = await world.buyPack(accountId);
    await world.turn(workflow, point);
    const ended = await world.finish(workflow, undefined, { catalogue: dearer });
    expect(ended).toMatchObject({ status: 'success', reviewReason: null });
    expect(world.succeeded()).toHaveLength(1);
    expect(await world.balance(accountId)).toBe(100);
  },
);

test('a purchase that has only its customer ends without an invoice, and the log names it', async () => {
  const world = await startPurchases();
  const accountId = await world.addAccount('pm_card_visa');
  const workflow = await world.buyPack(accountId);
  await world.turn(workflow, 'after-record:customer');
  expect((await world.steps(workflow)).map(({ step }) => step)).toEqual(['customer']);
  const logged: unknown[] = [];
  const logger = createLogger('test', 'silent');
  logger.error = (fields: unknown) => logged.push(fields);
  expect(await world.advance(workflow, { catalogue: dearer, logger })).toBe('ended');
  expect(logged).toEqual([{ runId: workflow.runId, refusal: 'amount_changed' }]);
  expect(world.simulator.state.list('invoice')).toEqual([]);
  expect(world.charges()).toEqual([]);
  expect(await world.balance(accountId)).toBe(0);
});
