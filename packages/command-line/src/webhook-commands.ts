/** `sluice webhooks …`: what reporting webhooks wait for, and what an operator may do about it. */
import { AppError } from '@sluice/domain/values/errors';
import type { Command } from 'commander';
import type { ApiClient } from './api-client.ts';
import { condition, instantSeconds, positiveInteger, type Condition } from './arguments.ts';
import { writeFields, writeRows, type Terminal } from './terminal.ts';

export function addWebhookCommands(
  program: Command,
  api: () => ApiClient,
  terminal: () => Terminal,
  waiting: Pick<FollowDependencies, 'pause' | 'signal'>,
): void {
  const webhooks = program
    .command('webhooks')
    .description('reporting webhooks and what they wait for');
  const path = (id: number, rest = ''): string => `/v1/reporting_webhooks/${id}${rest}`;

  webhooks
    .command('list')
    .description('all of the workspace')
    .action(async () => {
      const { reporting_webhooks: found } = await api().request('GET', '/v1/reporting_webhooks');
      writeRows(terminal(), found as Record<string, unknown>[], [
        'id',
        'name',
        'endpoint',
        'disabled',
      ]);
    });
  webhooks
    .command('show')
    .argument('<id>', 'of the webhook', positiveInteger)
    .description('its settings, and why its deliveries wait if they do')
    .action(async (id: number) => {
      const [settings, state] = await Promise.all([
        api().request('GET', path(id)),
        api().request('GET', path(id, '/state')),
      ]);
      writeFields(terminal(), { ...settings, lane: state });
    });
  webhooks
    .command('create')
    .argument('<name>', 'for people')
    .argument('<endpoint>', 'an http or https URL')
    .requiredOption(
      '--event <type...>',
      'event, page, screen, identify, group, delete, email_sent, …; "*" is each of them',
    )
    .option('--event-name <name...>', 'of tracked events only those with one of these names')
    .option(
      '--filter <condition>',
      'only what fits, as "data.properties.total gte 100"; may be repeated',
      condition,
    )
    .option('--with-imports', 'also rows of imports')
    .option('--with-late', 'also events of more than 72 hours ago')
    .option('--with-person-attributes', 'with the attributes of the person')
    .description('makes one, which is sent what happens from now on')
    .action(async (name: string, endpoint: string, options: CreateOptions) => {
      const body = {
        name,
        endpoint,
        events: options.event,
        ...(options.eventName && { event_names: options.eventName }),
        ...(options.filter && { attribute_filters: options.filter }),
        ...(options.withImports && { with_imports: true }),
        ...(options.withLate && { with_late: true }),
        ...(options.withPersonAttributes && { with_person_attributes: true }),
      };
      writeFields(terminal(), await api().request('POST', '/v1/reporting_webhooks', body));
    });
  webhooks
    .command('probe')
    .argument('<id>', 'of the webhook', positiveInteger)
    .description('tries the head of a failing webhook now')
    .action(async (id: number) => {
      writeFields(terminal(), await api().request('POST', path(id, '/probe')));
    });
  webhooks
    .command('skip')
    .argument('<id>', 'of the webhook', positiveInteger)
    .requiredOption(
      '--sequence <number>',
      'the head as you saw it; another one is not skipped',
      positiveInteger,
    )
    .option('--reason <text>', 'kept with the delivery')
    .description('gives up the delivery that holds the others back')
    .action(async (id: number, options: { sequence: number; reason?: string }) => {
      writeFields(terminal(), await api().request('POST', path(id, '/skip_head'), { ...options }));
    });
  webhooks
    .command('resend')
    .argument('<id>', 'of the webhook', positiveInteger)
    .argument('<sequence>', 'of the delivery', positiveInteger)
    .description('sends one delivery once more')
    .action(async (id: number, sequence: number) => {
      writeFields(
        terminal(),
        await api().request('POST', path(id, `/deliveries/${sequence}/resend`)),
      );
    });
  webhooks
    .command('test')
    .argument('<id>', 'of the webhook', positiveInteger)
    .argument('[event-type]', 'any event type', 'customer_subscribed')
    .description('sends a sample event')
    .action(async (id: number, eventType: string) => {
      writeFields(
        terminal(),
        await api().request('POST', path(id, '/test'), { event_type: eventType }),
      );
    });
  webhooks
    .command('replay')
    .argument('<id>', 'of the webhook', positiveInteger)
    .requiredOption('--since <time>', 'ISO 8601: deliveries logged at or after it', instantSeconds)
    .option('--until <time>', 'ISO 8601: and before it', instantSeconds)
    .option('--event-type <type...>', 'only these')
    .option('--state <state...>', 'only delivered or abandoned')
    .option('--rate <deliveries>', 'a second', positiveInteger)
    .option('--dry-run', 'only count')
    .option('--wait', 'until it has ended, and show how far it is')
    .description(
      'sends again what matches, beside the live deliveries, which are not delayed; it goes on without this command',
    )
    .action(async (id: number, options: ReplayOptions) => {
      const body = {
        since: options.since,
        ...(options.until === undefined ? {} : { until: options.until }),
        ...(options.eventType === undefined ? {} : { event_types: options.eventType }),
        ...(options.state === undefined ? {} : { states: options.state }),
        ...(options.rate === undefined ? {} : { rate_per_second: options.rate }),
        ...(options.dryRun === true ? { dry_run: true } : {}),
      };
      const made = await api().request('POST', path(id, '/replays'), body);
      const { id: replayId } = (made['replay'] ?? {}) as { readonly id?: number };
      const list = async () => (await api().request('GET', path(id, '/replays')))['replays'];
      writeFields(
        terminal(),
        options.wait !== true || replayId === undefined
          ? made
          : { replay: await followReplay({ list, terminal: terminal(), ...waiting }, replayId) },
      );
    });
  webhooks
    .command('replays')
    .argument('<id>', 'of the webhook', positiveInteger)
    .description('its replays, newest first, and how far each is')
    .action(async (id: number) => {
      const { replays } = await api().request('GET', path(id, '/replays'));
      writeRows(terminal(), replays as Record<string, unknown>[], [
        'id',
        'state',
        'failing',
        'total',
        'delivered',
        'abandoned',
        'rate_per_second',
        'created_by',
      ]);
    });
  webhooks
    .command('cancel-replay')
    .argument('<id>', 'of the webhook', positiveInteger)
    .argument('<replay-id>', 'of the replay', positiveInteger)
    .description('starts nothing more of a replay; what is on its way ends')
    .action(async (id: number, replayId: number) => {
      writeFields(terminal(), await api().request('POST', path(id, `/replays/${replayId}/cancel`)));
    });
}

interface CreateOptions {
  readonly event: string[];
  readonly eventName?: string[];
  readonly filter?: Condition[];
  readonly withImports?: true;
  readonly withLate?: true;
  readonly withPersonAttributes?: true;
}

interface ReplayOptions {
  readonly since: number;
  readonly until?: number;
  readonly eventType?: string[];
  readonly state?: string[];
  readonly rate?: number;
  readonly dryRun?: boolean;
  readonly wait?: boolean;
}

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
 * Shows how far a replay is, until it has ended.
 *
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
