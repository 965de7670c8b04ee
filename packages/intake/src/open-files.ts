/**
 * Bound on connections by the open files of the process. Used by `main.ts`.
 *
 * A process without a free file takes no connection, but uWebSockets.js tries without end, with all time of the event
 * loop. The connections to Postgres and Redis, and the local disk buffer, are files too. So a quarter is kept for those.
 */
import { readFileSync } from 'node:fs';

const CONNECTION_PART = 3 / 4;

/** @returns `wanted`, or less if the kernel does not allow as many files. */
export function connectionCountWithin(wanted: number): number {
  return Math.min(wanted, Math.floor(CONNECTION_PART * openFilesMax()));
}

function openFilesMax(): number {
  try {
    const [, count] =
      /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return count === undefined ? Infinity : Number(count);
  } catch {
    // Only Linux has the file.
    return Infinity;
  }
}
