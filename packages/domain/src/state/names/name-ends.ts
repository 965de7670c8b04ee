/**
 * Ends of the ownership of a name, as texts with times.
 *
 * ```
 * 12 1769860800000           the name was the person's until then
 * 12 blocked 1769860800000   it was suppressed with the person's other names
 * nobody 1769860800000       it was deleted without a person
 * free 1769860800000         a late call ended the ownership before that time
 * 12 heir                    under the number of a merged person: the person they became
 * forgotten                  earlier ends were left out
 * ```
 */
export const FORGOTTEN = 'forgotten';

/**
 * Each end has a text of its own. So two rows are joined by joining their texts, also if one person gives up a name twice,
 * by clocks that differ. Earlier versions wrote texts without the time.
 */
export interface NameEnd {
  /** As stored. */
  readonly text: string;
  readonly owner: 'person' | 'blocked' | 'heir' | 'nobody' | 'free';
  /** Zero for `nobody` and `free`. */
  readonly personId: number;
  readonly untilMs: number;
}

export const personEnd = (personId: number, untilMs: number): string => `${personId} ${untilMs}`;
export const blockedEnd = (personId: number, untilMs: number): string =>
  `${personId} blocked ${untilMs}`;
export const heirEnd = (personId: number): string => `${personId} heir`;
export const nobodyEnd = (untilMs: number): string => `nobody ${untilMs}`;
export const freeEnd = (untilMs: number): string => `free ${untilMs}`;

const FORM = /^(?:(\d+)(?: (blocked|heir))?|(nobody|free))(?: \d+)?$/;
/** Of ends at one time, the order in which they count. */
const ORDER = ['person', 'heir', 'blocked', 'nobody', 'free'] as const;

/** The ends in the order of their times. */
export function readEnds(owners: Readonly<Record<string, number>> | null): readonly NameEnd[] {
  const ends: NameEnd[] = [];
  for (const [text, untilMs] of Object.entries(owners ?? {})) {
    const [isRead, number, form = 'person', nobody] = FORM.exec(text) ?? [];
    if (isRead === undefined) continue;
    const owner = (nobody ?? form) as NameEnd['owner'];
    ends.push({ text, owner, personId: Number(number ?? 0), untilMs });
  }
  return ends.toSorted(
    (one, other) =>
      one.untilMs - other.untilMs ||
      ORDER.indexOf(one.owner) - ORDER.indexOf(other.owner) ||
      one.personId - other.personId,
  );
}

/** The person that a merged person became; undefined if the row is of another kind. */
export const heirIn = (owners: Readonly<Record<string, number>> | null): number | undefined =>
  readEnds(owners).find(({ owner }) => owner === 'heir')?.personId;
