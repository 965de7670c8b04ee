/** The range of a list in the address: two times of UTC, or a duration up to now (`last`). Pure. */
import { parseIsoMs } from '@sluice/domain/value-rules/iso-instant';

/** Durations by their texts in the address. */
const DURATIONS_MS: Readonly<Record<string, number>> = {
  '15m': 900_000,
  '1h': 3_600_000,
  '24h': 86_400_000,
  '7d': 604_800_000,
};

/** The texts, for a choice and for the rule of a route. */
export const LASTS = Object.keys(DURATIONS_MS);

/** The parameters of a list, and the form of their values. */
export interface RangeForm {
  /** Name of the earlier time. */
  readonly from: string;
  /** Name of the later one. */
  readonly to: string;
  readonly timeOf: (atMs: number) => string;
}

/** As a field of the browser writes times, which are of UTC here. */
export const SINCE_UNTIL: RangeForm = {
  from: 'since',
  to: 'until',
  timeOf: (atMs) => new Date(atMs).toISOString().slice(0, 19),
};

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?$/;

/** Rules of a route whose list has a range in {@link SINCE_UNTIL}. */
export const TIMES_QUERY = { since: TIME, until: TIME, last: LASTS };

/** Unix seconds; undefined for a day that no calendar has, and for a year before 1970, which the API refuses. */
export function secondsOf(time: string | undefined): string | undefined {
  // `Date.parse` takes 30 February for 2 March.
  const atMs = parseIsoMs(`${time}Z`, true);
  return atMs === undefined || atMs < 0 ? undefined : String(Math.floor(atMs / 1000));
}

/** As the API writes times, to the second. */
export const FROM_TO: RangeForm = {
  from: 'from',
  to: 'to',
  timeOf: (atMs) => `${new Date(atMs).toISOString().slice(0, 19)}Z`,
};

/** Parameters of the address. */
export type RangeQuery = Readonly<Record<string, string | undefined>>;

/**
 * The query with times in place of a duration. Its newest rows are not cut off: a list stays open at that end.
 *
 * @param nowMs - the present as the list began, so that its rows stay while it is read.
 */
export function withTimes(
  query: RangeQuery,
  nowMs: number,
  { from, to, timeOf }: RangeForm,
): RangeQuery {
  const { last, ...rest } = query;
  const durationMs = last === undefined ? undefined : DURATIONS_MS[last];
  if (durationMs === undefined || rest[from] !== undefined || rest[to] !== undefined) return rest;
  return { ...rest, [from]: timeOf(nowMs - durationMs) };
}

/**
 * The query of a link for another reader, who sees the same rows later: both ends of a duration are times. The selection
 * is the sender's own.
 *
 * @param nowMs - the present as the list began.
 * @param readAtMs - the latest read of the rows: the list has newer ones since it began.
 */
export function linkedQuery(
  query: RangeQuery,
  nowMs: number,
  readAtMs: number,
  form: RangeForm,
): RangeQuery {
  const { from, to, timeOf } = form;
  const since = withTimes(query, nowMs, form)[from];
  const { last, selected: _, ...rest } = query;
  if (last === undefined || since === rest[from]) return rest;
  return { ...rest, [from]: since, [to]: timeOf(readAtMs + 999) };
}
