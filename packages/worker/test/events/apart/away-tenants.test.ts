/** Workspaces whose node is away, until their return. */
import { setImmediate as turn } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { AwayTenants } from '../../../src/events/apart/away-tenants.ts';

const TENANT = 7;
const away = () =>
  Object.assign(new Error('connection to the remote node failed'), { code: '08006' });

function createAway() {
  const state = { nowMs: 0, isReadable: false, lookedAt: [] as number[] };
  const told: string[] = [];
  const tenants = new AwayTenants({
    look: async (environmentId) => {
      told.push('look');
      state.lookedAt.push(environmentId);
      if (!state.isReadable) throw away();
    },
    now: () => state.nowMs,
    onAway: () => void told.push('away'),
    onBack: () => void told.push('back'),
  });
  return {
    tenants,
    told,
    state,
    pass: async (durationMs: number): Promise<void> => {
      state.nowMs += durationMs;
      tenants.lookIfDue();
      await turn();
    },
    tryPart: async (result: 'applied' | Error): Promise<boolean> => {
      let isTried = false;
      await tenants.tryIfAnswering(TENANT, async () => {
        isTried = true;
        if (result instanceof Error) throw result;
      });
      return isTried;
    },
  };
}

test('a workspace is back when one of its parts is applied, not when its rows can be read', async () => {
  const { tenants, told, state, pass, tryPart } = createAway();
  tenants.add(TENANT, away());
  await pass(1_000);
  expect(await tryPart('applied')).toBe(false);
  state.isReadable = true;
  await pass(1_000);
  expect([tenants.has(TENANT), tenants.backCount]).toEqual([true, 0]);
  for (const waitMs of [2_000, 4_000, 8_000, 8_000]) {
    expect(await tryPart(away())).toBe(true);
    expect([tenants.has(TENANT), tenants.backCount]).toEqual([true, 0]);
    await pass(waitMs - 1);
    expect(await tryPart('applied')).toBe(false);
    await pass(1);
  }
  expect(await tryPart('applied')).toBe(true);
  expect([tenants.isEmpty, tenants.backCount]).toEqual([true, 1]);
  expect(told).toEqual(['away', 'look', 'look', 'look', 'look', 'look', 'look', 'back']);
});

test('one shard at a time tries a workspace, and an error of no node makes it wait no longer', async () => {
  const { tenants, state, pass, tryPart } = createAway();
  state.isReadable = true;
  tenants.add(TENANT, away());
  await pass(1_000);
  const { promise, reject } = Promise.withResolvers<void>();
  const trying = tenants.tryIfAnswering(TENANT, () => promise);
  expect(await tryPart('applied')).toBe(false);
  await pass(60_000);
  expect(tenants.has(TENANT)).toBe(true);
  reject(new Error('of no node'));
  await expect(trying).rejects.toThrow('of no node');
  expect(await tryPart('applied')).toBe(true);
  expect(tenants.isEmpty).toBe(true);
});

test('a workspace that answers is back after eight seconds if no shard here has a part of it', async () => {
  const { tenants, state, pass } = createAway();
  state.isReadable = true;
  tenants.add(TENANT, away());
  await pass(1_000);
  await pass(7_999);
  expect(tenants.has(TENANT)).toBe(true);
  await pass(1);
  expect([tenants.isEmpty, tenants.backCount]).toEqual([true, 1]);
});

test('a look that fails puts off all workspaces of the node, so that one of another node is looked at next', async () => {
  const { tenants, state, pass } = createAway();
  for (const tenant of [1, 2, 3]) tenants.add(tenant, away(), 20);
  tenants.add(4, away(), 30);
  await pass(1_000);
  expect(state.lookedAt).toEqual([1, 4]);
  await pass(1_000);
  expect(state.lookedAt).toEqual([1, 4, 2, 4]);
});
