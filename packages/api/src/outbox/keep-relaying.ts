/**
 * When the outbox is looked at: often while it has something to tell or a call of this process may have put something
 * in, seldom while nothing happens. The seldom looks find what another process put in before it died. Before:
 * `outbox-relay.ts`.
 */
import type { Logger } from '@sluice/platform/process/logger';
import { repeat } from '@sluice/platform/process/repeat';

export interface RelayTimes {
  readonly intervalMs: number;
  /** After `EMPTY_LOOKS_MAX` looks that found nothing. */
  readonly seldomIntervalMs: number;
}

export interface RelayKeeper {
  /** Something was changed by this process: the next look is soon. Costs nothing where it is anyway. */
  noteChange(): void;
  /** Waits for the look under way. */
  stop(): Promise<void>;
}

const TIMES: RelayTimes = { intervalMs: 500, seldomIntervalMs: 2_000 };
const EMPTY_LOOKS_MAX = 4;

/** @param relay - tells what is due and returns how many entries that were. */
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
