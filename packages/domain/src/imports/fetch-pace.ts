/**
 * The least pace of a file from a URL.
 *
 * A fetch has one of a worker's few turns. A byte each 50 s is no silence, and would keep the turn for hours. Pure.
 */

const MINUTE_MS = 60_000;
/** 1 KB a second. */
const SIZE_BYTES_A_MINUTE_MIN = 65_536;

export const FETCH_TOO_SLOW = `the server sent less than ${SIZE_BYTES_A_MINUTE_MIN} bytes of the file in a minute; put it on a faster server, or upload it`;

/** A minute of waiting for the server. Time in which the worker stores bytes is not part of it. */
export interface FetchMinute {
  /** It is not judged: a server may begin slowly. */
  readonly isFirst: boolean;
  readonly waitedMs: number;
  readonly sizeBytes: number;
}

export const FIRST_FETCH_MINUTE: FetchMinute = { isFirst: true, waitedMs: 0, sizeBytes: 0 };

/** @returns the minute after a piece; undefined if the server was too slow in a whole minute. */
export function afterPiece(
  minute: FetchMinute,
  piece: Pick<FetchMinute, 'waitedMs' | 'sizeBytes'>,
): FetchMinute | undefined {
  const waitedMs = minute.waitedMs + piece.waitedMs;
  const sizeBytes = minute.sizeBytes + piece.sizeBytes;
  if (waitedMs < MINUTE_MS) return { ...minute, waitedMs, sizeBytes };
  if (!minute.isFirst && sizeBytes < SIZE_BYTES_A_MINUTE_MIN) return undefined;
  return { isFirst: false, waitedMs: 0, sizeBytes: 0 };
}
