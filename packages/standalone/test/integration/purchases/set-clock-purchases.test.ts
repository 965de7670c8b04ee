/**
 * The time to pay a purchase goes by Postgres' clock.
 *
 * The worker's machine may have any time.
 */
import { testRedisUrl } from '@sluice/platform/testing/testing';
import { sql } from 'kysely';
import { expect, onTestFinished, test, vi } from 'vitest';
import { CARD, startPurchaseServices, WAIT } from './purchase-services.ts';
import { setClockOfWorker, settingClock } from '../wrong-date.ts';

const HOUR_MS = 3_600_000;
const TEST_TIMEOUT_MS = 300_000;

// With its clock ahead it ended purchases that were about to be paid, with its clock behind an unpaid one held its place.
test.each([-HOUR_MS, HOUR_MS])(
  'a worker whose clock is set by %i ms ends an unpaid purchase when its time is over, not before or after',
  { timeout: TEST_TIMEOUT_MS },
  async (setByMs) => {
    const services = await startPurchaseServices(testRedisUrl());
    onTestFinished(() => services.close());
    const { database } = services;
    const worker = await services.replaceWorker({ NODE_OPTIONS: settingClock(setByMs, false) });
    await setClockOfWorker(worker);
    await services.call(CARD, '/credits/purchase', { llm: { quantity: 2_000 } });
    const found = async () => {
      const { rows } = await sql<{ status: string; nextAt: Date }>`
        select status, next_at as "nextAt" from runs where account_id = ${CARD.accountId}
         order by created_at desc limit 1`.execute(database);
      return rows[0];
    };
    /** It is looked at again. */
    const leaveTimeToPay = async (seconds: number, nextAt: Date) => {
      await sql`
        update runs set expires_at = clock_timestamp() + ${`${seconds} seconds`}::interval, next_at = ${nextAt}
         where account_id = ${CARD.accountId} and status = 'pending'`.execute(database);
    };
    const due = new Date(0);
    await leaveTimeToPay(1_800, due);
    await vi.waitFor(async () => expect((await found())?.nextAt).not.toEqual(due), WAIT);
    expect(await found()).toMatchObject({ status: 'pending' });
    await leaveTimeToPay(-1, due);
    await vi.waitFor(async () => expect(await found()).toMatchObject({ status: 'failed' }), WAIT);
  },
);
