/** Range of a list of deliveries: two times of UTC, or a duration up to now. Pure. */

/** Durations by their texts in the address. */
export const LASTS: Readonly<Record<string, number>> = {
  '15m': 900_000,
  '1h': 3_600_000,
  '24h': 86_400_000,
  '7d': 604_800_000,
};

type Query = Readonly<Record<string, string | undefined>>;

/**
 * The query with times in place of a duration. Its newest rows are not cut off: a list stays open at that end.
 *
 * @param nowMs - the present as the list began, so that its rows stay while it is read.
 */
export function withTimes(query: Query, nowMs: number): Query {
  const { last, ...rest } = query;
  const lastMs = last === undefined ? undefined : LASTS[last];
  if (lastMs === undefined || rest['since'] !== undefined || rest['until'] !== undefined)
    return rest;
  return { ...rest, since: timeOf(nowMs - lastMs) };
}

/**
 * The query of a link for another reader, who sees the same rows later: both ends of a duration are times. The selection
 * is the sender's own.
 *
 * @param nowMs - the present as the list began.
 * @param readAtMs - the latest read of the rows: the list has newer ones since it began.
 */
export function linkedQuery(query: Query, nowMs: number, readAtMs: number): Query {
  const { since } = withTimes(query, nowMs);
  const { last, selected: _, ...rest } = query;
  if (last === undefined || since === rest['since']) return rest;
  return { ...rest, since, until: timeOf(readAtMs + 999) };
}

/** To the second, as the fields of the browser write it. */
const timeOf = (atMs: number): string => new Date(atMs).toISOString().slice(0, 19);
