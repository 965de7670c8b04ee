/** Result of a retry probe: the state of the webhook is read until the attempt has ended. */
import type { LaneState } from '@sluice/console/sentences/lane-sentence';
import type { Terminal } from '../output/terminal.ts';
import type { Waiting } from './replay-commands.ts';

export interface ProbeDependencies extends Waiting {
  readonly state: () => Promise<LaneState>;
  readonly terminal: Terminal;
}

export interface ProbeEnding {
  readonly sequence: number;
  /** `unknown`: the attempt has not ended yet, and goes on. */
  readonly outcome: 'delivered' | 'failed' | 'unknown';
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
  { state, terminal, pause, signal }: ProbeDependencies,
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
      return { sequence, outcome: 'delivered' };
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
