/**
 * Shares of a resource of all workspaces: memory, streams, live tails, storage. Pure.
 * ```
 *   |<------------- capacity ------------->|
 *   |  anybody, also beyond its share  |share|   the last share is kept for workspaces below theirs
 * ```
 * - Up to its share a workspace takes free capacity.
 * - Beyond it, it leaves one share and the part for newcomers free. It takes no more while another workspace that was refused a moment ago holds
 *   less. So capacity that comes free goes to the workspace with the least (max-min fairness), and idle ones block no
 *   other.
 * - Four workspaces could fill the bound with their shares, and no other workspace would get any. A bound with a part for
 *   newcomers keeps it for workspaces that hold at most a quarter of this part. More than 0, since a body comes in pieces.
 * - The only workspace of an installation takes everything. A share binds new capacity only; held capacity stays.
 */

/** A bound of so many units (bytes, streams), and the part of it, above 0, that each workspace may always have. */
export interface SharedBound {
  readonly capacity: number;
  readonly sharePercent: number;
  /** Percentage for workspaces that hold at most a quarter of this part. Absent: 0. */
  readonly newcomerPercent?: number;
}

export interface ShareClaim {
  /** Wanted now, in the units of the bound. */
  readonly size: number;
  /** The amount that the workspace holds. */
  readonly ownSize: number;
  /** The amount that all hold, this workspace too. */
  readonly totalSize: number;
  /** No other workspace could want any. */
  readonly isAlone: boolean;
  /** The least that another workspace holds that was refused a moment ago; Infinity if no other was. */
  readonly leastRefusedSize: number;
}

/** One of them may have so much of the part for newcomers. */
const SHARE_OF_NEWCOMER = 1 / 4;

/** As much a workspace may always have. */
export const shareOf = ({ capacity, sharePercent }: SharedBound): number =>
  (capacity * sharePercent) / 100;

/** Half a share, or as much as all shares together leave free: the part for newcomers of a bound with such shares. */
export const newcomerPercentOf = (sharePercent: number): number =>
  Math.min(sharePercent / 2, 100 - sharePercent);

/** The most that a workspace may have while all others hold 0. */
export const mostOf = (bound: SharedBound, isAlone: boolean): number =>
  isAlone
    ? bound.capacity
    : Math.max(shareOf(bound), bound.capacity - shareOf(bound) - newcomerPartOf(bound));

/**
 * True if the workspace has at most its share with it. One unit of any size always is, else a small bound would refuse
 * all.
 */
export const isWithinShare = (
  bound: SharedBound,
  { size, ownSize }: Pick<ShareClaim, 'size' | 'ownSize'>,
): boolean => ownSize === 0 || ownSize + size <= shareOf(bound);

/** True if the workspace may take it. */
export function mayTake(bound: SharedBound, claim: ShareClaim): boolean {
  const { size, ownSize, totalSize, isAlone, leastRefusedSize } = claim;
  if (totalSize + size > bound.capacity) return false;
  if (isAlone) return true;
  const newcomerPart = newcomerPartOf(bound);
  if (totalSize + size > bound.capacity - newcomerPart && ownSize > 0)
    return ownSize + size <= newcomerPart * SHARE_OF_NEWCOMER;
  if (isWithinShare(bound, claim)) return true;
  return totalSize + size <= mostOf(bound, false) && ownSize <= leastRefusedSize;
}

const newcomerPartOf = ({ capacity, newcomerPercent = 0 }: SharedBound): number =>
  (capacity * newcomerPercent) / 100;
