/** `sluice deliveries …`: deliveries of a webhook, and their results. */
import { type ApiClient, resultOf } from '@sluice/client';
import { Option, type Command } from 'commander';
import { instantSeconds, positiveInteger } from '../input/arguments.ts';
import { givenMembers } from '../input/given-members.ts';
import { noteMore, writeFields, writeRows } from '../output/result.ts';
import type { Terminal } from '../output/terminal.ts';

interface Delivery {
  readonly sequence: number;
  readonly attempts: readonly { readonly status: number | null; readonly failure: string | null }[];
}

const STATES = ['pending', 'retrying', 'delivered', 'abandoned'] as const;
const STATUS_CLASSES = ['2xx', '3xx', '4xx', '5xx', 'none'] as const;

interface ListOptions {
  readonly state?: (typeof STATES)[number];
  readonly eventType?: string;
  readonly since?: number;
  readonly until?: number;
  readonly person?: string;
  readonly eventId?: string;
  readonly statusClass?: (typeof STATUS_CLASSES)[number];
  readonly limit: number;
}

export function addDeliveryCommands(
  program: Command,
  api: () => ApiClient,
  terminal: () => Terminal,
): void {
  const deliveries = program.command('deliveries').description('deliveries to webhooks');
  deliveries
    .command('list')
    .argument('[webhook-id]', 'id of the webhook (all webhooks by default)', positiveInteger)
    .addOption(new Option('--state <state>', 'only deliveries in this state').choices(STATES))
    .option('--event-type <type>', 'only deliveries of this event type')
    .option(
      '--since <time>',
      'time (ISO 8601): only deliveries logged at it or later',
      instantSeconds,
    )
    .option('--until <time>', 'time (ISO 8601): only deliveries logged before it', instantSeconds)
    .option('--person <id>', 'only deliveries about the person with this id')
    .option('--event-id <id>', 'only deliveries of this event')
    .addOption(
      new Option(
        '--status-class <class>',
        'only deliveries whose last answer has this class',
      ).choices(STATUS_CLASSES),
    )
    .option('--limit <count>', 'rows', positiveInteger, 50)
    .description('lists deliveries, newest first, each with its answers')
    .action(async (webhookId: number | undefined, options: ListOptions) => {
      const query = givenMembers({
        limit: options.limit,
        state: options.state,
        event_type: options.eventType,
        since: options.since,
        until: options.until,
        person: options.person,
        event_id: options.eventId,
        status_class: options.statusClass,
      });
      const { deliveries: rows, next } =
        webhookId === undefined
          ? await resultOf(api().GET('/v1/deliveries', { params: { query } }))
          : await resultOf(
              api().GET('/v1/reporting_webhooks/{webhook_id}/deliveries', {
                params: { path: { webhook_id: webhookId }, query },
              }),
            );
      const output = terminal();
      const isDocument = output.format === 'json' || output.format === 'yaml';
      writeRows(
        output,
        isDocument ? rows : rows.map(toRow),
        [
          ...(webhookId === undefined ? ['webhook_id'] : []),
          ...['sequence', 'event_type', 'state', 'attempts', 'created_at', 'event_id'],
        ],
        `no delivery ${webhookId === undefined ? 'of any webhook' : `of webhook ${webhookId}`} fits`,
      );
      noteMore(output, next, 'narrow the time, or raise --limit');
    });
  deliveries
    .command('show')
    .argument('<webhook-id>', 'id of the webhook', positiveInteger)
    .argument('<sequence>', 'sequence of the delivery', positiveInteger)
    .description('shows one delivery, with each attempt and its answer')
    .action(async (webhookId: number, sequence: number) => {
      const { delivery } = await resultOf(
        api().GET('/v1/reporting_webhooks/{webhook_id}/deliveries/{sequence}', {
          params: { path: { webhook_id: webhookId, sequence } },
        }),
      );
      writeFields(terminal(), delivery);
    });
}

/** The answers in place of the attempts: `500 500 200`. */
const toRow = (delivery: Delivery): Record<string, unknown> => ({
  ...delivery,
  attempts: delivery.attempts.map(({ status, failure }) => status ?? failure ?? '-').join(' '),
});
