/**
 * Passes JSON (RFC 8259) in memory without making values of it.
 *
 * Each function returns the address behind the passed text, or `DECLINED` if the text is not plain. A declined text can still
 * be JSON.
 *
 * AssemblyScript. Part of `fast-track.ts`, whose header has the trade-off.
 */

export const DECLINED: i32 = 0;
/** Well below the depth that a call may have. */
const DEPTH_MAX: i32 = 64;
/** With so many digits and no exponent a number is finite. */
const NUMBER_SIZE_BYTES_MAX: i32 = 24;
/** With so many digits a whole number is below 2^53, and no double rounds it (`domain/src/parsing/clean-json.ts`). */
const WHOLE_DIGITS_MAX: i32 = 15;

/** Of the text that was passed last: ASCII without escapes. */
export let isPlain: bool = false;
/** Within properties, in which a text that is an instant has to become a number. */
let isKept: bool = false;

export function passSpace(from: i32): i32 {
  let at = from;
  for (let byte = load<u8>(at); byte <= 0x20; byte = load<u8>(++at)) {
    if (byte != 0x20 && byte != 0x0a && byte != 0x0d && byte != 0x09) return at;
  }
  return at;
}

/** A value within which a text that is an instant has to become a number. */
export function passKeptValue(from: i32): i32 {
  isKept = true;
  const end = passValue(from, 1);
  isKept = false;
  return end;
}

export function passValue(from: i32, depth: i32): i32 {
  switch (load<u8>(from)) {
    case 0x22:
      return passTextValue(from);
    case 0x7b:
      return depth <= DEPTH_MAX ? passObject(from, depth) : DECLINED;
    case 0x5b:
      return depth <= DEPTH_MAX ? passList(from, depth) : DECLINED;
    case 0x74:
      return passWord(from, 0x65757274);
    case 0x66:
      return passWord(from + 1, 0x65736c61);
    case 0x6e:
      return passWord(from, 0x6c6c756e);
    default:
      return passNumber(from);
  }
}

function passObject(from: i32, depth: i32): i32 {
  let at = passSpace(from + 1);
  if (load<u8>(at) == 0x7d) return at + 1;
  while (true) {
    if (load<u8>(at) != 0x22) return DECLINED;
    at = passText(at);
    if (at == DECLINED) return DECLINED;
    at = passSpace(at);
    if (load<u8>(at) != 0x3a) return DECLINED;
    at = passValue(passSpace(at + 1), depth + 1);
    if (at == DECLINED) return DECLINED;
    at = passSpace(at);
    if (load<u8>(at) != 0x2c) return load<u8>(at) == 0x7d ? at + 1 : DECLINED;
    at = passSpace(at + 1);
  }
}

function passList(from: i32, depth: i32): i32 {
  let at = passSpace(from + 1);
  if (load<u8>(at) == 0x5d) return at + 1;
  while (true) {
    at = passValue(at, depth + 1);
    if (at == DECLINED) return DECLINED;
    at = passSpace(at);
    if (load<u8>(at) != 0x2c) return load<u8>(at) == 0x5d ? at + 1 : DECLINED;
    at = passSpace(at + 1);
  }
}

/** `true`, `alse` or `null`, as four bytes from the lowest. */
function passWord(from: i32, word: u32): i32 {
  return load<u32>(from) == word ? from + 4 : DECLINED;
}

/** Without its exponent. Every caller declines an exponent that comes after it. */
function passNumber(from: i32): i32 {
  let at = load<u8>(from) == 0x2d ? from + 1 : from;
  const end = passDigits(at);
  if (end == at || end - at > WHOLE_DIGITS_MAX || (load<u8>(at) == 0x30 && end > at + 1))
    return DECLINED;
  at = end;
  if (load<u8>(at) == 0x2e) {
    at = passDigits(end + 1);
    if (at == end + 1) return DECLINED;
  }
  return at - from > NUMBER_SIZE_BYTES_MAX ? DECLINED : at;
}

function passDigits(from: i32): i32 {
  let at = from;
  while (<u32>load<u8>(at) - 0x30 <= 9) at++;
  return at;
}

/** Declines a text that might be an instant (`parseIsoMs`), if it would be converted. */
function passTextValue(from: i32): i32 {
  const end = passText(from);
  const sizeBytes = end - from - 2;
  if (!isKept || sizeBytes < 14 || sizeBytes > 64) return end;
  // 2024-05-01T10:20 and 20240501T1020.
  const isExtended = load<u8>(from + 5) == 0x2d && load<u8>(from + 8) == 0x2d;
  if (isExtended) return isLetterT(from + 11) ? DECLINED : end;
  const isBasic = isDigit(from + 1) && isDigit(from + 8) && isLetterT(from + 9);
  return isBasic && isDigit(from + 10) ? DECLINED : end;
}

function isDigit(at: i32): bool {
  return <u32>load<u8>(at) - 0x30 <= 9;
}

/** `T` or `t`, between a date and its time of day. */
function isLetterT(at: i32): bool {
  return (load<u8>(at) | 0x20) == 0x74;
}

/** From a quote to behind the next. `\u` is declined: it may be a text that Postgres refuses. */
export function passText(from: i32): i32 {
  isPlain = true;
  let at = from + 1;
  while (true) {
    const bytes = v128.load(at);
    // As signed bytes all bytes beyond ASCII are negative.
    const found = i8x16.bitmask(
      v128.or(
        i8x16.lt_s(bytes, i8x16.splat(0x20)),
        v128.or(i8x16.eq(bytes, i8x16.splat(0x22)), i8x16.eq(bytes, i8x16.splat(0x5c))),
      ),
    );
    if (found == 0) {
      at += 16;
      continue;
    }
    at += ctz(found);
    const byte = load<u8>(at);
    if (byte == 0x22) return at + 1;
    isPlain = false;
    at = byte == 0x5c ? passEscape(at) : passMultibyte(at);
    if (at == DECLINED) return DECLINED;
  }
}

function passEscape(from: i32): i32 {
  switch (load<u8>(from, 1)) {
    case 0x22:
    case 0x2f:
    case 0x5c:
    case 0x62:
    case 0x66:
    case 0x6e:
    case 0x72:
    case 0x74:
      return from + 2;
    default:
      return DECLINED;
  }
}

/** One character of UTF-8 beyond ASCII (so no control character), by RFC 3629: not overlong, no surrogate, at most U+10FFFF. */
function passMultibyte(from: i32): i32 {
  const lead = load<u8>(from);
  const second = load<u8>(from, 1);
  if (lead < 0xc2 || lead > 0xf4 || (second & 0xc0) != 0x80) return DECLINED;
  if (lead < 0xe0) return from + 2;
  if ((load<u8>(from, 2) & 0xc0) != 0x80) return DECLINED;
  if (lead < 0xf0) {
    const isWrong = (lead == 0xe0 && second < 0xa0) || (lead == 0xed && second > 0x9f);
    return isWrong ? DECLINED : from + 3;
  }
  if ((load<u8>(from, 3) & 0xc0) != 0x80) return DECLINED;
  const isWrong = (lead == 0xf0 && second < 0x90) || (lead == 0xf4 && second > 0x8f);
  return isWrong ? DECLINED : from + 4;
}
