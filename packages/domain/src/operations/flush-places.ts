/**
 * The places of a part's operations in their flush, as one text.
 *
 * They give the order of operations of one call that went to several shards. Places only grow within a part, so the
 * differences are written, each in base 36. A difference of more than one digit is in brackets. A part of every fourth
 * operation takes one byte an operation. Pure.
 */

/** Writes places, in ascending order. */
export function writePlaces(places: readonly number[]): string {
  let last = -1;
  return places
    .map((place) => {
      const difference = place - last - 1;
      last = place;
      const digits = difference.toString(36);
      return digits.length === 1 ? digits : `(${digits})`;
    })
    .join('');
}

/** Reads the text of {@link writePlaces}. */
export function readPlaces(text: string): number[] {
  let last = -1;
  return [...text.matchAll(/\(([0-9a-z]+)\)|[0-9a-z]/g)].map(([digit, digits]) => {
    last += Number.parseInt(digits ?? digit, 36) + 1;
    return last;
  });
}
