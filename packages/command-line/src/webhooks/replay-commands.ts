/** `sluice webhooks replay …`: a day is sent again, and watched. */
import { type ApiClient, type components, resultOf } from '@sluice/client';
import { AppError } from '@sluice/domain/values/errors';
import type { Command } from 'commander';
import { instantSeconds, positiveInteger } from '../input/arguments.ts';
import { givenMembers } from '../input/given-members.ts';
import { writeFields, writeRows } from '../output/result.ts';
import type { Terminal } from '../output/terminal.ts';

/** Wait of a command for work that goes on without it. */
export interface Waiting {
  readonly pause: (durationMs: number) => Promise<unknown>;
  /** Ends the wait; the work goes on. */
  readonly signal: AbortSignal;
}

type Criteria = components['schemas']['NewReplayInput'];

const REPLAYS = '/v1/reporting_webhooks/{webhook_id}/replays';

/** @param webhooks - the command that has them. */
export function addReplayCommands(
  webhooks: Command,
  api: () => ApiClient,
  terminal: () => Terminal,
  waiting: Waiting,
  setInterrupted: () => void,
): void {
  const list = async (id: number) => {
    const ofWebhook = { params: { path: { webhook_id: id } } };
    return (await resultOf(api().GET(REPLAYS, ofWebhook))).replays;
  };
  webhooks
    .command('replay')
    .argument('<id>', 'id of the webhook', positiveInteger)
    .requiredOption(
      '--since <time>',
      'time (ISO 8601): only deliveries logged at it or later',
      instantSeconds,
    )
    .option('--until <time>', 'time (ISO 8601): only deliveries logged before it', instantSeconds)
    .option('--event-type <type...>', 'only these event types')
    .option('--state <state...>', 'only delivered or abandoned')
    .option('--rate <deliveries>', 'maximum deliveries per second', positiveInteger)
    .option('--dry-run', 'only count the deliveries')
    .option('--wait', 'waits for the end and shows the progress')
    .description(
      'sends matching deliveries again, without delay of live deliveries; it continues without this command',
    )
    .action(async (id: number, options: ReplayOptions) => {
      const body = givenMembers({
        since: options.since,
        until: options.until,
        event_types: options.eventType,
        states: options.state,
        rate_per_second: options.rate,
        dry_run: options.dryRun,
      });
      const made = await resultOf(
        api().POST(REPLAYS, { params: { path: { webhook_id: id } }, body }),
      );
      if (options.wait !== true || made.replay === null) return writeFields(terminal(), made);
      const replay = await followReplay(
        { list: () => list(id), terminal: terminal(), ...waiting },
        made.replay.id,
      );
      writeFields(terminal(), { replay });
      if (replay.state === 'running') setInterrupted();
      return undefined;
    });
  webhooks
    .command('replays')
    .argument('<id>', 'id of the webhook', positiveInteger)
    .description('lists the replays of a webhook, newest first, with their progress')
    .action(async (id: number) => {
      writeRows(
        terminal(),
        await list(id),
        [
          'id',
          'state',
          'failing',
          'total',
          'delivered',
          'abandoned',
          'rate_per_second',
          'created_by',
        ],
        `webhook ${id} has no replay`,
      );
    });
  webhooks
    .command('cancel-replay')
    .argument('<id>', 'id of the webhook', positiveInteger)
    .argument('<replay-id>', 'id of the replay', positiveInteger)
    .description('cancels a replay; deliveries in progress end')
    .action(async (id: number, replayId: number) => {
      const params = { path: { webhook_id: id, replay_id: replayId } };
      writeFields(
        terminal(),
        await resultOf(api().POST(`${REPLAYS}/{replay_id}/cancel`, { params })),
      );
    });
}

/** The API names the types and states to a user who gives another one. */
interface ReplayOptions {
  readonly since: number;
  readonly until?: number;
  readonly eventType?: Criteria['event_types'];
  readonly state?: Criteria['states'];
  readonly rate?: number;
  readonly dryRun?: true;
  readonly wait?: boolean;
}

export interface FollowDependencies extends Waiting {
  /** The webhook's replays, as the API shows them. */
  readonly list: () => Promise<readonly Replay[]>;
  readonly terminal: Terminal;
}

const POLL_INTERVAL_MS = 500;

type Replay = Pick<
  components['schemas']['Replay'],
  'id' | 'state' | 'failing' | 'total' | 'delivered' | 'abandoned'
>;

/**
 * Shows the progress of a replay, until it has ended.
 *
 * @returns the replay at its end, or as it was when the signal came.
 * @throws AppError COMMAND_FAILED if it is not listed any more.
 */
export async function followReplay(deps: FollowDependencies, replayId: number): Promise<Replay> {
  const { list, terminal, pause, signal } = deps;
  for (;;) {
    const replay = (await list()).find(({ id }) => id === replayId);
    if (replay === undefined)
      throw new AppError(
        'COMMAND_FAILED',
        `replay ${replayId} is not listed any more; sluice webhooks replays lists the others`,
      );
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
