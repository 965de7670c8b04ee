/** One line of the live tail, and the content of its row. Pure. */

/** As `GET /v1/stream` sends it; the description has lines as text. */
export interface TailLine {
  readonly kind: 'received' | 'refused' | 'reported';
  readonly at_ms: number;
  readonly outcome: string;
  readonly name: string | null;
  readonly people: readonly Readonly<Record<string, string>>[];
  readonly details: Readonly<Record<string, string | number | boolean | null>>;
}

/** Lines that the page could not read in time. */
export interface DroppedLines {
  readonly kind: 'dropped';
  /** Null: not known. */
  readonly count: number | null;
}

/** A row of the page; `number` counts up from 1. */
export type TailRow = (TailLine | DroppedLines) & { readonly number: number };

/** The first identifier by which the call named a person. */
export function personText({ people }: TailLine): string {
  const [first] = people.flatMap((person) => Object.values(person));
  return first ?? '–';
}

/** The person of a line, with a kind by which it can be looked up; undefined if there is no such kind. */
export function personOf({
  people,
}: TailLine): { type: 'id' | 'email'; value: string } | undefined {
  for (const type of ['id', 'email'] as const) {
    const value = people.find((person) => person[type] !== undefined)?.[type];
    if (value !== undefined) return { type, value };
  }
  return undefined;
}

/** The rest in a few words. */
export function detailText({ kind, details }: TailLine): string {
  const of = (name: string): string => {
    const value = details[name];
    return value === null || value === undefined ? '' : String(value);
  };
  if (kind === 'reported')
    return `webhook ${of('webhook_id')} #${of('sequence')} ${of('status') || of('failure')} ${of('duration_ms')} ms`;
  if (kind === 'refused') {
    const field = of('field');
    return [field === '' ? of('code') : `${field}: ${of('code')}`, of('message')]
      .filter((part) => part !== '')
      .join(' · ');
  }
  return of('event_id') === '' ? '' : `event ${of('event_id')}`;
}
