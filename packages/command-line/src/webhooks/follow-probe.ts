/** Result of a retry probe: the state of the webhook is read until the attempt has ended. */
import type { LaneState } from '@sluice/console/sentences/lane-sentence';
import type { Terminal } from '../output/terminal.ts';
import type { Waiting } from './replay-commands.ts';

export interface ProbeDependencies extends Waiting {
  readonly state: () => Promise<LaneState>;
  /** The state of the delivery with this sequence, in the API's word. */
  readonly deliveryState: (sequence: number) => Promise<string>;
  readonly terminal: Terminal;
}

export interface ProbeEnding {
  readonly sequence: number;
  /**
   * `abandoned`: it was given up after the attempt, or skipped meanwhile. `unknown`: the attempt has not ended yet, and
   * goes on.
   */
  readonly outcome: 'delivered' | 'failed' | 'abandoned' | 'unknown';
  readonly attempts?: number;
  readonly status?: number | null;
  readonly failure?: string | null;
  readonly failure_message?: string | null;
  readonly next_probe_at?: number | null;
}

const POLL_INTERVAL_MS = 200;
/** An attempt takes 4 s at most; a worker that is busy begins it later. */
const WAITED_MS_MAX = 30_000;

/** @param head - as it was before the probe was asked for. */
export async function followProbe(
  { state, deliveryState, terminal, pause, signal }: ProbeDependencies,
  head: NonNullable<LaneState['head']>,
): Promise<ProbeEnding> {
  const { sequence, attempts } = head;
  for (
    let waitedMs = 0;
    waitedMs < WAITED_MS_MAX && !signal.aborted;
    waitedMs += POLL_INTERVAL_MS
  ) {
    const { head: now, next_probe_at } = await state();
    if (now?.sequence !== sequence) {
      terminal.progressDone();
      // A delivery leaves the head of the queue by success, and also at the end of its time or by a skip.
      const ended = await deliveryState(sequence);
      const isKnown = ended === 'delivered' || ended === 'abandoned';
      return { sequence, outcome: isKnown ? ended : 'unknown' };
    }
    if (now.attempts > attempts) {
      terminal.progressDone();
      const { status, failure, failure_message } = now;
      return {
        sequence,
        outcome: 'failed',
        attempts: now.attempts,
        status,
        failure,
        failure_message,
        next_probe_at,
      };
    }
    terminal.progress(`delivery ${sequence} is tried`, { progress: 'probe', sequence });
    await pause(POLL_INTERVAL_MS);
  }
  terminal.progressDone();
  return { sequence, outcome: 'unknown' };
}
