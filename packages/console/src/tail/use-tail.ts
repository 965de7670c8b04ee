/** Reads the live tail for a screen. New lines are counted at once and drawn now and then. */
import { useEffect, useMemo, useState } from 'react';
import { getStream } from '../client/calls.ts';
import type { QueryOf } from '../client/operations.ts';
import type { RequestFailed } from '../client/request.ts';
import { useSession } from '../client/session.ts';
import type { LastMinute } from './last-minute.ts';
import { type DrawEffects, drawNowAndThen } from './draw-now-and-then.ts';
import { readWhileSeen, type TailState } from './read-while-seen.ts';
import { TailBuffer, type TailCounts } from './tail-buffer.ts';
import type { TailLine, TailRow } from './tail-line.ts';

const SHOWN_COUNT = 200;

const IN_BROWSER: DrawEffects = {
  now: () => performance.now(),
  // The frame is painted after its callbacks. Frames of a hidden page come once it is shown.
  afterPaint: (run) => void requestAnimationFrame(() => void setTimeout(run)),
  after: (delayMs, run) => {
    const timer = setTimeout(run, delayMs);
    return () => clearTimeout(timer);
  },
};

/** Shown by a screen whose tail waits. */
export const WAITS_FOR_TAB =
  'Four tabs of this browser read live calls, which is the most at a time. This tab goes on when one of them is hidden or closed.';

type Asked = QueryOf<'/v1/stream'>;
/** Texts of the address; an empty one is no filter. */
export type TailFilter = {
  readonly [Name in keyof Asked]: (Name extends 'webhook_id' ? string : Asked[Name]) | undefined;
};

export interface TailView extends TailCounts {
  /** Newest first; 200 at most. */
  readonly rows: readonly TailRow[];
  readonly lines: readonly TailLine[];
  readonly isOpen: boolean;
  /** For another tab (`WAITS_FOR_TAB`). */
  readonly isWaiting: boolean;
  readonly failure: RequestFailed | undefined;
  readonly clear: () => void;
  readonly all: () => readonly TailRow[];
  readonly lastMinute: (nowMs: number) => LastMinute;
}

/** @param isPaused - new lines are not drawn; they are read and counted all the same. */
export function useTail({
  filter = {},
  isPaused,
}: {
  readonly filter?: TailFilter;
  readonly isPaused: boolean;
}): TailView {
  const { workspaceId } = useSession();
  const call = getStream('/v1/stream', {
    query: Object.fromEntries(Object.entries(filter).filter(([, value]) => value)),
  });
  const buffer = useMemo(() => new TailBuffer(), [workspaceId, call.key]);
  const [drawn, setDrawn] = useState<Drawn>({ buffer, rows: [] });
  // Also while it is paused: rows that another filter drew are no rows of this one.
  const rows = drawn.buffer === buffer ? drawn.rows : NO_ROWS;
  const [counts, setCounts] = useState(() => buffer.counts());
  const [connection, setConnection] = useState<Connection>();
  // A connection of another filter does not belong to this one, which is not open until its own stands.
  const { state, failure } = connection?.buffer === buffer ? connection : NOT_OPEN;

  useEffect(() => {
    setCounts(buffer.counts());
    return readWhileSeen({
      call,
      workspaceId,
      buffer,
      onState: (next, failed) => setConnection({ buffer, state: next, failure: failed }),
    });
  }, [buffer, call.key, workspaceId]);

  useEffect(() => {
    let seen = buffer.lastNumber;
    if (!isPaused) setDrawn({ buffer, rows: buffer.latest(SHOWN_COUNT) });
    return drawNowAndThen(() => {
      // A row about a break whose lines are not known changes no count.
      if (buffer.lastNumber === seen) return false;
      seen = buffer.lastNumber;
      setCounts(buffer.counts());
      if (!isPaused) setDrawn({ buffer, rows: buffer.latest(SHOWN_COUNT) });
      return true;
    }, IN_BROWSER);
  }, [buffer, isPaused]);

  return {
    ...counts,
    rows,
    lines: rows.filter((row) => row.kind !== 'dropped'),
    isOpen: state === 'open',
    isWaiting: state === 'waiting',
    failure,
    all: () => buffer.all(),
    lastMinute: (nowMs) => buffer.lastMinute(nowMs),
    clear: () => {
      buffer.clear();
      setCounts(buffer.counts());
      setDrawn({ buffer, rows: [] });
    },
  };
}

interface Drawn {
  /** That the rows are of. */
  readonly buffer: TailBuffer;
  readonly rows: readonly TailRow[];
}

const NO_ROWS: readonly TailRow[] = [];

interface Connection {
  readonly buffer: TailBuffer;
  readonly state: TailState;
  readonly failure: RequestFailed | undefined;
}

const NOT_OPEN = { state: 'connecting', failure: undefined } as const;
