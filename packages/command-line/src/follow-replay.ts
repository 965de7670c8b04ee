/** `sluice webhooks replay --wait`: how far a replay is, until it has ended. */
import { AppError } from '@sluice/domain/values/errors';
import type { Terminal } from './terminal.ts';

export interface FollowDependencies {
  /** The webhook's replays, as the API shows them. */
  readonly list: () => Promise<unknown>;
  readonly terminal: Terminal;
  readonly pause: (durationMs: number) => Promise<unknown>;
  /** Ends the waiting; the replay goes on. */
  readonly signal: AbortSignal;
}

const POLL_INTERVAL_MS = 500;

interface Replay {
  readonly id: number;
  readonly state: string;
  readonly failing: boolean;
  readonly total: number | null;
  readonly delivered: number;
  readonly abandoned: number;
}

/**
 * @returns the replay as it is in the end, or where it was when the signal came.
 * @throws AppError COMMAND_FAILED where it is not listed any more.
 */
export async function followReplay(deps: FollowDependencies, replayId: number): Promise<object> {
  const { list, terminal, pause, signal } = deps;
  for (;;) {
    const replay = ((await list()) as readonly Replay[]).find(({ id }) => id === replayId);
    if (replay === undefined)
      throw new AppError('COMMAND_FAILED', `replay ${replayId} is not listed any more`);
    const { state, total, delivered, abandoned, failing } = replay;
    const done = delivered + abandoned;
    const all = total === null ? '' : ` of ${total}`;
    terminal.progress(
      `replay ${replayId}: ${done}${all} sent again${failing ? ', the endpoint fails' : ''}`,
      { progress: `replay ${replayId}`, unit: 'deliveries', done, all: total },
    );
    if (state !== 'running' || signal.aborted) {
      terminal.progressDone();
      return replay;
    }
    await pause(POLL_INTERVAL_MS);
  }
}
