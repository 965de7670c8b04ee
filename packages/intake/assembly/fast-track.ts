/**
 * Writes operations from the bytes of track calls, without values in between.
 *
 * AssemblyScript, not TypeScript: `npm run assembly` compiles it to `fast-track.wasm`, which
 * `intake/src/groups/fast-track-parser.ts` loads. It reads by 16 bytes and makes no garbage, so it is faster than decoding,
 * `JSON.parse` and `JSON.stringify` (benchmarks/README.md, "intake"). Positions are addresses in memory and are passed as
 * values, since a global one costs as much again. A function that passes something returns the address of its end, or `DECLINED`.
 *
 * The trade-off is a second reader beside `domain/src/pipelines/pipelines.ts`. It understands simple calls only and declines
 * every other form, such as each fault and each warning; the slow path reads those calls. Both readers must give the same
 * operation for an accepted call, which `test/groups/fast-track-parser.test.ts` checks.
 * Before: `intake/src/groups/fast-track-parser.ts`, which calls it. After: `intake/src/groups/commit-group.ts`.
 */

import { DECLINED, passSpace, passValue } from './pass-json';
import { endOf, isKey, passKey, passPlainText, readCall, startOf } from './read-call';
import { BATCH, END_OF_CALL, END_OF_ITEM, isRow, SENT_AT, TRACK, TYPE } from './rows';
import {
  correctTimes,
  OPERATION_COUNT_MAX,
  OPERATION_SIZE_BYTES_MAX,
  writeOperation,
} from './write-operation';

export { table } from './rows';
export { nextId, results } from './write-operation';

const BODY_SIZE_BYTES_MAX: i32 = 1_048_576;
/** Sixteen bytes are read and written at once, also at the end. */
const SLACK_SIZE_BYTES: i32 = 64;
// `domain/src/operations/limits.ts`.
const ITEM_SIZE_BYTES_MAX: i32 = 65_536;

export const input: i32 = <i32>memory.data(BODY_SIZE_BYTES_MAX + SLACK_SIZE_BYTES);
export const output: i32 = <i32>(
  memory.data(
    BODY_SIZE_BYTES_MAX + OPERATION_COUNT_MAX * OPERATION_SIZE_BYTES_MAX + SLACK_SIZE_BYTES,
  )
);

/** @returns the number of its operations: 1, or 0 if it is declined. */
export function parseCall(sizeBytes: i32, environmentId: f64, receivedAtMs: f64): i32 {
  const end = readCall(begin(sizeBytes));
  if (end == DECLINED || passSpace(end) != input + sizeBytes) return 0;
  const written = writeOperation(output, 0, environmentId, receivedAtMs, END_OF_CALL);
  return written == DECLINED ? 0 : 1;
}

/** @returns the number of its operations, one an item; 0 if a single item is declined. */
export function parseBatch(sizeBytes: i32, environmentId: f64, receivedAtMs: f64): i32 {
  let at = begin(sizeBytes);
  let to = output;
  let count: i32 = 0;
  let sentAt: i32 = 0;
  let sentAtEnd: i32 = 0;
  if (load<u8>(at) != 0x7b) return 0;
  do {
    const start = passSpace(at + 1);
    at = passKey(start);
    if (at == DECLINED) return 0;
    if (isKey(SENT_AT, start)) {
      // Twice, or another than a plain text.
      if (sentAt != 0 || load<u8>(at) != 0x22) return 0;
      sentAt = at + 1;
      at = passPlainText(at);
      if (at == DECLINED) return 0;
      sentAtEnd = at - 1;
    } else if (!isKey(BATCH, start)) {
      at = passValue(at, 1);
      if (at == DECLINED) return 0;
    } else {
      if (count > 0 || load<u8>(at) != 0x5b) return 0;
      do {
        const item = passSpace(at + 1);
        at = readCall(item);
        if (at == DECLINED || count == OPERATION_COUNT_MAX || at - item > ITEM_SIZE_BYTES_MAX)
          return 0;
        if (!isRow(TRACK, startOf(TYPE), endOf(TYPE))) return 0;
        to = writeOperation(to, count, environmentId, receivedAtMs, END_OF_ITEM);
        if (to == DECLINED) return 0;
        count++;
        at = passSpace(at);
      } while (load<u8>(at) == 0x2c);
      if (load<u8>(at++) != 0x5d) return 0;
    }
    at = passSpace(at);
  } while (load<u8>(at) == 0x2c);
  if (load<u8>(at) != 0x7d || passSpace(at + 1) != input + sizeBytes) return 0;
  return sentAt == 0 || correctTimes(count, sentAt, sentAtEnd, receivedAtMs) ? count : 0;
}

/** Puts a byte behind the end of the body that JSON never has there. @returns the address of its first character. */
function begin(sizeBytes: i32): i32 {
  store<u8>(input + sizeBytes, 0);
  return passSpace(input);
}
