/**
 * Shares of all streams in the event loop, the flushes and memory.
 *
 * Of one process. Made by `main.ts`; used by `stream-exchange.ts` and `take-stream.ts`.
 */
import type { Turns } from '../http/turns.ts';
import { CommitSlots } from './commit-slots.ts';
import { HeldBytes } from './held-bytes.ts';
import type { StreamOptions } from './stream-exchange.ts';
import { StreamPace } from './stream-pace.ts';

/** @param monotonicNow - milliseconds that never go back. */
export const openStreamBounds = (
  turns: Turns,
  monotonicNow: () => number,
): Pick<
  StreamOptions,
  'turns' | 'monotonicNow' | 'commitSlots' | 'waitingSlots' | 'held' | 'emptyInputPace'
> => ({
  turns,
  monotonicNow,
  commitSlots: new CommitSlots(turns),
  waitingSlots: new CommitSlots(turns),
  held: new HeldBytes(monotonicNow),
  emptyInputPace: new StreamPace(monotonicNow),
});
