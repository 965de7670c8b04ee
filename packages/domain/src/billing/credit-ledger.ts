/**
 * Rules of credits. A **grant** is a number of credits of one kind in one **pool**, each in one place:
 *
 *     issued ──▶ available ──▶ used    a debit; back by a refund
 *                    │  ▲ ╲──▶ expired the grant's time is over, or its price went back
 *                    ▼  │
 *                   held ──▶ used      a hold captured; back by a release
 * A **move** takes credits of one grant from one place to another. The ledger is the moves, insert only; a grant's row
 * is their sum. A move has two ends, so the moves of a transaction sum to 0. Invariants: no place is below 0. A reset
 * changes the monthly allowance only. A refund returns credits to the grants that they came from, and expired credits
 * stay expired. Pure: `database/src/credits/credits.ts` locks the grants, calls this file, and writes the moves.
 */

/** In the order in which they are spent: free credits before paid ones. */
export const POOLS = ['monthly_allowance', 'goodwill', 'purchased'] as const;
export type Pool = (typeof POOLS)[number];

export type Place = 'issued' | 'available' | 'held' | 'used' | 'expired';

export interface Grant {
  /** Grows with each grant of an account. */
  readonly grantId: number;
  readonly pool: Pool;
  readonly granted: number;
  readonly available: number;
  readonly held: number;
  readonly used: number;
  readonly expired: number;
  readonly expiresAtMs: number | null;
}

export interface Move {
  readonly grantId: number;
  readonly from: Place;
  readonly to: Place;
  /** Above 0. */
  readonly amount: number;
}

export type TakeOutcome =
  | { readonly outcome: 'taken'; readonly moves: readonly Move[] }
  | { readonly outcome: 'insufficient'; readonly available: number };

const hasEnded = (grant: Grant, nowMs: number): boolean =>
  grant.expiresAtMs !== null && grant.expiresAtMs <= nowMs;

/** The grants whose credits may be spent now. */
function spendable(grants: readonly Grant[], nowMs: number, hasAllowance: boolean): Grant[] {
  return grants
    .filter(
      (grant) =>
        grant.available > 0 &&
        !hasEnded(grant, nowMs) &&
        (hasAllowance || grant.pool !== 'monthly_allowance'),
    )
    .toSorted(
      (one, other) =>
        POOLS.indexOf(one.pool) - POOLS.indexOf(other.pool) ||
        (one.expiresAtMs ?? Infinity) - (other.expiresAtMs ?? Infinity) ||
        one.grantId - other.grantId,
    );
}

/**
 * Takes `amount` out of the available credits, whole or not at all. It takes from the allowance, then goodwill, then
 * purchased. Within a pool it takes from the grant that ends first, then from the oldest.
 *
 * @param to - `used` for a debit, `held` for a hold.
 * @param hasAllowance - false for a plan without an allowance: its remaining credits are not spent.
 */
export function takeCredits(
  grants: readonly Grant[],
  amount: number,
  to: 'used' | 'held',
  nowMs: number,
  hasAllowance: boolean,
): TakeOutcome {
  const candidates = spendable(grants, nowMs, hasAllowance);
  const available = candidates.reduce((sum, grant) => sum + grant.available, 0);
  if (available < amount) return { outcome: 'insufficient', available };
  const moves: Move[] = [];
  let left = amount;
  for (const grant of candidates) {
    if (left === 0) break;
    const part = Math.min(left, grant.available);
    moves.push({ grantId: grant.grantId, from: 'available', to, amount: part });
    left -= part;
  }
  return { outcome: 'taken', moves };
}

/**
 * Ends a hold: the first `amount` of it becomes used, the rest goes back.
 *
 * @param hold - the moves that made it; `amount` is at most their sum.
 */
export function captureHold(
  hold: readonly Move[],
  amount: number,
  grants: readonly Grant[],
  nowMs: number,
): Move[] {
  let left = amount;
  return hold.flatMap((move) => {
    const captured = Math.min(left, move.amount);
    left -= captured;
    return [
      ...(captured > 0
        ? [{ grantId: move.grantId, from: 'held', to: 'used', amount: captured } as const]
        : []),
      ...comeBack(move.grantId, 'held', move.amount - captured, grants, nowMs),
    ];
  });
}

/**
 * Gives back `amount` of a debit to the grants that it came from, last taken first.
 *
 * @param debit - the moves that made it.
 * @param refunds - the moves that gave parts of it back before.
 * @returns undefined if less than `amount` of it is left.
 */
export function refundDebit(
  debit: readonly Move[],
  refunds: readonly Move[],
  amount: number,
  grants: readonly Grant[],
  nowMs: number,
): Move[] | undefined {
  const refundedOf = new Map<number, number>();
  for (const move of refunds) {
    if (move.from === 'used')
      refundedOf.set(move.grantId, (refundedOf.get(move.grantId) ?? 0) + move.amount);
  }
  const moves: Move[] = [];
  let left = amount;
  for (const move of debit.toReversed()) {
    const part = Math.min(left, move.amount - (refundedOf.get(move.grantId) ?? 0));
    if (part <= 0) continue;
    moves.push(...comeBack(move.grantId, 'used', part, grants, nowMs));
    left -= part;
  }
  return left === 0 ? moves : undefined;
}

/** Credits whose time is over go to `expired`, from which they cannot be spent. */
function comeBack(
  grantId: number,
  from: 'used' | 'held',
  amount: number,
  grants: readonly Grant[],
  nowMs: number,
): Move[] {
  if (amount === 0) return [];
  const grant = grants.find((each) => each.grantId === grantId);
  const to = grant && !hasEnded(grant, nowMs) ? 'available' : 'expired';
  return [{ grantId, from, to, amount }];
}

/**
 * Takes back the part of a month's allowance beyond `included`, the newest grants first. Credits that are spent or held
 * stay.
 *
 * @param grantIds - of the month's allowance; the other grants stay as they are.
 */
export function capAllowance(
  grants: readonly Grant[],
  grantIds: ReadonlySet<number>,
  included: number,
): Move[] {
  const own = grants.filter(({ grantId }) => grantIds.has(grantId));
  let surplus = own.reduce((sum, { granted, expired }) => sum + granted - expired, 0) - included;
  return own
    .toSorted((one, other) => other.grantId - one.grantId)
    .flatMap(({ grantId, available }): Move[] => {
      const amount = Math.min(available, surplus);
      if (amount <= 0) return [];
      surplus -= amount;
      return [{ grantId, from: 'available', to: 'expired', amount }];
    });
}

/** Expires the available credits of grants whose time is over. */
export function expireCredits(grants: readonly Grant[], nowMs: number): Move[] {
  return grants
    .filter((grant) => grant.available > 0 && hasEnded(grant, nowMs))
    .map((grant) => ({
      grantId: grant.grantId,
      from: 'available',
      to: 'expired',
      amount: grant.available,
    }));
}

/**
 * Takes back the available credits of grants whose price went back to the customer. Spent credits stay spent, so no
 * place falls below 0.
 */
export function reverseGrants(grants: readonly Grant[], grantIds: ReadonlySet<number>): Move[] {
  return grants
    .filter((grant) => grantIds.has(grant.grantId) && grant.available > 0)
    .map(({ grantId, available }) => ({
      grantId,
      from: 'available',
      to: 'expired',
      amount: available,
    }));
}

/** The grants after the moves. */
export function applyMoves(grants: readonly Grant[], moves: readonly Move[]): Grant[] {
  return grants.map((grant) => {
    const places = { ...grant };
    for (const move of moves) {
      if (move.grantId !== grant.grantId) continue;
      if (move.from !== 'issued') places[move.from] -= move.amount;
      if (move.to === 'issued') continue;
      places[move.to] += move.amount;
      if (move.from === 'issued') places.granted += move.amount;
    }
    return places;
  });
}

export interface PoolView {
  readonly pool: Pool;
  readonly granted: number;
  readonly used: number;
  readonly remaining: number;
  readonly resetsAtMs: number | null;
  readonly nextExpiry: { readonly amount: number; readonly expiresAtMs: number } | null;
}

export interface BalanceView {
  readonly totalAvailable: number;
  readonly reserved: number;
  readonly pools: readonly PoolView[];
}

/**
 * One kind of credit as a caller sees it. Grants whose time is over are history, not part of a pool; without an
 * allowance that pool reads 0 of 0 and the others are unaffected.
 */
export function viewBalance(
  grants: readonly Grant[],
  nowMs: number,
  hasAllowance: boolean,
): BalanceView {
  const current = grants.filter(
    (grant) => !hasEnded(grant, nowMs) && (hasAllowance || grant.pool !== 'monthly_allowance'),
  );
  const pools = POOLS.map((pool): PoolView => {
    const own = current.filter((grant) => grant.pool === pool);
    const sum = (of: 'granted' | 'used' | 'available' | 'held' | 'expired') =>
      own.reduce((total, grant) => total + grant[of], 0);
    const ending = own.filter((grant) => grant.available > 0 && grant.expiresAtMs !== null);
    const endsAtMs = ending.reduce<number | null>(
      (first, grant) =>
        first === null || (grant.expiresAtMs as number) < first ? grant.expiresAtMs : first,
      null,
    );
    const isAllowance = pool === 'monthly_allowance';
    const resetsAtMs = own.reduce<number | null>(
      (last, grant) => Math.max(last ?? 0, grant.expiresAtMs ?? 0) || null,
      null,
    );
    return {
      pool,
      // Credits that a smaller plan has taken back are no part of it.
      granted: sum('granted') - sum('expired'),
      used: sum('used') + sum('held'),
      remaining: sum('available'),
      resetsAtMs: isAllowance ? resetsAtMs : null,
      nextExpiry:
        isAllowance || endsAtMs === null
          ? null
          : {
              amount: ending
                .filter((grant) => grant.expiresAtMs === endsAtMs)
                .reduce((total, grant) => total + grant.available, 0),
              expiresAtMs: endsAtMs,
            },
    };
  });
  return {
    totalAvailable: pools.reduce((sum, pool) => sum + pool.remaining, 0),
    reserved: current.reduce((sum, grant) => sum + grant.held, 0),
    pools,
  };
}
