/**
 * The place of a write in the order of acknowledgement: by it, a visitor's traits and the later or earlier writes of the
 * person whom the visitor turns out to be are compared.
 *
 * It is the place of the batch in the broker's log (`platform/src/queue/pending-log.ts`) and the place of the operation
 * in its flush. If no log is kept, it is the number of the batch's claim. Pure.
 */

/** 25 characters of base 36, compared as text. */
export type OrderPlace = string;

/** Place of a flush or a batch: two whole numbers below 2^53, compared one after the other. */
export interface BatchPlace {
  readonly major: number;
  readonly minor: number;
}

/** Milliseconds of a stream's id until the year 2059. */
const MAJOR_LENGTH = 8;
const MINOR_LENGTH = 11;
const INDEX_LENGTH = 4;

/** After every place. */
export const LAST_PLACE: OrderPlace = '~';

/** @param index - of the operation in its flush, from 0. */
export function orderPlaceOf({ major, minor }: BatchPlace, index: number): OrderPlace {
  return digits(major, MAJOR_LENGTH) + digits(minor, MINOR_LENGTH) + digits(index, INDEX_LENGTH);
}

const digits = (number: number, length: number): string =>
  number.toString(36).padStart(length, '0');
