/**
 * One text for one JSON value: keys sorted by UTF-16 code unit, no blanks (as RFC 8785 for the values that we hash). So
 * the hash of a value is the same before it goes into `jsonb` and after it comes back. `jsonb` keeps neither the order
 * of keys nor the spelling of numbers.
 */
import type { Json } from './json.ts';

export function canonicalJson(value: Json): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonicalJson).join(',')}]`;
  const members = Object.keys(value)
    .toSorted()
    .map((key) => `${JSON.stringify(key)}:${canonicalJson(value[key] as Json)}`);
  return `{${members.join(',')}}`;
}
