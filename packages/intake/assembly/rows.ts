/**
 * Texts by which calls are read and operations are written.
 *
 * They are rows of one table, which the other side fills.
 *
 * AssemblyScript. Part of `fast-track.ts`.
 */
import { copy } from './write-bytes';

const ROW_SIZE_BYTES: i32 = 256;
const ROW_COUNT: i32 = 48;

/** Rows of ASCII, each behind its length (an integer). `fast-track-parser.ts` fills it, in the order below. */
export const table: i32 = <i32>memory.data(ROW_COUNT * ROW_SIZE_BYTES);

// The keys of a call, as the table and `fields` have them.
export const USER_ID: i32 = 0;
export const ANONYMOUS_ID: i32 = 1;
export const EVENT: i32 = 2;
export const TIMESTAMP: i32 = 3;
export const MESSAGE_ID: i32 = 4;
export const TYPE: i32 = 5;
export const PROPERTIES: i32 = 6;
export const ORIGINAL_TIMESTAMP: i32 = 7;
export const SENT_AT: i32 = 8;
export const KEY_COUNT: i32 = 9;
// Other texts that are looked for.
export const BATCH: i32 = 9;
export const TRACK: i32 = 10;
// An operation's pieces.
export const BEFORE_ENVIRONMENT_ID: i32 = 11;
export const BEFORE_RECEIVED_AT: i32 = 12;
export const BEFORE_ID: i32 = 13;
export const BEFORE_EMAIL: i32 = 14;
export const BEFORE_LONE_ANONYMOUS_ID: i32 = 15;
export const BEFORE_ANONYMOUS_ID: i32 = 16;
export const AFTER_ANONYMOUS_ID: i32 = 17;
export const BEFORE_EVENT_ID: i32 = 18;
export const BEFORE_NAME: i32 = 19;
export const BEFORE_DATA: i32 = 20;
export const NO_DATA: i32 = 21;
export const BEFORE_OCCURRED_AT: i32 = 22;
export const END_OF_CALL: i32 = 23;
export const END_OF_ITEM: i32 = 24;
/** The events that mean more than themselves, up to an empty row. */
export const COMMANDS: i32 = 25;

export function rowSizeOf(row: i32): i32 {
  return load<i32>(table + row * ROW_SIZE_BYTES);
}

export function writeRow(to: i32, row: i32): i32 {
  return copy(to, table + row * ROW_SIZE_BYTES + 4, rowSizeOf(row));
}

export function isRow(row: i32, start: i32, end: i32): bool {
  const sizeBytes = rowSizeOf(row);
  if (end - start != sizeBytes) return false;
  const text = table + row * ROW_SIZE_BYTES + 4;
  for (let index = 0; index < sizeBytes; index += 16) {
    const equal = i8x16.bitmask(i8x16.eq(v128.load(start + index), v128.load(text + index)));
    // Those behind the end do not count.
    const count = sizeBytes - index;
    const wanted = count < 16 ? (1 << count) - 1 : 0xffff;
    if ((equal & wanted) != wanted) return false;
  }
  return true;
}
