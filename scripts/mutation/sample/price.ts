/** For the test of `npm run mutate`: its own test notices one of its mutants, and misses another. */
export function priceOf(units: number, unitCents: number): number {
  if (units >= 100) return units * unitCents * 0.5;
  return units * unitCents;
}

/** For ever, if no unit is taken away. @returns how many units are left. */
export function takeAway(units: number, stepsMax: number): number {
  const left = Array.from({ length: units });
  let steps = 0;
  while (left.length > 0 && steps < stepsMax) {
    left.pop();
    steps += 1;
  }
  return left.length;
}
