/**
 * A purchase belongs to its worker while that lives.
 *
 * A slow payment provider does not change that. If the worker dies, another one has the purchase soon.
 */
import { renewPurchaseLease } from '@sluice/database/billing/purchase-workflows';
import { sql } from 'kysely';
import { expect, test, vi } from 'vitest';
import { startPurchases, type Purchases } from '../support/purchase-world.ts';

/** Longer than a busy machine stands still: its renewals may be late by that. */
const LEASE_MS = 4_000;

const leaseOf = async ({ database }: Purchases) => {
  const { rows } = await sql<{ until: Date | null; isHeld: boolean }>`
    select lease_until as until, coalesce(lease_until > clock_timestamp(), false) as "isHeld"
      from runs`.execute(database);
  return rows[0]!;
};

test('the lease of a worker that waits longer than it lasts is renewed, so no other worker takes the purchase', async () => {
  const world = await startPurchases();
  const accountId = await world.addAccount('pm_card_visa');
  const workflow = await world.buyPack(accountId);
  let answer = (): void => {};
  const until = new Promise<void>((resolve) => (answer = resolve));
  const asked = world.simulator.faults.meet({ kind: 'slow', path: '/finalize', until });
  const advancing = world.advance(workflow, { leaseMs: LEASE_MS });
  await asked;
  const { until: first } = await leaseOf(world);
  // Long after the lease that it began with is over.
  await vi.waitFor(
    async () => {
      const { rows } = await sql`
        select where clock_timestamp() > ${first}::timestamptz + ${2 * LEASE_MS} * interval '1 millisecond'`.execute(
        world.database,
      );
      expect(rows).toHaveLength(1);
      expect((await leaseOf(world)).isHeld).toBe(true);
    },
    { timeout: 60_000, interval: 20 },
  );
  expect(await world.advance(workflow, { leaseMs: LEASE_MS })).toBe('overtaken');
  answer();
  expect(await advancing).toBe('ended');
  expect((await leaseOf(world)).until).toBeNull();
  expect(world.succeeded()).toHaveLength(1);
});

test('a lease that was given back or taken over is not renewed', async () => {
  const world = await startPurchases();
  const workflow = await world.buyPack(await world.addAccount('pm_card_visa'));
  const { database } = world;
  expect(await renewPurchaseLease(database, { ...workflow, fence: 0 }, LEASE_MS)).toBe(false);
  await sql`update runs set fence = 2, lease_until = clock_timestamp()`.execute(database);
  expect(await renewPurchaseLease(database, { ...workflow, fence: 1 }, LEASE_MS)).toBe(false);
  expect(await renewPurchaseLease(database, { ...workflow, fence: 2 }, LEASE_MS)).toBe(true);
});
