/**
 * Who may take of what all workspaces share: bytes of memory, open streams, live tails, bytes of storage. Pure.
 *
 * ```
 *   |<------------- capacity ------------->|
 *   |  anybody, also beyond its share  |share|   the last share is kept for workspaces below theirs
 * ```
 *
 * - Up to its share a workspace takes what is free.
 * - Beyond it, it leaves as much free as one share is, and takes nothing while another one that was refused a moment ago
 *   holds less. So what comes free goes to whoever has least (max-min fairness), and those who want nothing hold nothing up.
 * - The only workspace of an installation takes everything.
 *
 * What was taken before stays taken: a share binds what is taken anew.
 */

/** A bound of so many units (bytes, streams), and the part of it, above 0, that each workspace may always have. */
export interface SharedBound {
  readonly capacity: number;
  readonly sharePercent: number;
}

export interface ShareClaim {
  /** Wanted now, in the units of the bound. */
  readonly size: number;
  /** What the workspace holds. */
  readonly ownSize: number;
  /** What all hold, this workspace too. */
  readonly totalSize: number;
  /** No other workspace could want any. */
  readonly isAlone: boolean;
  /** The least that another workspace holds that was refused a moment ago; Infinity: none was. */
  readonly leastRefusedSize: number;
}

/** As much a workspace may always have. */
export const shareOf = ({ capacity, sharePercent }: SharedBound): number =>
  (capacity * sharePercent) / 100;

/** As much a workspace may have where nobody else holds any. */
export const mostOf = (bound: SharedBound, isAlone: boolean): number =>
  isAlone ? bound.capacity : Math.max(shareOf(bound), bound.capacity - shareOf(bound));

/** True if the workspace has no more than its share with it. One unit always is, however large: else a small bound had none. */
export const isWithinShare = (
  bound: SharedBound,
  { size, ownSize }: Pick<ShareClaim, 'size' | 'ownSize'>,
): boolean => ownSize === 0 || ownSize + size <= shareOf(bound);

/** True if the workspace may take it. */
export function mayTake(bound: SharedBound, claim: ShareClaim): boolean {
  const { size, ownSize, totalSize, isAlone, leastRefusedSize } = claim;
  if (totalSize + size > bound.capacity) return false;
  if (isAlone || isWithinShare(bound, claim)) return true;
  return totalSize + size <= bound.capacity - shareOf(bound) && ownSize <= leastRefusedSize;
}
