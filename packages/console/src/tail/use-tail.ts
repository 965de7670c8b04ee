/**
 * Reads the live tail for a screen. New lines are counted at once and drawn ten times a second at most. A page that is
 * hidden for a minute lets its connection go, since a browser has six for a host; a row shows that the lines meanwhile
 * are not known. A broken connection is made again; one that is refused is tried at the time that the API gives.
 */
import { useEffect, useMemo, useState } from 'react';
import type { Call } from '../client/call.ts';
import { getStream } from '../client/calls.ts';
import type { QueryOf } from '../client/operations.ts';
import { RequestFailed } from '../client/request.ts';
import { noteSignedOut } from '../client/resource.ts';
import { readServerEvents, type ServerEvent } from '../client/server-events.ts';
import { useSession } from '../client/session.ts';
import type { LastMinute } from './last-minute.ts';
import { TailBuffer, type TailCounts } from './tail-buffer.ts';
import type { DroppedLines, TailLine, TailRow } from './tail-line.ts';

const DRAWN_INTERVAL_MS = 100;
const SHOWN_COUNT = 200;
const HIDDEN_FOR_MS = 60_000;
const RETRY_MS = 1_000;

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
  const { isOpen, failure } = connection?.buffer === buffer ? connection : NOT_OPEN;

  useEffect(() => {
    setCounts(buffer.counts());
    return readWhileSeen({
      call,
      workspaceId,
      buffer,
      onState: (open, failed) => setConnection({ buffer, isOpen: open, failure: failed }),
    });
  }, [buffer, call.key, workspaceId]);

  useEffect(() => {
    let seen = buffer.counts();
    if (!isPaused) setDrawn({ buffer, rows: buffer.latest(SHOWN_COUNT) });
    const timer = setInterval(() => {
      const now = buffer.counts();
      if (now.lineCount === seen.lineCount && now.droppedCount === seen.droppedCount) return;
      seen = now;
      setCounts(now);
      if (!isPaused) setDrawn({ buffer, rows: buffer.latest(SHOWN_COUNT) });
    }, DRAWN_INTERVAL_MS);
    return () => clearInterval(timer);
  }, [buffer, isPaused]);

  return {
    ...counts,
    rows,
    lines: rows.filter((row) => row.kind !== 'dropped'),
    isOpen,
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
  readonly isOpen: boolean;
  readonly failure: RequestFailed | undefined;
}

const NOT_OPEN = { isOpen: false, failure: undefined };

interface Reading {
  readonly call: Call<ReadableStream<Uint8Array<ArrayBuffer>>>;
  readonly workspaceId: number;
  readonly buffer: TailBuffer;
  readonly onState: (isOpen: boolean, failure?: RequestFailed) => void;
}

/** @returns ends it. */
function readWhileSeen({ call, workspaceId, buffer, onState }: Reading): () => void {
  let reading: AbortController | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let hiding: ReturnType<typeof setTimeout> | undefined;

  const stop = (): void => {
    clearTimeout(retry);
    reading?.abort();
    reading = undefined;
  };
  const hide = (): void => {
    stop();
    onState(false);
  };
  const start = (isAgain: boolean): void => {
    const own = new AbortController();
    reading = own;
    const ended = (error?: unknown): void => {
      if (own.signal.aborted) return;
      const failure = error instanceof RequestFailed ? error : undefined;
      onState(false, failure);
      // A session that is over does not come back by itself, and its lines do not stay on the screen.
      if (failure?.status === 401) return noteSignedOut();
      retry = setTimeout(
        () => start(true),
        Math.max(RETRY_MS, (failure?.retryAfterSeconds ?? 0) * 1000),
      );
    };
    const opened = (): void => {
      buffer.open(Date.now());
      onState(true);
      if (isAgain) buffer.add([{ kind: 'dropped', count: null }]);
    };
    readServerEvents(call, workspaceId, own.signal, opened, (events) =>
      buffer.add(events.flatMap(rowOf)),
    ).then(() => ended(), ended);
  };
  const onVisibility = (): void => {
    clearTimeout(hiding);
    if (document.visibilityState === 'hidden') hiding = setTimeout(hide, HIDDEN_FOR_MS);
    else if (!reading) start(true);
  };

  start(false);
  document.addEventListener('visibilitychange', onVisibility);
  return () => {
    document.removeEventListener('visibilitychange', onVisibility);
    clearTimeout(hiding);
    stop();
  };
}

function rowOf({ type, data }: ServerEvent): (TailLine | DroppedLines)[] {
  if (type === 'dropped') {
    const { count } = JSON.parse(data) as { count: number | null };
    return [{ kind: 'dropped', count }];
  }
  return [JSON.parse(data) as TailLine];
}
