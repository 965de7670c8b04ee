/** Content of a person's activity, in one line. Pure. */

const LENGTH_MAX = 140;

/** `plan pro → free · unsubscribed false → true` for changes; else the start of the data; empty if there is no data. */
export function activityText(data: Readonly<Record<string, unknown>>): string {
  const entries = Object.entries(data);
  if (entries.length === 0) return '';
  const isChange = entries.every(([, value]) => isFromTo(value));
  const text = isChange
    ? entries.map(([name, value]) => changeText(name, value as FromTo)).join(' · ')
    : JSON.stringify(data);
  return text.length > LENGTH_MAX ? `${text.slice(0, LENGTH_MAX)} …` : text;
}

interface FromTo {
  readonly from: unknown;
  readonly to: unknown;
}

const isFromTo = (value: unknown): value is FromTo =>
  typeof value === 'object' && value !== null && 'from' in value && 'to' in value;

function changeText(name: string, { from, to }: FromTo): string {
  if (from === null) return `${name} ${shown(to)}`;
  return `${name} ${shown(from)} → ${to === null ? 'none' : shown(to)}`;
}

const shown = (value: unknown): string =>
  typeof value === 'string' ? value : JSON.stringify(value);
