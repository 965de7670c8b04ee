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

import { DECLINED, isPlain, passKeptValue, passSpace, passText, passValue } from './pass-json';
import { isPlainEmail } from './plain-email';
import { readInstantMs } from './read-instant';
import {
  AFTER_ANONYMOUS_ID,
  ANONYMOUS_ID,
  BATCH,
  BEFORE_ANONYMOUS_ID,
  BEFORE_DATA,
  BEFORE_EMAIL,
  BEFORE_ENVIRONMENT_ID,
  BEFORE_EVENT_ID,
  BEFORE_ID,
  BEFORE_LONE_ANONYMOUS_ID,
  BEFORE_NAME,
  BEFORE_OCCURRED_AT,
  BEFORE_RECEIVED_AT,
  COMMANDS,
  END_OF_CALL,
  END_OF_ITEM,
  EVENT,
  KEY_COUNT,
  MESSAGE_ID,
  NO_DATA,
  ORIGINAL_TIMESTAMP,
  PROPERTIES,
  TIMESTAMP,
  TRACK,
  TYPE,
  USER_ID,
  isRow,
  rowSizeOf,
  writeRow,
} from './rows';
import { copy, writeInteger } from './write-bytes';

export { table } from './rows';

const ITEM_COUNT_MAX: i32 = 2_500;
/** What an operation has beside what is copied from its call is less. */
const OPERATION_SIZE_BYTES_MAX: i32 = 512;
const BODY_SIZE_BYTES_MAX: i32 = 1_048_576;
/** Sixteen bytes are read and written at once, also at the end. */
const SLACK_SIZE_BYTES: i32 = 64;
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

// `domain/src/limits.ts`.
const ID_SIZE_BYTES_MAX: i32 = 150;
const EMAIL_SIZE_BYTES_MAX: i32 = 254;
const NAME_SIZE_BYTES_MAX: i32 = 100;
const ITEM_SIZE_BYTES_MAX: i32 = 65_536;

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
    const end = passKeptValue(from);
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
  const occurredAt =
    startOf(TIMESTAMP) == 0 ? receivedAt : readInstantMs(startOf(TIMESTAMP), endOf(TIMESTAMP));
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

/** Nothing to be trimmed, and an event that is nothing else. */
function isPlainName(): bool {
  const start = startOf(EVENT);
  const end = endOf(EVENT);
  if (start == 0 || end - start > NAME_SIZE_BYTES_MAX || load<u8>(end - 1) == 0x20) return false;
  for (let row = COMMANDS; rowSizeOf(row) > 0; row++) if (isRow(row, start, end)) return false;
  return true;
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

/** One more, in Crockford's base 32, which leaves out I, L, O and U. */
function advanceId(): void {
  let at = nextId + ULID_SIZE_BYTES - 1;
  for (; load<u8>(at) == 0x5a; at--) store<u8>(at, 0x30);
  let digit = load<u8>(at) + 1;
  if (digit == 0x3a) digit = 0x41;
  else if (digit == 0x49 || digit == 0x4c || digit == 0x4f || digit == 0x55) digit++;
  store<u8>(at, digit);
}
