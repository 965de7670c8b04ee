/**
 * Times of the looks into the outbox. Looks are frequent while it has entries to send or a call of this process may
 * have added one, and rare otherwise. The rare looks find the entries of a process that died. Before:
 * `outbox-relay.ts`.
 */
import type { Logger } from '@sluice/platform/process/logger';
import { repeat } from '@sluice/platform/process/repeat';

export interface RelayTimes {
  readonly intervalMs: number;
  /** After `EMPTY_LOOKS_MAX` looks without a due entry. */
  readonly seldomIntervalMs: number;
}

export interface RelayKeeper {
  /** This process has made a change: the next look is soon. It costs no extra look if one is due anyway. */
  noteChange(): void;
  /** Waits for the look under way. */
  stop(): Promise<void>;
}

const TIMES: RelayTimes = { intervalMs: 500, seldomIntervalMs: 2_000 };
const EMPTY_LOOKS_MAX = 4;

/** @param relay - sends due entries and returns their number. */
export function keepRelaying(
  relay: () => Promise<number>,
  logger: Logger,
  { intervalMs, seldomIntervalMs }: RelayTimes = TIMES,
): RelayKeeper {
  let emptyLooks = 0;
  const isSeldom = (): boolean => emptyLooks >= EMPTY_LOOKS_MAX;
  const looks = repeat(
    'outbox',
    () => (isSeldom() ? seldomIntervalMs : intervalMs),
    logger,
    async () => {
      emptyLooks++;
      if ((await relay()) > 0) emptyLooks = 0;
    },
  );
  return {
    noteChange() {
      const wasSeldom = isSeldom();
      emptyLooks = 0;
      if (wasSeldom) looks.wake();
    },
    stop: () => looks.stop(),
  };
}
