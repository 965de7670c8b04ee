/**
 * Track calls, from the bytes that came to the operations that go, without a value in between.
 *
 * AssemblyScript, not TypeScript: `npm run assembly` compiles it to `skim-track.wasm`, which
 * `intake/src/track-skimmer.ts` loads. It reads by 16 bytes and makes no garbage: 0.6 µs for a call for which
 * decoding, `JSON.parse` and `JSON.stringify` take 4.3 (benchmarks/README.md, "intake").
 *
 * Positions are addresses in memory; they are handed on as values, since a global one costs as much again.
 * A function that passes something returns where it ends, or `DECLINED`.
 *
 * What it trades away: it is a second reader of what `domain/src/pipelines.ts` reads. So it understands
 * plain calls only and declines all others, which then go that other way: every fault, every warning,
 * every rare form. Where it does not decline, both must give the same operation;
 * `test/track-skimmer.test.ts` holds them side by side.
 *
 * Before: `intake/src/track-skimmer.ts`, which calls it. After: `intake/src/commit-group.ts`.
 */

const ITEM_COUNT_MAX: i32 = 2_500;
/** What an operation has beside what is copied from its call is less. */
const OPERATION_SIZE_BYTES_MAX: i32 = 512;
const BODY_SIZE_BYTES_MAX: i32 = 1_048_576;
/** Sixteen bytes are read and written at once, also at the end. */
const SLACK_SIZE_BYTES: i32 = 64;
const ROW_SIZE_BYTES: i32 = 256;
const ROW_COUNT: i32 = 48;
const RESULT_SIZE_BYTES: i32 = 12;
const ULID_SIZE_BYTES: i32 = 26;
const ID_ROOM_SIZE_BYTES: i32 = 32;

export const input: i32 = <i32>memory.data(BODY_SIZE_BYTES_MAX + SLACK_SIZE_BYTES);
export const output: i32 = <i32>(
  memory.data(BODY_SIZE_BYTES_MAX + ITEM_COUNT_MAX * OPERATION_SIZE_BYTES_MAX + SLACK_SIZE_BYTES)
);
/** Of each operation three integers: its shard, where it begins in memory, where it ends. */
export const results: i32 = <i32>memory.data(ITEM_COUNT_MAX * RESULT_SIZE_BYTES);
/** The ULID of the next event that comes without an id. */
export const nextId: i32 = <i32>memory.data(ID_ROOM_SIZE_BYTES);
/** Rows of ASCII, each behind its length (an integer). `track-skimmer.ts` fills it, in the order below. */
export const table: i32 = <i32>memory.data(ROW_COUNT * ROW_SIZE_BYTES);

// The keys of a call, as the table and `fields` have them.
const USER_ID: i32 = 0;
const ANONYMOUS_ID: i32 = 1;
const EVENT: i32 = 2;
const TIMESTAMP: i32 = 3;
const MESSAGE_ID: i32 = 4;
const TYPE: i32 = 5;
const PROPERTIES: i32 = 6;
const ORIGINAL_TIMESTAMP: i32 = 7;
const KEY_COUNT: i32 = 8;
// What else is looked for.
const BATCH: i32 = 8;
const TRACK: i32 = 9;
// An operation's pieces.
const BEFORE_ENVIRONMENT_ID: i32 = 10;
const BEFORE_RECEIVED_AT: i32 = 11;
const BEFORE_ID: i32 = 12;
const BEFORE_EMAIL: i32 = 13;
const BEFORE_LONE_ANONYMOUS_ID: i32 = 14;
const BEFORE_ANONYMOUS_ID: i32 = 15;
const AFTER_ANONYMOUS_ID: i32 = 16;
const BEFORE_EVENT_ID: i32 = 17;
const BEFORE_NAME: i32 = 18;
const BEFORE_DATA: i32 = 19;
const NO_DATA: i32 = 20;
const BEFORE_OCCURRED_AT: i32 = 21;
const END_OF_CALL: i32 = 22;
const END_OF_ITEM: i32 = 23;
/** The events that mean more than themselves, up to an empty row. */
const COMMANDS: i32 = 24;

// `domain/src/limits.ts`.
const ID_SIZE_BYTES_MAX: i32 = 150;
const EMAIL_SIZE_BYTES_MAX: i32 = 254;
const NAME_SIZE_BYTES_MAX: i32 = 100;
const ITEM_SIZE_BYTES_MAX: i32 = 65_536;

/** Well within what a call may have. */
const DEPTH_MAX: i32 = 64;
/** With so many digits and no exponent a number is finite. */
const NUMBER_SIZE_BYTES_MAX: i32 = 24;

const DECLINED: i32 = 0;

/** Of the text that was passed last: ASCII without escapes. */
let isPlain: bool = false;
/** Within properties, where a text that is an instant has to become a number. */
let isKept: bool = false;
/** Of each key two integers: where its value begins and ends, texts without their quotes; 0 where it is absent. */
const fields: i32 = <i32>memory.data(KEY_COUNT * 8);

/** @returns how many operations it is: 1, or 0 where it is declined. */
export function skimCall(
  sizeBytes: i32,
  environmentId: f64,
  receivedAtMs: f64,
  shardCount: i32,
): i32 {
  const end = readCall(begin(sizeBytes));
  if (end == DECLINED || passSpace(end) != input + sizeBytes) return 0;
  const written = writeOperation(output, 0, environmentId, receivedAtMs, shardCount, END_OF_CALL);
  return written == DECLINED ? 0 : 1;
}

/** @returns how many operations it is, one an item; 0 where a single one is declined. */
export function skimBatch(
  sizeBytes: i32,
  environmentId: f64,
  receivedAtMs: f64,
  shardCount: i32,
): i32 {
  let at = begin(sizeBytes);
  let to = output;
  let count: i32 = 0;
  if (load<u8>(at) != 0x7b) return 0;
  do {
    const start = passSpace(at + 1);
    at = passKey(start);
    if (at == DECLINED) return 0;
    if (!isKey(BATCH, start)) {
      at = passValue(at, 1);
      if (at == DECLINED) return 0;
    } else {
      if (count > 0 || load<u8>(at) != 0x5b) return 0;
      do {
        const item = passSpace(at + 1);
        at = readCall(item);
        if (at == DECLINED || count == ITEM_COUNT_MAX || at - item > ITEM_SIZE_BYTES_MAX) return 0;
        if (!isRow(TRACK, startOf(TYPE), endOf(TYPE))) return 0;
        to = writeOperation(to, count, environmentId, receivedAtMs, shardCount, END_OF_ITEM);
        if (to == DECLINED) return 0;
        count++;
        at = passSpace(at);
      } while (load<u8>(at) == 0x2c);
      if (load<u8>(at++) != 0x5d) return 0;
    }
    at = passSpace(at);
  } while (load<u8>(at) == 0x2c);
  return load<u8>(at) == 0x7d && passSpace(at + 1) == input + sizeBytes ? count : 0;
}

/** @returns where the body begins. Behind its end is then what no JSON has there. */
function begin(sizeBytes: i32): i32 {
  store<u8>(input + sizeBytes, 0);
  return passSpace(input);
}

// A call.

/** Notes its fields. */
function readCall(from: i32): i32 {
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

/** Where the key ends that was passed last, without its quote. */
let keyEnd: i32 = 0;

/** @returns where its value begins. */
function passKey(from: i32): i32 {
  if (load<u8>(from) != 0x22) return DECLINED;
  const end = passText(from);
  if (end == DECLINED || !isPlain) return DECLINED;
  keyEnd = end - 1;
  const colon = passSpace(end);
  return load<u8>(colon) == 0x3a ? passSpace(colon + 1) : DECLINED;
}

/** Of the key that was passed last, which began there with its quote. */
function isKey(row: i32, start: i32): bool {
  return isRow(row, start + 1, keyEnd);
}

/** @returns `KEY_COUNT` for one that is none of ours. */
function keyOf(start: i32): i32 {
  let key: i32 = 0;
  while (key < KEY_COUNT && !isKey(key, start)) key++;
  return key;
}

/** The value of a key. One of ours must not be there twice, and null is absent. */
function readField(key: i32, from: i32): i32 {
  if (key == KEY_COUNT) return passValue(from, 1);
  if (startOf(key) != 0) return DECLINED;
  const first = load<u8>(from);
  if (first == 0x6e) return passValue(from, 1);
  if (key == PROPERTIES) {
    if (first != 0x7b) return DECLINED;
    isKept = true;
    const end = passValue(from, 1);
    isKept = false;
    setField(key, from, end);
    return end;
  }
  if (first != 0x22 || key == ORIGINAL_TIMESTAMP) return DECLINED;
  const end = passText(from);
  // An empty or blank one would be absent.
  if (end == DECLINED || !isPlain || end - from == 2 || load<u8>(from + 1) == 0x20) return DECLINED;
  setField(key, from + 1, end - 1);
  return end;
}

function setField(key: i32, start: i32, end: i32): void {
  store<i32>(fields + key * 8, start);
  store<i32>(fields + key * 8, end, 4);
}

function startOf(key: i32): i32 {
  return load<i32>(fields + key * 8);
}

function endOf(key: i32): i32 {
  return load<i32>(fields + key * 8, 4);
}

function sizeOf(key: i32): i32 {
  return endOf(key) - startOf(key);
}

/** Writes the operation of the call whose fields are noted, and its result. */
function writeOperation(
  from: i32,
  index: i32,
  environmentId: f64,
  receivedAtMs: f64,
  shardCount: i32,
  ending: i32,
): i32 {
  const isKnown = startOf(USER_ID) != 0;
  const isSeen = startOf(ANONYMOUS_ID) != 0;
  const person = isKnown ? USER_ID : ANONYMOUS_ID;
  const beforePerson = isKnown ? rowBeforeUser() : BEFORE_LONE_ANONYMOUS_ID;
  if (beforePerson == DECLINED || !(isKnown || isSeen) || !isPlainName()) return DECLINED;
  if (sizeOf(ANONYMOUS_ID) > ID_SIZE_BYTES_MAX) return DECLINED;
  // As long as a ULID: it may be one, in lower case.
  const eventIdSizeBytes = sizeOf(MESSAGE_ID);
  if (eventIdSizeBytes > ID_SIZE_BYTES_MAX || eventIdSizeBytes == ULID_SIZE_BYTES) return DECLINED;
  const receivedAt = <i64>receivedAtMs;
  const occurredAt = startOf(TIMESTAMP) == 0 ? receivedAt : readInstantMs();
  if (occurredAt < 0) return DECLINED;

  let to = writeRow(from, BEFORE_ENVIRONMENT_ID);
  to = writeInteger(to, <i64>environmentId);
  to = writeRow(to, BEFORE_RECEIVED_AT);
  to = writeInteger(to, receivedAt);
  to = writeRow(to, beforePerson);
  to = writeField(to, person);
  if (isKnown && isSeen) {
    to = writeRow(to, BEFORE_ANONYMOUS_ID);
    to = writeField(to, ANONYMOUS_ID);
    to = writeRow(to, AFTER_ANONYMOUS_ID);
  } else {
    to = writeRow(to, BEFORE_EVENT_ID);
  }
  if (eventIdSizeBytes > 0) {
    to = writeField(to, MESSAGE_ID);
  } else {
    to = copy(to, nextId, ULID_SIZE_BYTES);
    advanceId();
  }
  to = writeRow(to, BEFORE_NAME);
  to = writeField(to, EVENT);
  to = writeRow(to, BEFORE_DATA);
  to = startOf(PROPERTIES) == 0 ? writeRow(to, NO_DATA) : writeField(to, PROPERTIES);
  to = writeRow(to, BEFORE_OCCURRED_AT);
  to = writeInteger(to, occurredAt);
  to = writeRow(to, ending);

  const result = results + index * RESULT_SIZE_BYTES;
  store<i32>(
    result,
    shardOf(<u32>(<i64>environmentId), person, beforePerson == BEFORE_EMAIL, shardCount),
  );
  store<i32>(result, from, 4);
  store<i32>(result, to, 8);
  return to;
}

/** As `recognisePerson` tells them apart. Declined is what may be a svc_id, and an email of rare characters. */
function rowBeforeUser(): i32 {
  const start = startOf(USER_ID);
  const end = endOf(USER_ID);
  let at = start;
  while (at < end && load<u8>(at) != 0x40) at++;
  if (at < end) {
    return end - start <= EMAIL_SIZE_BYTES_MAX && isPlainEmail(start, at, end)
      ? BEFORE_EMAIL
      : DECLINED;
  }
  return end - start <= ID_SIZE_BYTES_MAX && load<u8>(start + 3) != 0x5f ? BEFORE_ID : DECLINED;
}

/** Letters, digits and `.+-_`, before `at` and behind it labels of letters, digits and `-`, the last of two or more. */
function isPlainEmail(start: i32, at: i32, end: i32): bool {
  if (at == start) return false;
  for (let index = start; index < at; index++) {
    const byte = load<u8>(index);
    if (!isLabelByte(byte) && byte != 0x2e && byte != 0x2b && byte != 0x5f) return false;
  }
  let label = at + 1;
  for (let index = label; index < end; index++) {
    const byte = load<u8>(index);
    if (byte == 0x2e) {
      if (index == label) return false;
      label = index + 1;
    } else if (!isLabelByte(byte)) {
      return false;
    }
  }
  return label > at + 1 && end - label >= 2;
}

function isLabelByte(byte: u8): bool {
  return <u8>((byte | 0x20) - 0x61) < 26 || <u8>(byte - 0x30) < 10 || byte == 0x2d;
}

/** Nothing to be trimmed, and an event that is nothing else. */
function isPlainName(): bool {
  const start = startOf(EVENT);
  const end = endOf(EVENT);
  if (start == 0 || end - start > NAME_SIZE_BYTES_MAX || load<u8>(end - 1) == 0x20) return false;
  for (let row = COMMANDS; rowSizeOf(row) > 0; row++) if (isRow(row, start, end)) return false;
  return true;
}

/** `2026-11-20T10:00:00.123Z` or without the fraction, from 1970 on; else negative. */
function readInstantMs(): i64 {
  const start = startOf(TIMESTAMP);
  const sizeBytes = sizeOf(TIMESTAMP);
  if ((sizeBytes != 24 && sizeBytes != 20) || load<u8>(endOf(TIMESTAMP) - 1) != 0x5a) return -1;
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

// As in `domain/src/timestamps.ts`.

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

/** A number of so many digits; negative where one is none. */
function digitsAt(start: i32, count: i32): i32 {
  let number: i32 = 0;
  for (let index = start; index < start + count; index++) {
    const digit: i32 = <i32>load<u8>(index) - 0x30;
    if (digit < 0 || digit > 9) return -1;
    number = number * 10 + digit;
  }
  return number;
}

/** As in `domain/src/shard.ts`; of a unit of ASCII the high byte is 0. */
function shardOf(environmentId: u32, person: i32, isEmail: bool, shardCount: i32): i32 {
  let hash: u32 = 0x811c9dc5;
  for (let shift: u32 = 0; shift < 32; shift += 8) {
    hash = (hash ^ ((environmentId >> shift) & 0xff)) * 0x01000193;
  }
  for (let index = startOf(person); index < endOf(person); index++) {
    let byte = load<u8>(index);
    // In lower case.
    if (isEmail && <u8>(byte - 0x41) < 26) byte |= 0x20;
    hash = (hash ^ <u32>byte) * 0x01000193 * 0x01000193;
  }
  hash = (hash ^ (hash >> 16)) * 0x85ebca6b;
  hash = (hash ^ (hash >> 13)) * 0xc2b2ae35;
  hash ^= hash >> 16;
  return <i32>(hash % <u32>shardCount);
}

// Writing: each returns where it ends.

function writeField(to: i32, key: i32): i32 {
  return copy(to, startOf(key), sizeOf(key));
}

function rowSizeOf(row: i32): i32 {
  return load<i32>(table + row * ROW_SIZE_BYTES);
}

function writeRow(to: i32, row: i32): i32 {
  return copy(to, table + row * ROW_SIZE_BYTES + 4, rowSizeOf(row));
}

function isRow(row: i32, start: i32, end: i32): bool {
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

/** Sixteen at a time, and so up to fifteen too many, which the next overwrites: half of what `memory.copy` takes for a few. */
function copy(to: i32, from: i32, sizeBytes: i32): i32 {
  for (let index = 0; index < sizeBytes; index += 16) {
    v128.store(to + index, v128.load(from + index));
  }
  return to + sizeBytes;
}

const BILLION: i64 = 1_000_000_000;

/** Not negative. In two halves, because to divide 64 bits takes several times as long. */
function writeInteger(to: i32, value: i64): i32 {
  const high = <u32>(value / BILLION);
  const low = <u32>(value - <i64>high * BILLION);
  if (high == 0) return writeDigits(to, low, digitCountOf(low));
  return writeDigits(writeDigits(to, high, digitCountOf(high)), low, 9);
}

function digitCountOf(value: u32): i32 {
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

/** One more, in Crockford's base 32, which leaves out I, L, O and U. */
function advanceId(): void {
  let at = nextId + ULID_SIZE_BYTES - 1;
  for (; load<u8>(at) == 0x5a; at--) store<u8>(at, 0x30);
  let digit = load<u8>(at) + 1;
  if (digit == 0x3a) digit = 0x41;
  else if (digit == 0x49 || digit == 0x4c || digit == 0x4f || digit == 0x55) digit++;
  store<u8>(at, digit);
}

// JSON (RFC 8259).

function passSpace(from: i32): i32 {
  let at = from;
  for (let byte = load<u8>(at); byte <= 0x20; byte = load<u8>(++at)) {
    if (byte != 0x20 && byte != 0x0a && byte != 0x0d && byte != 0x09) return at;
  }
  return at;
}

function passValue(from: i32, depth: i32): i32 {
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

/** Without its exponent, which nothing takes that comes after it. */
function passNumber(from: i32): i32 {
  let at = load<u8>(from) == 0x2d ? from + 1 : from;
  const end = passDigits(at);
  if (end == at || (load<u8>(at) == 0x30 && end > at + 1)) return DECLINED;
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

/** What might be an instant (`parseIsoMs`) is declined where it would be converted. */
function passTextValue(from: i32): i32 {
  const end = passText(from);
  const sizeBytes = end - from - 2;
  if (!isKept || sizeBytes < 16 || sizeBytes > 35) return end;
  return load<u8>(from + 5) == 0x2d && load<u8>(from + 8) == 0x2d && load<u8>(from + 11) == 0x54
    ? DECLINED
    : end;
}

/** From a quote to behind the next. `\u` is declined: it may be a text that Postgres refuses. */
function passText(from: i32): i32 {
  isPlain = true;
  let at = from + 1;
  while (true) {
    const bytes = v128.load(at);
    // As signed bytes what is not ASCII is negative.
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

/** One character of UTF-8 beyond ASCII (so no control character is), as RFC 3629 has it: nothing overlong, no surrogate, none beyond U+10FFFF. */
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
