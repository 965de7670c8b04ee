/**
 * Values as YAML 1.2. A text that is not plainly a word is written as in JSON, which YAML reads the same. So a text of
 * others never becomes another kind of value, and cannot drive the terminal. Pure.
 */
import { printableJson } from '@sluice/domain/values/printable';

/** A word that YAML reads as a text in each of its versions. */
const PLAIN = /^[A-Za-z_][\w./@ -]*[\w/]$|^[A-Za-z]$/;
/** Words that YAML 1.1 or 1.2 reads as another value than a text. */
const NOT_TEXT = /^(?:y|n|yes|no|on|off|true|false|null)$/i;

/** A document, one line each. */
export function yamlLines(value: unknown): string[] {
  return isNested(value) ? nestedLines(value) : [scalar(value)];
}

function nestedLines(value: object): string[] {
  if (Array.isArray(value)) {
    return value.flatMap((item: unknown) => {
      if (!isNested(item)) return [`- ${scalar(item)}`];
      const [first = '', ...rest] = nestedLines(item);
      return [`- ${first}`, ...rest.map((line) => `  ${line}`)];
    });
  }
  return Object.entries(value).flatMap(([name, item]: [string, unknown]) =>
    isNested(item)
      ? [`${text(name)}:`, ...nestedLines(item).map((line) => `  ${line}`)]
      : [`${text(name)}: ${scalar(item)}`],
  );
}

/** True for a value that has lines of its own. */
const isNested = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && Object.keys(value).length > 0;

const scalar = (value: unknown): string =>
  typeof value === 'string' ? text(value) : printableJson(value ?? null);

const text = (value: string): string =>
  PLAIN.test(value) && !NOT_TEXT.test(value) ? value : printableJson(value);
