/**
 * Shares of accounts in the simultaneous fetches of a worker. Pure.
 *
 * A fetch may take two hours, and its server decides how long. An account may have a quarter of the places, and the last
 * place is kept for an account without one. So the first file of a newcomer is fetched at once, beside slow servers.
 */

/** @returns the accounts that get no further place. `held`: the number of places of each account that has any. */
export function accountsWithoutPlace(
  held: ReadonlyMap<number, number>,
  placeCount: number,
): number[] {
  const heldCount = [...held.values()].reduce((sum, count) => sum + count, 0);
  const share = heldCount >= placeCount - 1 ? 1 : Math.max(1, Math.floor(placeCount / 4));
  return [...held].filter(([, count]) => count >= share).map(([accountId]) => accountId);
}
