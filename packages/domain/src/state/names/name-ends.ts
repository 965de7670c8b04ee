/**
 * Ends of the ownership of a name, as texts with times.
 *
 * ```
 * 12 1769860800000 0mk1z…           the name was the person's until then
 * 12 blocked 1769860800000 0mk1z…   it was suppressed with the person's other names
 * nobody 1769860800000 0mk1z…       it was deleted without a person
 * free 1769860800000 0mk1z…         a late call ended the ownership before that time
 * 12 heir                           under the number of a merged person: the person they became
 * forgotten                         other ends were left out; the value is the time of the last of them
 * ```
 *
 * The last word is the place in the order of calls, which clocks cannot change.
 */
import type { OrderPlace } from '../../operations/order-place.ts';

/**
 * Times in Unix milliseconds, by the texts of the ends. To V8 each object with such names would be a type of its own. With
 * objects a merge took a tenth more of the worker's time.
 */
export type OwnerEnds = ReadonlyMap<string, number>;

const FORGOTTEN = 'forgotten';

/**
 * Each end has a text of its own. So two rows are joined by joining their texts, also if one person gives up a name twice,
 * by clocks that differ. Earlier versions wrote texts without time and place.
 */
export interface NameEnd {
  /** As stored. */
  readonly text: string;
  readonly owner: 'person' | 'blocked' | 'heir' | 'nobody' | 'free';
  /** Zero for `nobody` and `free`. */
  readonly personId: number;
  readonly untilMs: number;
  /** Absent: its time alone gives its order. */
  readonly place: OrderPlace | undefined;
}

/** The time of an end, and its place if the name was lost when the call was applied. */
export interface EndTime {
  readonly receivedAtMs: number;
  readonly place?: OrderPlace | undefined;
}

const textOf = (owner: string, { receivedAtMs, place }: EndTime): string =>
  `${owner} ${receivedAtMs}${place === undefined ? '' : ` ${place}`}`;

export const personEnd = (personId: number, time: EndTime): string => textOf(`${personId}`, time);
export const blockedEnd = (personId: number, time: EndTime): string =>
  textOf(`${personId} blocked`, time);
export const heirEnd = (personId: number): string => `${personId} heir`;
export const nobodyEnd = (time: EndTime): string => textOf('nobody', time);
export const freeEnd = (time: EndTime): string => textOf('free', time);

const FORM = /^(?:(\d+)(?: (blocked|heir))?|(nobody|free))(?: \d+(?: ([0-9a-z]+))?)?$/;
/** Of ends at one time, the order in which they count. */
const ORDER = ['person', 'heir', 'blocked', 'nobody', 'free'] as const;

/** The ends by their places. An end without a place stands before the first later one. */
export function readEnds(owners: OwnerEnds | null): readonly NameEnd[] {
  const ends: NameEnd[] = [];
  const others: NameEnd[] = [];
  for (const [text, untilMs] of owners ?? []) {
    const [isRead, number, form = 'person', nobody, place] = FORM.exec(text) ?? [];
    if (isRead === undefined) continue;
    const owner = (nobody ?? form) as NameEnd['owner'];
    const end = { text, owner, personId: Number(number ?? 0), untilMs, place };
    (place === undefined ? others : ends).push(end);
  }
  ends.sort(compareEnds);
  for (const end of others.toSorted(compareEnds)) {
    const index = ends.findIndex(({ untilMs }) => untilMs > end.untilMs);
    ends.splice(index === -1 ? ends.length : index, 0, end);
  }
  return ends;
}

/**
 * Before this time the owners are not known; it is in the past of every call if all ends are kept. An end that was kept
 * can be earlier: a late deletion has the time of its receipt.
 */
export function forgottenUntil(owners: OwnerEnds | null, ends: readonly NameEnd[]): number {
  const untilMs = owners?.get(FORGOTTEN);
  if (untilMs === undefined) return -Infinity;
  // Earlier versions wrote no time. They kept the ends from then on.
  return untilMs === 0 ? (ends[0]?.untilMs ?? -Infinity) : untilMs;
}

function compareEnds(one: NameEnd, other: NameEnd): number {
  const [place, otherPlace] = [one.place ?? '', other.place ?? ''];
  if (place !== otherPlace) return place < otherPlace ? -1 : 1;
  return (
    one.untilMs - other.untilMs ||
    ORDER.indexOf(one.owner) - ORDER.indexOf(other.owner) ||
    one.personId - other.personId
  );
}

/** The person that a merged person became; undefined if the row is of another kind. */
export const heirIn = (owners: OwnerEnds | null): number | undefined =>
  readEnds(owners).find(({ owner }) => owner === 'heir')?.personId;
