/** The log of pending batches, in memory. */
import type { LoggedBatch, PendingLog } from '../../src/queue/pending-log.ts';

/** A log in memory; `added` may grow while it is read. */
export function memoryLog(added: LoggedBatch[]): PendingLog & { removed: string[] } {
  const removed: string[] = [];
  const left = () => added.filter(({ logId }) => !removed.includes(logId));
  return {
    removed,
    async read(after, count) {
      const from = after === undefined ? 0 : Number(after.split('-')[0]) + 1;
      const entries = left().filter(({ logId }) => Number(logId.split('-')[0]) >= from);
      return { entries: entries.slice(0, count), firstLogId: left()[0]?.logId };
    },
    async remove(logIds) {
      removed.push(...logIds);
    },
  };
}

/** The batch at a place of the log, named after it: `b1`. */
export const batch = (
  place: number,
  shard: number,
  keys: number[],
  flushId?: string,
): LoggedBatch => ({
  id: `b${place}`,
  logId: `${place}-0`,
  shard,
  flushId,
  flushPlace: { major: 0, minor: place },
  keys: Uint32Array.from(keys),
  isOrderFree: false,
});
