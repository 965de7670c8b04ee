/**
 * The kernel's bound on open files, connections among them.
 *
 * Used by `intake/src/connections/open-files.ts` and `worker/src/delivery/deliveries.ts`.
 */
import { readFileSync } from 'node:fs';

/** Infinity if it is not known: only Linux has the file. */
export function readOpenFilesMax(): number {
  try {
    const [, count] =
      /^Max open files +(\d+)/m.exec(readFileSync('/proc/self/limits', 'utf8')) ?? [];
    return count === undefined ? Infinity : Number(count);
  } catch {
    return Infinity;
  }
}
