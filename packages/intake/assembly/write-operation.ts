/**
 * Judges and writes the operation of a call, and finds its shard.
 *
 * The fields come from `read-call.ts`. A function that writes returns the address behind its last byte.
 *
 * AssemblyScript. Part of `fast-track.ts`.
 */
import { DECLINED } from './pass-json';
import { isPlainEmail } from './plain-email';
import { endOf, sizeOf, startOf } from './read-call';
import { readInstantMs } from './read-instant';
import {
  AFTER_ANONYMOUS_ID,
  ANONYMOUS_ID,
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
  EVENT,
  isRow,
  MESSAGE_ID,
  NO_DATA,
  PROPERTIES,
  rowSizeOf,
  SENT_AT,
  TIMESTAMP,
  USER_ID,
  writeRow,
} from './rows';
import { copy, digitCountOf, writeInteger } from './write-bytes';

export const OPERATION_COUNT_MAX: i32 = 2_500;
/** The parts of an operation that are not copied from its call are smaller. */
export const OPERATION_SIZE_BYTES_MAX: i32 = 512;
const RESULT_SIZE_BYTES: i32 = 20;
const ULID_SIZE_BYTES: i32 = 26;
const ID_ROOM_SIZE_BYTES: i32 = 32;

/**
 * Of each operation five integers: the hash of its person's key, the hash of the anonymous id's key (without one the first
 * again), its first address in memory, the address behind its last, the hash of its event id (0 if it came without one).
 */
export const results: i32 = <i32>memory.data(OPERATION_COUNT_MAX * RESULT_SIZE_BYTES);
/** The ULID of the next event that comes without an id. */
export const nextId: i32 = <i32>memory.data(ID_ROOM_SIZE_BYTES);

// `domain/src/operations/limits.ts`.
const ID_SIZE_BYTES_MAX: i32 = 150;
const EMAIL_SIZE_BYTES_MAX: i32 = 254;
const NAME_SIZE_BYTES_MAX: i32 = 100;

/** Writes the operation of the call whose fields are noted, and its result. */
export function writeOperation(
  from: i32,
  index: i32,
  environmentId: f64,
  receivedAtMs: f64,
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
  const isTimed = startOf(TIMESTAMP) != 0;
  let occurredAt = isTimed ? readInstantMs(startOf(TIMESTAMP), endOf(TIMESTAMP)) : receivedAt;
  if (isTimed && !isTaken(occurredAt, receivedAt)) return DECLINED;
  const isSent = startOf(SENT_AT) != 0;
  if (isTimed && isSent) {
    const sentAt = readInstantMs(startOf(SENT_AT), endOf(SENT_AT));
    if (sentAt < 0) return DECLINED;
    occurredAt += correctionOf(receivedAt - sentAt);
  }

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
  store<i32>(correctables + index * 4, isTimed && !isSent ? to : 0);
  to = writeInteger(to, occurredAt);
  to = writeRow(to, ending);

  const result = results + index * RESULT_SIZE_BYTES;
  const environment = <u32>(<i64>environmentId);
  const hash = keyHashOf(environment, person, beforePerson == BEFORE_EMAIL);
  store<u32>(result, hash);
  store<u32>(result, isKnown && isSeen ? keyHashOf(environment, ANONYMOUS_ID, false) : hash, 4);
  store<i32>(result, from, 8);
  store<i32>(result, to, 12);
  store<u32>(result, eventIdSizeBytes > 0 ? eventIdHashOf(environment) : 0, 16);
  return to;
}

/** Of each operation the address of its time, if the `sentAt` of a batch around it corrects it; else 0. */
const correctables: i32 = <i32>memory.data(OPERATION_COUNT_MAX * 4);

/**
 * Corrects the written times by the `sentAt` of the batch, which may come behind its items.
 *
 * @returns false if that is declined: the whole batch is of no use then.
 */
export function correctTimes(count: i32, start: i32, end: i32, receivedAtMs: f64): bool {
  const sentAt = readInstantMs(start, end);
  if (sentAt < 0) return false;
  const correction = correctionOf(<i64>receivedAtMs - sentAt);
  if (correction == 0) return true;
  for (let index = 0; index < count; index++) {
    const from = load<i32>(correctables + index * 4);
    if (from == 0) continue;
    let at = from;
    let occurredAt: i64 = 0;
    for (; <u32>load<u8>(at) - 0x30 <= 9; at++) {
      occurredAt = occurredAt * 10 + (<i64>load<u8>(at) - 0x30);
    }
    // The rest of the operation keeps its place. A time has another number of digits only around September 2001.
    if (digitCountOf(occurredAt) != digitCountOf(occurredAt + correction)) return false;
    writeInteger(from, occurredAt + correction);
  }
  return true;
}

const DAY_MS: i64 = 86_400_000;

/** Well within the bounds of `domain/src/value-rules/time-rule.ts`, also when it is corrected by up to a day. */
function isTaken(occurredAt: i64, receivedAt: i64): bool {
  return occurredAt >= 100_000_000_000 + DAY_MS && occurredAt <= receivedAt + 364 * DAY_MS;
}

/** By `domain/src/pipelines/clock-correction.ts`. */
function correctionOf(difference: i64): i64 {
  const size = difference < 0 ? -difference : difference;
  return size >= 1_000 && size <= DAY_MS ? difference : 0;
}

/** Distinguishes identifiers as `recognisePerson` does. It declines possible svc_ids, and emails of rare characters. */
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

/** True for the name of an event that needs no trimming and is not the name of a command. */
function isPlainName(): bool {
  const start = startOf(EVENT);
  const end = endOf(EVENT);
  if (start == 0 || end - start > NAME_SIZE_BYTES_MAX || load<u8>(end - 1) == 0x20) return false;
  for (let row = COMMANDS; rowSizeOf(row) > 0; row++) if (isRow(row, start, end)) return false;
  return true;
}

/** As in `domain/src/operations/shard.ts`; of a unit of ASCII the high byte is 0. */
function keyHashOf(environmentId: u32, person: i32, isEmail: bool): u32 {
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
  return hash;
}

/** As in `src/groups/repeated-event-ids.ts`. */
function eventIdHashOf(environmentId: u32): u32 {
  const end = endOf(MESSAGE_ID);
  let hash = environmentId ^ <u32>sizeOf(MESSAGE_ID);
  for (let index = startOf(MESSAGE_ID); index < end; index += 4) {
    let word = load<u32>(index);
    const restBytes = end - index;
    if (restBytes < 4) word &= ((<u32>1) << (<u32>restBytes * 8)) - 1;
    hash = (hash ^ word) * 0x85ebca6b;
    hash ^= hash >> 15;
  }
  return hash == 0 ? 1 : hash;
}

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
