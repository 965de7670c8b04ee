/** For the test of `npm run mutate`: its own test notices one of its mutants, and misses another. */
export function priceOf(units: number, unitCents: number): number {
  if (units >= 100) return units * unitCents * 0.5;
  return units * unitCents;
}

/** For ever, if the step is taken away. */
export function countDown(from: number): number {
  let left = from;
  while (left > 0) left -= 1;
  return left;
}
