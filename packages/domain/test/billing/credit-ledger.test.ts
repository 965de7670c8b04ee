import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  applyMoves,
  capAllowance,
  captureHold,
  expireCredits,
  POOLS,
  refundDebit,
  takeCredits,
  viewBalance,
  type Grant,
  type Move,
} from '../../src/billing/credit-ledger.ts';

const grant = (changes: Partial<Grant> & { grantId: number; granted: number }): Grant => ({
  pool: 'purchased',
  available: changes.granted,
  held: 0,
  used: 0,
  expired: 0,
  expiresAtMs: null,
  ...changes,
});

const grants = fc
  .array(
    fc.record({
      pool: fc.constantFrom(...POOLS),
      granted: fc.integer({ min: 1, max: 200 }),
      expiresAtMs: fc.option(fc.integer({ min: 0, max: 100 })),
    }),
    { maxLength: 6 },
  )
  .map((list) => list.map((each, index) => grant({ ...each, grantId: index + 1 })));

type Action =
  | { readonly type: 'debit' | 'hold'; readonly amount: number }
  | { readonly type: 'refund' | 'capture'; readonly which: number; readonly amount: number }
  | { readonly type: 'expire' };

const action = fc.oneof(
  fc.record({
    type: fc.constantFrom('debit' as const, 'hold' as const),
    amount: fc.integer({ min: 1, max: 150 }),
  }),
  fc.record({
    type: fc.constantFrom('refund' as const, 'capture' as const),
    which: fc.nat(10),
    amount: fc.integer({ min: 1, max: 150 }),
  }),
  fc.constant({ type: 'expire' as const }),
);

test('an exhausted grant has no part in a debit', () => {
  const exhausted = grant({ grantId: 1, granted: 5, available: 0, used: 5 });
  const whole = grant({ grantId: 2, granted: 5 });
  expect(takeCredits([exhausted, whole], 3, 'used', 0, true)).toEqual({
    outcome: 'taken',
    moves: [{ grantId: 2, from: 'available', to: 'used', amount: 3 }],
  });
});

/** Plays actions as the database does, one millisecond apart; collects the moves of each. */
function play(start: Grant[], actions: readonly Action[], hasAllowance: boolean) {
  let state = start;
  const debits: { moves: readonly Move[]; refunds: Move[]; amount: number }[] = [];
  const holds: { moves: readonly Move[]; amount: number }[] = [];
  const ledger: Move[] = [];
  const write = (moves: readonly Move[]) => {
    ledger.push(...moves);
    state = applyMoves(state, moves);
  };
  for (const [atMs, each] of actions.entries()) {
    if (each.type === 'debit' || each.type === 'hold') {
      const to = each.type === 'debit' ? 'used' : 'held';
      const taken = takeCredits(state, each.amount, to, atMs, hasAllowance);
      if (taken.outcome === 'insufficient') {
        expect(taken.available).toBeLessThan(each.amount);
        continue;
      }
      write(taken.moves);
      if (each.type === 'debit')
        debits.push({ moves: taken.moves, refunds: [], amount: each.amount });
      else holds.push({ moves: taken.moves, amount: each.amount });
    } else if (each.type === 'refund') {
      const debit = debits[each.which % Math.max(1, debits.length)];
      if (!debit) continue;
      const moves = refundDebit(debit.moves, debit.refunds, each.amount, state, atMs);
      const refunded = debit.refunds.reduce((sum, move) => sum + move.amount, 0);
      expect(moves !== undefined).toBe(refunded + each.amount <= debit.amount);
      if (!moves) continue;
      debit.refunds.push(...moves);
      write(moves);
    } else if (each.type === 'capture') {
      const hold = holds.splice(each.which % Math.max(1, holds.length), 1)[0];
      if (hold) write(captureHold(hold.moves, Math.min(hold.amount, each.amount), state, atMs));
    } else {
      write(expireCredits(state, atMs));
    }
    for (const one of state) {
      for (const place of ['available', 'held', 'used', 'expired'] as const)
        expect(one[place]).toBeGreaterThanOrEqual(0);
      expect(one.available + one.held + one.used + one.expired).toBe(one.granted);
    }
  }
  return { state, ledger };
}

test('I8: after any actions no place falls below zero, and no credit is made or lost', () => {
  fc.assert(
    fc.property(grants, fc.array(action, { maxLength: 60 }), fc.boolean(), (start, actions, on) => {
      play(start, actions, on);
    }),
  );
});

test('I7: the pools are the sum of the ledger, at any moment', () => {
  fc.assert(
    fc.property(grants, fc.array(action, { maxLength: 40 }), (start, actions) => {
      const { state, ledger } = play(start, actions, true);
      const empty = start.map((each) => ({ ...each, granted: 0, available: 0 }));
      const issued = start.map((each): Move => ({
        grantId: each.grantId,
        from: 'issued',
        to: 'available',
        amount: each.granted,
      }));
      expect(applyMoves(empty, [...issued, ...ledger])).toEqual(state);
    }),
  );
});

test('I34: without an allowance the pool reads 0 of 0, is not spent, and the others are unaffected', () => {
  fc.assert(
    fc.property(grants, fc.array(action, { maxLength: 40 }), (start, actions) => {
      const { state } = play(start, actions, false);
      const allowance = state.filter((each) => each.pool === 'monthly_allowance');
      expect(allowance.every((each) => each.used === 0 && each.held === 0)).toBe(true);
      const off = viewBalance(state, 50, false);
      const on = viewBalance(state, 50, true);
      expect(off.pools[0]).toEqual({
        pool: 'monthly_allowance',
        granted: 0,
        used: 0,
        remaining: 0,
        resetsAtMs: null,
        nextExpiry: null,
      });
      expect(off.pools.slice(1)).toEqual(on.pools.slice(1));
    }),
  );
});

describe('the order of spending', () => {
  test('allowance, then goodwill, then purchased; of one pool the earliest end first, then the oldest', () => {
    const list = [
      grant({ grantId: 1, granted: 5 }),
      grant({ grantId: 2, granted: 5, expiresAtMs: 200 }),
      grant({ grantId: 3, granted: 5, expiresAtMs: 100 }),
      grant({ grantId: 4, granted: 5, pool: 'goodwill' }),
      grant({ grantId: 5, granted: 5, pool: 'monthly_allowance', expiresAtMs: 900 }),
      grant({ grantId: 6, granted: 5 }),
    ];
    const taken = takeCredits(list, 27, 'used', 1, true);
    expect(taken).toMatchObject({ outcome: 'taken' });
    if (taken.outcome !== 'taken') return;
    expect(taken.moves.map((move) => [move.grantId, move.amount])).toEqual([
      [5, 5],
      [4, 5],
      [3, 5],
      [2, 5],
      [1, 5],
      [6, 2],
    ]);
  });

  test('the last credit can be spent', () => {
    const list = [grant({ grantId: 1, granted: 3 }), grant({ grantId: 2, granted: 2 })];
    const taken = takeCredits(list, 5, 'used', 1, true);
    expect(taken.outcome === 'taken' && applyMoves(list, taken.moves)).toMatchObject([
      { available: 0, used: 3 },
      { available: 0, used: 2 },
    ]);
  });

  test('too few credits stay untouched, and ended credits do not count', () => {
    const list = [
      grant({ grantId: 1, granted: 5, expiresAtMs: 10 }),
      grant({ grantId: 2, granted: 5 }),
    ];
    expect(takeCredits(list, 6, 'used', 10, true)).toEqual({
      outcome: 'insufficient',
      available: 5,
    });
  });
});

test('a refund goes back to its grants, the last one first, and expires in an ended grant', () => {
  const list = [
    grant({ grantId: 1, granted: 5, pool: 'goodwill', expiresAtMs: 50 }),
    grant({ grantId: 2, granted: 5 }),
  ];
  const taken = takeCredits(list, 8, 'used', 1, true);
  if (taken.outcome !== 'taken') throw new Error('there is enough');
  const after = applyMoves(list, taken.moves);
  expect(refundDebit(taken.moves, [], 4, after, 60)).toEqual([
    { grantId: 2, from: 'used', to: 'available', amount: 3 },
    { grantId: 1, from: 'used', to: 'expired', amount: 1 },
  ]);
  expect(refundDebit(taken.moves, [], 9, after, 2)).toBeUndefined();
});

test('a smaller plan takes back only the unspent part of the month’s allowance that exceeds its own', () => {
  const grantOf = (grantId: number, available: number, used: number, expired: number): Grant => ({
    grantId,
    pool: grantId === 9 ? 'purchased' : 'monthly_allowance',
    granted: available + used + expired,
    available,
    held: 0,
    used,
    expired,
    expiresAtMs: 1,
  });
  const amount = fc.nat({ max: 1_000 });
  const lists = fc
    .array(fc.tuple(amount, amount, amount), { maxLength: 5 })
    .map((places) => [
      ...places.map((each, index) => grantOf(index + 1, ...each)),
      grantOf(9, 77, 0, 0),
    ]);
  fc.assert(
    fc.property(lists, amount, (before, included) => {
      const ids = new Set(before.map(({ grantId }) => grantId).filter((id) => id !== 9));
      const after = applyMoves(before, capAllowance(before, ids, included));
      const own = after.filter(({ grantId }) => ids.has(grantId));
      const sum = (of: 'available' | 'used') => own.reduce((total, each) => total + each[of], 0);
      const was = before.filter(({ grantId }) => ids.has(grantId));
      const availableBefore = was.reduce((total, { available }) => total + available, 0);
      expect(sum('available')).toBe(Math.min(availableBefore, Math.max(0, included - sum('used'))));
      expect(after.at(-1)).toEqual(before.at(-1));
    }),
  );
});
