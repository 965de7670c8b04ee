/**
 * Fields of a call: the address of the value of each known key. A form that is not plain declines the call.
 *
 * AssemblyScript. Part of `fast-track.ts`; `write-operation.ts` writes the operation from the fields.
 */
import { DECLINED, isPlain, passKeptValue, passSpace, passText, passValue } from './pass-json';
import { isRow, KEY_COUNT, ORIGINAL_TIMESTAMP, PROPERTIES } from './rows';

/** Two integers a key: the addresses of the begin and end of its value, texts without their quotes. 0 if it is absent. */
const fields: i32 = <i32>memory.data(KEY_COUNT * 8);

/** Notes its fields. */
export function readCall(from: i32): i32 {
  for (let key = 0; key < KEY_COUNT; key++) setField(key, 0, 0);
  let at = from;
  if (load<u8>(at) != 0x7b) return DECLINED;
  do {
    const start = passSpace(at + 1);
    at = passKey(start);
    if (at == DECLINED) return DECLINED;
    at = readField(keyOf(start), at);
    if (at == DECLINED) return DECLINED;
    at = passSpace(at);
  } while (load<u8>(at) == 0x2c);
  return load<u8>(at) == 0x7d ? at + 1 : DECLINED;
}

/** End of the key that was passed last, without its quote. */
let keyEnd: i32 = 0;

/** @returns the address of its value. */
export function passKey(from: i32): i32 {
  if (load<u8>(from) != 0x22) return DECLINED;
  const end = passText(from);
  if (end == DECLINED || !isPlain) return DECLINED;
  keyEnd = end - 1;
  const colon = passSpace(end);
  return load<u8>(colon) == 0x3a ? passSpace(colon + 1) : DECLINED;
}

/** Of the key that was passed last, which began there with its quote. */
export function isKey(row: i32, start: i32): bool {
  return isRow(row, start + 1, keyEnd);
}

/** @returns `KEY_COUNT` for an unknown key. */
function keyOf(start: i32): i32 {
  let key: i32 = 0;
  while (key < KEY_COUNT && !isKey(key, start)) key++;
  return key;
}

/** A text that stays as it is: an empty one would be absent, and blanks at the ends are cut. */
export function passPlainText(from: i32): i32 {
  const end = passText(from);
  if (end == DECLINED || !isPlain || end - from == 2) return DECLINED;
  return load<u8>(from + 1) == 0x20 || load<u8>(end - 2) == 0x20 ? DECLINED : end;
}

/** The value of a key. One of ours must not be there twice, and null is absent. */
function readField(key: i32, from: i32): i32 {
  if (key == KEY_COUNT) return passValue(from, 1);
  if (startOf(key) != 0) return DECLINED;
  const first = load<u8>(from);
  if (first == 0x6e) return passValue(from, 1);
  if (key == PROPERTIES) {
    if (first != 0x7b) return DECLINED;
    const end = passKeptValue(from);
    setField(key, from, end);
    return end;
  }
  if (first != 0x22 || key == ORIGINAL_TIMESTAMP) return DECLINED;
  const end = passPlainText(from);
  if (end != DECLINED) setField(key, from + 1, end - 1);
  return end;
}

function setField(key: i32, start: i32, end: i32): void {
  store<i32>(fields + key * 8, start);
  store<i32>(fields + key * 8, end, 4);
}

export function startOf(key: i32): i32 {
  return load<i32>(fields + key * 8);
}

export function endOf(key: i32): i32 {
  return load<i32>(fields + key * 8, 4);
}

export function sizeOf(key: i32): i32 {
  return endOf(key) - startOf(key);
}
