import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  mostOf,
  isWithinShare,
  mayTake,
  newcomerPercentOf,
  shareOf,
  type ShareClaim,
  type SharedBound,
} from '../../src/values/fair-share.ts';

const BOUND = { capacity: 100, sharePercent: 25 };
const claim = (changes: Partial<ShareClaim>): ShareClaim => ({
  size: 1,
  ownSize: 0,
  totalSize: changes.ownSize ?? 0,
  isAlone: false,
  leastRefusedSize: Infinity,
  ...changes,
});

test('the only workspace takes everything, and no more than there is', () => {
  expect(mayTake(BOUND, claim({ ownSize: 99, isAlone: true }))).toBe(true);
  expect(mayTake(BOUND, claim({ ownSize: 100, isAlone: true }))).toBe(false);
});

test('beyond its share a workspace leaves one share free, which others take', () => {
  expect(mayTake(BOUND, claim({ ownSize: 74 }))).toBe(true);
  expect(mayTake(BOUND, claim({ ownSize: 75 }))).toBe(false);
  expect(mayTake(BOUND, claim({ totalSize: 75 }))).toBe(true);
  expect(mayTake(BOUND, claim({ ownSize: 24, totalSize: 99 }))).toBe(true);
  expect(mayTake(BOUND, claim({ ownSize: 25, totalSize: 99 }))).toBe(false);
});

test('a workspace beyond its share takes no more while one that was refused holds less', () => {
  expect(mayTake(BOUND, claim({ ownSize: 40, leastRefusedSize: 39 }))).toBe(false);
  expect(mayTake(BOUND, claim({ ownSize: 40, leastRefusedSize: 40 }))).toBe(true);
  expect(mayTake(BOUND, claim({ ownSize: 20, leastRefusedSize: 0 }))).toBe(true);
});

// Four workspaces kept all of a bound, and every other one was refused.
test('workspaces leave the last part to workspaces that hold at most a quarter of this part', () => {
  const kept = { ...BOUND, newcomerPercent: newcomerPercentOf(BOUND.sharePercent) };
  expect(mayTake(kept, claim({ ownSize: 20, totalSize: 86.5 }))).toBe(true);
  expect(mayTake(kept, claim({ ownSize: 20, totalSize: 87 }))).toBe(false);
  // A body comes in pieces.
  expect(mayTake(kept, claim({ ownSize: 2, totalSize: 87 }))).toBe(true);
  expect(mayTake(kept, claim({ ownSize: 2.5, totalSize: 87 }))).toBe(false);
  // So two workspaces have their shares, also if one of them wants all.
  expect(mayTake(kept, claim({ ownSize: 61, totalSize: 61 }))).toBe(true);
  expect(mayTake(kept, claim({ ownSize: 62, totalSize: 62 }))).toBe(false);
  expect(mayTake(kept, claim({ totalSize: 99 }))).toBe(true);
  expect(mayTake(kept, claim({ totalSize: 100 }))).toBe(false);
  expect(mayTake(kept, claim({ ownSize: 99, isAlone: true }))).toBe(true);
});

test('a workspace that may have all leaves no part to newcomers', () => {
  const whole = { capacity: 100, sharePercent: 100, newcomerPercent: newcomerPercentOf(100) };
  expect(mayTake(whole, claim({ ownSize: 99 }))).toBe(true);
});

test('one unit fits a share that is smaller', () => {
  const small = { capacity: 2, sharePercent: 25 };
  expect(mayTake(small, claim({ totalSize: 1 }))).toBe(true);
  expect(mayTake(small, claim({ ownSize: 1, totalSize: 1 }))).toBe(false);
});

test('the maximum of a workspace equals its size after taking unit by unit', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 4, max: 60 }),
      fc.integer({ min: 25, max: 100 }),
      fc.boolean(),
      (capacity, sharePercent, isAlone) => {
        const shared = { capacity, sharePercent };
        let size = 0;
        while (mayTake(shared, claim({ ownSize: size, isAlone }))) size++;
        expect(size).toBe(Math.floor(mostOf(shared, isAlone)));
      },
    ),
  );
});

interface Step {
  readonly owner: number;
  readonly size: number;
  readonly isRelease: boolean;
}

const step = fc.record({
  owner: fc.integer({ min: 0, max: 5 }),
  size: fc.integer({ min: 1, max: 5 }),
  isRelease: fc.boolean(),
});
/** Most claim, and there are enough of them to fill the bound: of a length between 0 and 400 most arrays have ten members. */
const manySteps = fc.array(
  fc.tuple(step, fc.nat(5)).map(([each, dice]): Step => ({ ...each, isRelease: dice === 0 })),
  { minLength: 100, maxLength: 400 },
);
const bound = fc.record({
  capacity: fc.integer({ min: 40, max: 200 }),
  sharePercent: fc.integer({ min: 13, max: 50 }),
});

/** The amounts that each holds after the steps. A release is of a held amount. */
function run(
  shared: SharedBound,
  steps: readonly Step[],
  look: (claim: ShareClaim, held: readonly number[]) => void,
) {
  const held = [0, 0, 0, 0, 0, 0];
  const refused = new Set<number>();
  for (const { owner, size, isRelease } of steps) {
    const ownSize = held[owner] as number;
    if (isRelease) {
      held[owner] = ownSize - Math.min(ownSize, size);
      continue;
    }
    const others = [...refused].filter((other) => other !== owner);
    const wanted: ShareClaim = {
      size,
      ownSize,
      totalSize: held.reduce((sum, one) => sum + one, 0),
      isAlone: false,
      leastRefusedSize: Math.min(...others.map((other) => held[other] as number)),
    };
    look(wanted, held);
    if (mayTake(shared, wanted)) {
      held[owner] = ownSize + size;
      refused.delete(owner);
    } else refused.add(owner);
  }
  return held;
}

test('after any claims and releases, the last share is there for workspaces within their share', () => {
  fc.assert(
    fc.property(bound, manySteps, (shared, steps) => {
      const held = run(shared, steps, (wanted, before) => {
        const share = shareOf(shared);
        expect(wanted.totalSize).toBeLessThanOrEqual(shared.capacity);
        const within = before.filter((size) => size <= share).reduce((sum, size) => sum + size, 0);
        // Claims within their shares, this one too, fit into the share that no other workspace may take.
        if (isWithinShare(shared, wanted) && within + wanted.size <= share)
          expect(mayTake(shared, wanted)).toBe(true);
      });
      expect(held.reduce((sum, size) => sum + size, 0)).toBeLessThanOrEqual(shared.capacity);
    }),
    { numRuns: 500 },
  );
});

test('after any claims and releases, the part for newcomers is there', () => {
  fc.assert(
    fc.property(bound, manySteps, ({ capacity, sharePercent }, steps) => {
      const newcomerPercent = newcomerPercentOf(sharePercent);
      const shared = { capacity, sharePercent, newcomerPercent };
      run(shared, steps, (wanted) => {
        const totalSize = wanted.totalSize + wanted.size;
        if (totalSize <= (capacity * (100 - newcomerPercent)) / 100) return;
        const ownSize = wanted.ownSize + wanted.size;
        const isSmall = wanted.ownSize === 0 || ownSize <= (capacity * newcomerPercent) / 400;
        const isFree = isSmall && totalSize <= capacity;
        expect(mayTake(shared, wanted)).toBe(isFree);
      });
    }),
    { numRuns: 500 },
  );
});

test('of two that want all and release in turn, neither stays with less than the other', () => {
  const want = (owner: number): Step => ({ owner, size: 1, isRelease: false });
  const steps = Array.from({ length: 100 }, () => want(0));
  for (let turn = 0; turn < 400; turn++)
    steps.push(want(1), want(0), { owner: turn % 2, size: 1, isRelease: true }, want(0), want(1));
  const [one = 0, other = 0] = run(BOUND, steps, () => undefined);
  expect(Math.abs(one - other)).toBeLessThanOrEqual(2);
  expect(one + other).toBeGreaterThanOrEqual(70);
});
