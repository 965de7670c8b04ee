/**
 * Size of a value as compact JSON, without writing it.
 *
 * For batch items: their bytes are not known after `JSON.parse` of the whole body, and serialising each again would
 * cost too much. So a first pass adds up an upper bound (six bytes a UTF-16 unit, the longest escape). Only values that
 * it cannot decide are measured exactly. Neither pass recurses: depth is free.
 */

/** The longest doubles are written without an exponent: `-0.0000012345678901234567` has 25 characters. */
const NUMBER_SIZE_BYTES_MAX = 25;

/** True if the compact JSON in UTF-8 is larger than the bound. */
export function isJsonLargerThan(value: unknown, sizeBytesMax: number): boolean {
  return (
    exceeds(value, sizeBytesMax, looseTextSizeBytes) &&
    exceeds(value, sizeBytesMax, exactTextSizeBytes)
  );
}

/** The exact size; for messages. */
export function jsonSizeBytes(value: unknown): number {
  return walk(value, Number.POSITIVE_INFINITY, exactTextSizeBytes);
}

type TextSize = (text: string) => number;

const exceeds = (value: unknown, sizeBytesMax: number, textSizeBytes: TextSize): boolean =>
  walk(value, sizeBytesMax, textSizeBytes) > sizeBytesMax;

/** Adds up, and stops once the bound is passed. */
function walk(root: unknown, sizeBytesMax: number, textSizeBytes: TextSize): number {
  const isExact = textSizeBytes === exactTextSizeBytes;
  const open: unknown[] = [root];
  let sizeBytes = 0;
  while (open.length > 0 && sizeBytes <= sizeBytesMax) {
    const value = open.pop();
    if (typeof value === 'string') {
      sizeBytes += textSizeBytes(value);
    } else if (typeof value === 'number') {
      sizeBytes += isExact ? JSON.stringify(value).length : NUMBER_SIZE_BYTES_MAX;
    } else if (Array.isArray(value)) {
      // Brackets, and a comma between each two.
      sizeBytes += 1 + Math.max(1, value.length);
      for (const item of value) open.push(item);
    } else if (typeof value === 'object' && value !== null) {
      let count = 0;
      for (const key in value) {
        count++;
        sizeBytes += textSizeBytes(key) + 1;
        open.push((value as Record<string, unknown>)[key]);
      }
      sizeBytes += 1 + Math.max(1, count);
    } else {
      sizeBytes += value === false ? 5 : 4;
    }
  }
  return sizeBytes;
}

function looseTextSizeBytes(text: string): number {
  return 2 + 6 * text.length;
}

function exactTextSizeBytes(text: string): number {
  let sizeBytes = 2 + text.length;
  for (let index = 0; index < text.length; index++) {
    const unit = text.charCodeAt(index);
    if (unit === 0x22 || unit === 0x5c) sizeBytes += 1;
    else if (unit < 0x20) sizeBytes += isShortEscape(unit) ? 1 : 5;
    else if (unit < 0x80) continue;
    else if (unit < 0x800) sizeBytes += 1;
    else if ((unit & 0xf800) !== 0xd800) sizeBytes += 2;
    else if (unit < 0xdc00 && (text.charCodeAt(index + 1) & 0xfc00) === 0xdc00) {
      sizeBytes += 2;
      index++;
    } else {
      // A lone surrogate is written as an escape of six bytes.
      sizeBytes += 5;
    }
  }
  return sizeBytes;
}

/** Backspace, tab, newline, form feed and carriage return have escapes of two bytes. */
function isShortEscape(unit: number): boolean {
  return unit === 8 || unit === 9 || unit === 10 || unit === 12 || unit === 13;
}
