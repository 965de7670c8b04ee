/**
 * Each change of credits by example: the exact moves with their amounts, sources and targets, and the view of a caller.
 */
import { describe, expect, test } from 'vitest';
import {
  applyMoves,
  capAllowance,
  captureHold,
  expireCredits,
  refundDebit,
  reverseGrants,
  takeCredits,
  viewBalance,
  type Grant,
  type Move,
  type Place,
} from '../../src/billing/credit-ledger.ts';

const NOW_MS = 100;

const grant = (grantId: number, changes: Partial<Grant> = {}): Grant => ({
  grantId,
  pool: 'purchased',
  granted: 10,
  available: 10,
  held: 0,
  used: 0,
  expired: 0,
  expiresAtMs: null,
  ...changes,
});
const move = (grantId: number, from: Place, to: Place, amount: number): Move => ({
  grantId,
  from,
  to,
  amount,
});

describe('credits are taken', () => {
  const take = (grants: Grant[], amount: number, hasAllowance = true) =>
    takeCredits(grants, amount, 'used', NOW_MS, hasAllowance);

  test('to the last one of a grant, and from the next only as much as is missing', () => {
    const grants = [grant(1, { available: 1 }), grant(2), grant(3)];
    expect(take(grants, 1)).toEqual({ outcome: 'taken', moves: [move(1, 'available', 'used', 1)] });
    expect(take(grants, 4)).toEqual({
      outcome: 'taken',
      moves: [move(1, 'available', 'used', 1), move(2, 'available', 'used', 3)],
    });
    expect(take(grants, 22)).toEqual({ outcome: 'insufficient', available: 21 });
  });

  test('of one pool from the earliest end, then from the oldest grant; grants without an end come last', () => {
    const grants = [
      grant(3),
      grant(2),
      grant(4, { expiresAtMs: 300 }),
      grant(1, { expiresAtMs: 200 }),
    ];
    const taken = take(grants, 33);
    expect(taken).toEqual({
      outcome: 'taken',
      moves: [
        move(1, 'available', 'used', 10),
        move(4, 'available', 'used', 10),
        move(2, 'available', 'used', 10),
        move(3, 'available', 'used', 3),
      ],
    });
  });

  test('in one order, also if the rows come in another', () => {
    const grants = [
      grant(1, { pool: 'goodwill' }),
      grant(2, { expiresAtMs: 200 }),
      grant(3, { expiresAtMs: 300 }),
      grant(4, { expiresAtMs: 400 }),
      grant(5),
      grant(6),
    ];
    const expected = grants.map(({ grantId }) => move(grantId, 'available', 'used', 10));
    for (let turn = 0; turn < grants.length; turn++) {
      grants.push(...grants.splice(0, 1));
      for (const rows of [grants, grants.toReversed()])
        expect(take(rows, 60)).toEqual({ outcome: 'taken', moves: expected });
    }
  });

  test('not from an empty grant, one that has ended, or an allowance that the plan does not have', () => {
    const grants = [
      grant(1, { available: 0 }),
      grant(2, { expiresAtMs: NOW_MS }),
      grant(3, { pool: 'monthly_allowance' }),
      grant(4, { pool: 'goodwill' }),
    ];
    expect(take(grants, 10, false)).toEqual({
      outcome: 'taken',
      moves: [move(4, 'available', 'used', 10)],
    });
    expect(take(grants, 11, false)).toEqual({ outcome: 'insufficient', available: 10 });
    expect(take(grants, 20, true)).toEqual({
      outcome: 'taken',
      moves: [move(3, 'available', 'used', 10), move(4, 'available', 'used', 10)],
    });
  });
});

describe('a hold ends', () => {
  const hold = [move(1, 'available', 'held', 4), move(2, 'available', 'held', 6)];
  const held = [
    grant(1, { available: 0, held: 4, granted: 4 }),
    grant(2, { available: 0, held: 6, granted: 6 }),
  ];

  test.each([
    [0, [move(1, 'held', 'available', 4), move(2, 'held', 'available', 6)]],
    [
      1,
      [
        move(1, 'held', 'used', 1),
        move(1, 'held', 'available', 3),
        move(2, 'held', 'available', 6),
      ],
    ],
    [5, [move(1, 'held', 'used', 4), move(2, 'held', 'used', 1), move(2, 'held', 'available', 5)]],
    [10, [move(1, 'held', 'used', 4), move(2, 'held', 'used', 6)]],
  ])('with %i of it used, the rest where it came from', (captured, moves) => {
    expect(captureHold(hold, captured, held, NOW_MS)).toEqual(moves);
  });

  test('and credits of an ended or missing grant expire instead of coming back', () => {
    const ended = [{ ...(held[0] as Grant), expiresAtMs: NOW_MS }];
    expect(captureHold(hold, 0, ended, NOW_MS)).toEqual([
      move(1, 'held', 'expired', 4),
      move(2, 'held', 'expired', 6),
    ]);
  });
});

describe('a debit is given back', () => {
  const debit = [move(1, 'available', 'used', 4), move(2, 'available', 'used', 6)];
  const used = [
    grant(1, { available: 0, used: 4, granted: 4 }),
    grant(2, { available: 0, used: 6, granted: 6 }),
  ];

  test('last taken first, over several refunds, up to the amount that it took', () => {
    const first = refundDebit(debit, [], 5, used, NOW_MS);
    expect(first).toEqual([move(2, 'used', 'available', 5)]);
    const second = refundDebit(debit, first ?? [], 3, used, NOW_MS);
    expect(second).toEqual([move(2, 'used', 'available', 1), move(1, 'used', 'available', 2)]);
    const before = [...(first ?? []), ...(second ?? [])];
    expect(refundDebit(debit, before, 3, used, NOW_MS)).toBeUndefined();
    expect(refundDebit(debit, before, 2, used, NOW_MS)).toEqual([move(1, 'used', 'available', 2)]);
  });

  test('counting only moves out of used credits, not other moves of the same grants', () => {
    const others = [move(2, 'available', 'expired', 6)];
    expect(refundDebit(debit, others, 6, used, NOW_MS)).toEqual([move(2, 'used', 'available', 6)]);
  });
});

describe('credits end', () => {
  test('with the available credits of each ended grant, to the last one, at that very moment', () => {
    const grants = [
      grant(1, { available: 1, expiresAtMs: NOW_MS }),
      grant(2, { available: 0, expiresAtMs: NOW_MS }),
      grant(3, { expiresAtMs: NOW_MS + 1 }),
      grant(4),
      grant(5, { available: 7, expiresAtMs: 0 }),
    ];
    expect(expireCredits(grants, NOW_MS)).toEqual([
      move(1, 'available', 'expired', 1),
      move(5, 'available', 'expired', 7),
    ]);
  });

  test('with the available credits of grants that are taken back, and of no other grant', () => {
    const grants = [grant(1, { available: 1 }), grant(2), grant(3, { available: 0 })];
    expect(reverseGrants(grants, new Set([1, 3]))).toEqual([move(1, 'available', 'expired', 1)]);
    expect(reverseGrants(grants, new Set([9]))).toEqual([]);
  });

  test('of an allowance above a smaller plan’s, the newest first, to the last one', () => {
    const grants = [grant(1), grant(3), grant(2), grant(4)];
    expect(capAllowance(grants, new Set([1, 2, 3]), 15)).toEqual([
      move(3, 'available', 'expired', 10),
      move(2, 'available', 'expired', 5),
    ]);
    expect(capAllowance(grants, new Set([1, 2, 3]), 29)).toEqual([
      move(3, 'available', 'expired', 1),
    ]);
    expect(capAllowance(grants, new Set([1, 2, 3]), 30)).toEqual([]);
  });
});

test('a move takes from one place and gives to another, and issued credits raise the granted amount', () => {
  const [after] = applyMoves(
    [grant(1, { granted: 0, available: 0 })],
    [
      move(1, 'issued', 'available', 10),
      move(1, 'available', 'held', 4),
      move(2, 'available', 'used', 1),
    ],
  );
  expect(after).toEqual(grant(1, { granted: 10, available: 6, held: 4 }));
});

describe('a caller sees', () => {
  test('each pool with its granted, used and remaining credits, its reset and its next expiry', () => {
    const grants = [
      grant(1, {
        pool: 'monthly_allowance',
        granted: 20,
        available: 9,
        held: 2,
        used: 4,
        expired: 5,
        expiresAtMs: 500,
      }),
      grant(2, { pool: 'monthly_allowance', granted: 3, available: 3, expiresAtMs: 400 }),
      grant(3, { granted: 7, available: 5, used: 2, expiresAtMs: 900 }),
      grant(4, { granted: 6, available: 6, expiresAtMs: 300 }),
      grant(5, { granted: 1, available: 1, expiresAtMs: 300 }),
      grant(6, { granted: 8, available: 0, held: 8, expiresAtMs: 200 }),
      grant(7),
      // Over at this moment: history.
      grant(8, { expiresAtMs: NOW_MS, held: 3 }),
    ];
    expect(viewBalance(grants, NOW_MS, true)).toEqual({
      totalAvailable: 34,
      reserved: 10,
      pools: [
        {
          pool: 'monthly_allowance',
          granted: 18,
          used: 6,
          remaining: 12,
          resetsAtMs: 500,
          nextExpiry: null,
        },
        { pool: 'goodwill', granted: 0, used: 0, remaining: 0, resetsAtMs: null, nextExpiry: null },
        {
          pool: 'purchased',
          granted: 32,
          used: 10,
          remaining: 22,
          resetsAtMs: null,
          nextExpiry: { amount: 7, expiresAtMs: 300 },
        },
      ],
    });
  });

  test('no expiry of grants without an end, and no reset of an allowance without one', () => {
    const { pools } = viewBalance(
      [grant(1), grant(2, { pool: 'monthly_allowance' })],
      NOW_MS,
      true,
    );
    expect(pools.map(({ resetsAtMs, nextExpiry }) => ({ resetsAtMs, nextExpiry }))).toEqual(
      Array.from({ length: 3 }, () => ({ resetsAtMs: null, nextExpiry: null })),
    );
  });

  test('the earliest end of a pool, in any order of the rows', () => {
    const ends = [300, 200, 400].map((expiresAtMs, index) => grant(index + 1, { expiresAtMs }));
    for (const grants of [ends, ends.toReversed()])
      expect(viewBalance(grants, NOW_MS, true).pools[2]).toMatchObject({
        nextExpiry: { amount: 10, expiresAtMs: 200 },
      });
  });

  test('no allowance, available or reserved, under a plan without one', () => {
    const grants = [
      grant(1, { pool: 'monthly_allowance', held: 5, available: 5, expiresAtMs: 500 }),
      grant(2),
    ];
    expect(viewBalance(grants, NOW_MS, false)).toMatchObject({
      totalAvailable: 10,
      reserved: 0,
      pools: [{ granted: 0, remaining: 0, resetsAtMs: null }, {}, { remaining: 10 }],
    });
  });
});
