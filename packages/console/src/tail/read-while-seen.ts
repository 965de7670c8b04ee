/**
 * Reads the live tail into a buffer while its page is seen.
 *
 * A page that is hidden for a minute lets its connection go, or at once if another tab waits for a place
 * (`tail-places.ts`). A page that is opened in the background begins when it is shown. A row shows that the lines of a
 * break are not known. A broken connection is made again; one that is refused is tried at the time that the API gives.
 */
import type { Call } from '../client/call.ts';
import { RequestFailed } from '../client/request.ts';
import { readServerEvents, type ServerEvent } from '../client/server-events.ts';
import type { TailBuffer } from './tail-buffer.ts';
import type { DroppedLines, TailLine } from './tail-line.ts';
import { isPlaceAwaited, takePlace, watchAwaited } from './tail-places.ts';

const HIDDEN_FOR_MS = 60_000;
const RETRY_MS = 1_000;

/** `waiting`: for another tab of this browser to give its place back. */
export type TailState = 'connecting' | 'waiting' | 'open';

interface Reading {
  readonly call: Call<ReadableStream<Uint8Array<ArrayBuffer>>>;
  readonly workspaceId: number;
  readonly buffer: TailBuffer;
  readonly onState: (state: TailState, failure?: RequestFailed) => void;
}

const isHidden = (): boolean => document.visibilityState === 'hidden';

/** @returns ends it. */
export function readWhileSeen({ call, workspaceId, buffer, onState }: Reading): () => void {
  let reading: AbortController | undefined;
  let retry: ReturnType<typeof setTimeout> | undefined;
  let hiding: ReturnType<typeof setTimeout> | undefined;
  let state: TailState = 'connecting';
  let wasOpen = false;

  const be = (next: TailState, failure?: RequestFailed): void => {
    state = next;
    onState(next, failure);
  };
  const stop = (): void => {
    clearTimeout(hiding);
    clearTimeout(retry);
    reading?.abort();
    reading = undefined;
  };
  const hide = (): void => {
    stop();
    be('connecting');
  };
  // The places are for pages that are seen.
  const wait = (): void => (isHidden() ? hide() : be('waiting'));
  const start = (): void => {
    const own = new AbortController();
    reading = own;
    const ended = (error?: unknown): void => {
      if (own.signal.aborted) return;
      const failure = error instanceof RequestFailed ? error : undefined;
      be('connecting', failure);
      // A session that is over does not come back by itself, and its lines do not stay on the screen.
      if (failure?.status === 401) return;
      retry = setTimeout(start, Math.max(RETRY_MS, (failure?.retryAfterSeconds ?? 0) * 1000));
    };
    const opened = (): void => {
      buffer.open(Date.now());
      be('open');
      if (wasOpen) buffer.add([{ kind: 'dropped', count: null }]);
      wasOpen = true;
    };
    const read = async (): Promise<void> => {
      const giveBack = await takePlace(own.signal, wait);
      try {
        await readServerEvents(call, workspaceId, own.signal, opened, (events) =>
          buffer.add(events.flatMap(rowOf)),
        );
      } finally {
        giveBack();
      }
    };
    read().then(() => ended(), ended);
  };
  const makeRoom = (): void => {
    if (isHidden() && reading) hide();
  };
  const onVisibility = (): void => {
    clearTimeout(hiding);
    if (!isHidden()) {
      if (!reading) start();
      return;
    }
    if (state === 'waiting') return hide();
    hiding = setTimeout(hide, HIDDEN_FOR_MS);
    void isPlaceAwaited().then((isAwaited) => isAwaited && makeRoom());
  };

  if (!isHidden()) start();
  const unwatch = watchAwaited(makeRoom);
  document.addEventListener('visibilitychange', onVisibility);
  // A page that is left stays in the browser's memory for Back, but not with a lock.
  addEventListener('pagehide', hide);
  return () => {
    document.removeEventListener('visibilitychange', onVisibility);
    removeEventListener('pagehide', hide);
    unwatch();
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
