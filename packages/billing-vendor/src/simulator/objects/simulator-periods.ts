/**
 * Ends of a subscription's periods, in Unix seconds.
 *
 * They are so many months or years after its anchor, on the anchor's day, or on the month's last if the month has no
 * such day. A subscription of 31 January renews on 28 February and on 31 March.
 */

/** The first end of a period that is after `startSeconds`. */
export function periodEnd(anchorSeconds: number, startSeconds: number, interval: string): number {
  const anchor = new Date(anchorSeconds * 1_000);
  const start = new Date(startSeconds * 1_000);
  const monthsOfOne = interval === 'year' ? 12 : 1;
  const monthsBetween =
    (start.getUTCFullYear() - anchor.getUTCFullYear()) * 12 +
    (start.getUTCMonth() - anchor.getUTCMonth());
  for (let count = Math.max(1, Math.floor(monthsBetween / monthsOfOne)); ; count++) {
    const end = addMonths(anchor, count * monthsOfOne);
    if (end > startSeconds) return end;
  }
}

/** On the same day, or on the month's last if the month has no such day. */
export function addMonths(anchor: Date, count: number): number {
  const monthEnd = new Date(anchor);
  // Day 0 is the last of the month before.
  monthEnd.setUTCMonth(anchor.getUTCMonth() + count + 1, 0);
  const end = new Date(monthEnd);
  end.setUTCDate(Math.min(anchor.getUTCDate(), monthEnd.getUTCDate()));
  return Math.floor(end.getTime() / 1_000);
}
