/**
 * Repeats an action while a process lives, one run at a time.
 *
 * Each wake-up of an idle process costs 0.1 ms and more, and a dozen repetitions woke it a dozen times a second. So long
 * waits of one process end together, at marks: each half second of its monotonic clock. A wait ends at the last mark within
 * it, thus never late, unless this would leave less than half of it. From the second wait on, a short step runs once an
 * interval of whole seconds.
 */
import type { Logger } from './logger.ts';

export interface Repetition {
  /** Ends the wait for the next run; a run under way is followed by another at once. */
  wake(): void;
  /** Starts no new run and waits for the one under way. */
  stop(): Promise<void>;
}

/** Between two marks. */
const MARK_MS = 500;
/** A timer counts whole milliseconds and may be that much early: its wait has ended at the mark all the same. */
const TIMER_EARLY_MS_MAX = 2;

interface Mark {
  readonly timer: NodeJS.Timeout;
  readonly waits: Map<() => void, boolean>;
}
/** By the number of the mark. */
const marks = new Map<number, Mark>();

/**
 * Calls `onEnd` at the last mark within `durationMs`.
 *
 * @param keepsAlive - false: the process may end meanwhile.
 * @returns cancels the wait. It may be called twice, and after the end.
 */
export function waitForMark(durationMs: number, onEnd: () => void, keepsAlive = true): () => void {
  const nowMs = performance.now();
  const place = lastPlace(nowMs, durationMs);
  const mark = marks.get(place) ?? openMark(place, nowMs);
  mark.waits.set(onEnd, keepsAlive);
  keepAliveIfNeeded(mark);
  return () => {
    if (!mark.waits.delete(onEnd)) return;
    keepAliveIfNeeded(mark);
    if (mark.waits.size > 0) return;
    clearTimeout(mark.timer);
    if (marks.get(place) === mark) marks.delete(place);
  };
}

const lastPlace = (nowMs: number, durationMs: number): number =>
  Math.floor((nowMs + durationMs + TIMER_EARLY_MS_MAX) / MARK_MS);

/** A pause that were shorter than half would be no rest for a store that answers slowly. */
function isMarkInLaterHalf(durationMs: number): boolean {
  const nowMs = performance.now();
  return lastPlace(nowMs, durationMs) * MARK_MS - nowMs >= durationMs / 2;
}

function openMark(place: number, nowMs: number): Mark {
  const waits: Mark['waits'] = new Map();
  const end = (): void => {
    marks.delete(place);
    const ended = [...waits.keys()];
    waits.clear();
    for (const onEnd of ended) onEnd();
  };
  const mark = { timer: setTimeout(end, Math.ceil(place * MARK_MS - nowMs)), waits };
  marks.set(place, mark);
  return mark;
}

function keepAliveIfNeeded({ timer, waits }: Mark): void {
  if ([...waits.values()].includes(true)) timer.ref();
  else timer.unref();
}

/**
 * Runs `step`, which can ask whether it should end, waits `intervalMs` after its end (read each time if it is
 * a function), and so on. A wait may end up to half a second earlier, together with others. A failing
 * step is logged and does not end it.
 */
export function repeat(
  name: string,
  intervalMs: number | (() => number),
  logger: Logger,
  step: (isStopping: () => boolean) => Promise<unknown>,
): Repetition {
  let isStopping = false;
  let isWoken = false;
  let endWait = (): void => {};
  const wait = (durationMs: number): Promise<void> =>
    new Promise((resolve) => {
      const cancel = isMarkInLaterHalf(durationMs)
        ? waitForMark(durationMs, resolve)
        : waitAlone(durationMs, resolve);
      endWait = () => {
        cancel();
        resolve();
      };
    });
  const run = async (): Promise<void> => {
    while (!isStopping) {
      isWoken = false;
      try {
        await step(() => isStopping);
      } catch (error) {
        logger.warn(
          { error, task: name },
          'a repeated task failed; it runs again after its interval',
        );
      }
      if (!isStopping && !isWoken)
        await wait(typeof intervalMs === 'number' ? intervalMs : intervalMs());
    }
  };
  const running = run();
  return {
    wake() {
      isWoken = true;
      endWait();
    },
    stop() {
      isStopping = true;
      endWait();
      return running;
    },
  };
}

function waitAlone(durationMs: number, onEnd: () => void): () => void {
  const timer = setTimeout(onEnd, durationMs);
  return () => clearTimeout(timer);
}
