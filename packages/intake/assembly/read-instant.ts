/**
 * Reads instants in the forms of nearly all senders.
 *
 * The results are the same as in `domain/src/parsing/timestamps.ts`, whose other forms are declined here.
 *
 * AssemblyScript. Part of `fast-track.ts`.
 */

/** `2026-11-20T10:00:00.123Z` or without the fraction, from 1970 on; else negative. */
export function readInstantMs(start: i32, end: i32): i64 {
  const sizeBytes = end - start;
  if ((sizeBytes != 24 && sizeBytes != 20) || load<u8>(end - 1) != 0x5a) return -1;
  // 2026-11-20T10:00:00 has these five between its numbers.
  if (load<u8>(start + 4) != 0x2d || load<u8>(start + 7) != 0x2d) return -1;
  if (load<u8>(start + 10) != 0x54) return -1;
  if (load<u8>(start + 13) != 0x3a || load<u8>(start + 16) != 0x3a) return -1;
  const century = digitsAt(start, 2);
  const yearOfCentury = digitsAt(start + 2, 2);
  const month = digitsAt(start + 5, 2);
  const day = digitsAt(start + 8, 2);
  const hour = digitsAt(start + 11, 2);
  const minute = digitsAt(start + 14, 2);
  const second = digitsAt(start + 17, 2);
  if (sizeBytes == 24 && load<u8>(start + 19) != 0x2e) return -1;
  const millisecond = sizeBytes == 24 ? digitsAt(start + 20, 3) : 0;
  if ((century | yearOfCentury | month | day | hour | minute | second | millisecond) < 0) return -1;
  const year = century * 100 + yearOfCentury;
  if (century < 1 || month < 1 || month > 12 || day < 1 || day > daysInMonth(year, month))
    return -1;
  if (hour > 23 || minute > 59 || second > 59) return -1;
  const days = daysSinceEpoch(year, month, day);
  const dayMs = ((hour * 60 + minute) * 60 + second) * 1_000 + millisecond;
  return <i64>days * 86_400_000 + dayMs;
}

function daysInMonth(year: i32, month: i32): i32 {
  if (month == 2) return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) ? 29 : 28;
  return month == 4 || month == 6 || month == 9 || month == 11 ? 30 : 31;
}

function daysSinceEpoch(year: i32, month: i32, day: i32): i32 {
  const marchYear = month > 2 ? year : year - 1;
  const marchMonth = month > 2 ? month - 3 : month + 9;
  const leapDays = marchYear / 4 - marchYear / 100 + marchYear / 400;
  return marchYear * 365 + leapDays + (153 * marchMonth + 2) / 5 + day - 1 - 719_468;
}

/** A number of so many digits; negative if one of them is not a digit. */
function digitsAt(start: i32, count: i32): i32 {
  let number: i32 = 0;
  for (let index = start; index < start + count; index++) {
    const digit: i32 = <i32>load<u8>(index) - 0x30;
    if (digit < 0 || digit > 9) return -1;
    number = number * 10 + digit;
  }
  return number;
}
