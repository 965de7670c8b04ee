/**
 * Writes bytes and numbers into memory. Each function returns the address behind its last byte.
 *
 * AssemblyScript. Part of `fast-track.ts`.
 */

/** Sixteen at a time, so up to fifteen too many, which the next text overwrites. It takes half the time of `memory.copy` for a few. */
export function copy(to: i32, from: i32, sizeBytes: i32): i32 {
  for (let index = 0; index < sizeBytes; index += 16) {
    v128.store(to + index, v128.load(from + index));
  }
  return to + sizeBytes;
}

const BILLION: i64 = 1_000_000_000;

/** Not negative. In two halves, because to divide 64 bits takes several times as long. */
export function writeInteger(to: i32, value: i64): i32 {
  const high = <u32>(value / BILLION);
  const low = <u32>(value - <i64>high * BILLION);
  if (high == 0) return writeDigits(to, low, countDigits(low));
  return writeDigits(writeDigits(to, high, countDigits(high)), low, 9);
}

/** Of a time in milliseconds. */
export function digitCountOf(value: i64): i32 {
  const high = <u32>(value / BILLION);
  return high == 0 ? countDigits(<u32>value) : countDigits(high) + 9;
}

function countDigits(value: u32): i32 {
  let count: i32 = 1;
  for (let rest = value; rest >= 10; rest /= 10) count++;
  return count;
}

function writeDigits(to: i32, value: u32, count: i32): i32 {
  let rest = value;
  for (let at = to + count - 1; at >= to; at--) {
    store<u8>(at, <u8>(0x30 + (rest % 10)));
    rest /= 10;
  }
  return to + count;
}
