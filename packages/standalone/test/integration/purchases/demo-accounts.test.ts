/** Accounts of the demo are on a plan of the catalogue. */
import { testRedisUrl } from '@sluice/platform/testing/testing';
import { afterAll, beforeAll, expect, test } from 'vitest';
import {
  CARD,
  INVOICED,
  startPurchaseServices,
  type PurchaseServices,
} from './purchase-services.ts';

let services: PurchaseServices;
beforeAll(async () => {
  services = await startPurchaseServices(testRedisUrl());
}, 180_000);
afterAll(() => services.close());

test.each([CARD, INVOICED])(
  "the demo's account $accountId is on a plan that is sold, and has its included credits",
  async (account) => {
    const { plans } = (await services.call(account, '/plans')).body as unknown as {
      plans: { id: string; current: boolean }[];
    };
    expect(plans.filter(({ current }) => current).map(({ id }) => id)).toEqual(['premium_month']);
    const { body } = await services.call(account, '/usage_profile');
    expect(body).toMatchObject({
      profile: {
        meters: expect.arrayContaining([
          expect.objectContaining({ meter: 'llm', included: 10_000 }),
        ]),
      },
    });
  },
);
