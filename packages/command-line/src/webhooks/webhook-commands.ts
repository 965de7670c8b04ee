/** `sluice webhooks …`: the state of reporting webhooks, and an operator's actions. */
import { type ApiClient, type components, type operations, resultOf } from '@sluice/client';
import { laneSentence, type LaneState } from '@sluice/console/sentences/lane-sentence';
import { printable } from '@sluice/domain/values/printable';
import type { Command } from 'commander';
import { condition, positiveInteger } from '../input/arguments.ts';
import { writeFields, writeRows } from '../output/result.ts';
import type { Terminal } from '../output/terminal.ts';
import { followProbe } from './follow-probe.ts';
import { addReplayCommands, type Waiting } from './replay-commands.ts';

const WEBHOOK = '/v1/reporting_webhooks/{webhook_id}';

type TestedType =
  operations['testReportingWebhook']['requestBody']['content']['application/json']['event_type'];

export function addWebhookCommands(
  program: Command,
  api: () => ApiClient,
  terminal: () => Terminal,
  waiting: Waiting,
  endings: Endings,
): void {
  const webhooks = program
    .command('webhooks')
    .description('reporting webhooks and the state of their deliveries');
  const ofWebhook = (id: number) => ({ path: { webhook_id: id } });

  webhooks
    .command('list')
    .description('lists the webhooks of the workspace with their states')
    .action(async () => {
      const { reporting_webhooks: listed } = await resultOf(
        api().GET('/v1/reporting_webhooks', { params: { query: { include: 'state' } } }),
      );
      const output = terminal();
      // A document is the API's answer; rows have the figures that distinguish a webhook from the others.
      const isDocument = output.format === 'json' || output.format === 'yaml';
      writeRows(
        output,
        isDocument ? listed : listed.map(toRow),
        ['id', 'name', 'state', 'waiting', 'last_delivered_at', 'endpoint'],
        'no webhook in this workspace; sluice webhooks create makes one',
      );
    });
  webhooks
    .command('show')
    .argument('<id>', 'id of the webhook', positiveInteger)
    .description('shows the settings, and the reason if deliveries are blocked')
    .action(async (id: number) => {
      const [settings, state] = await Promise.all([
        resultOf(api().GET(WEBHOOK, { params: ofWebhook(id) })),
        resultOf(api().GET(`${WEBHOOK}/state`, { params: ofWebhook(id) })),
      ]);
      const output = terminal();
      if (output.format === 'table') {
        const sentence = laneSentence(state, output.now());
        output.line(printable(sentence.text));
        if (sentence.more !== '') output.line(sentence.more);
        output.line('');
      }
      writeFields(output, { ...settings, lane: state });
    });
  webhooks
    .command('create')
    .argument('<name>', 'name of the webhook')
    .argument('<endpoint>', 'an http or https URL')
    .requiredOption(
      '--event <type...>',
      'event, page, screen, identify, group, delete, email_sent, …; "*" is each of them',
    )
    .option('--event-name <name...>', 'of tracked events only the ones with one of these names')
    .option(
      '--filter <condition>',
      'only matching events, for example "data.properties.total gte 100"; may be repeated',
      condition,
    )
    .option('--with-imports', 'also sends rows of imports')
    .option('--with-late', 'also sends events older than 72 hours')
    .option('--with-person-attributes', 'adds the attributes of the person')
    .description('makes a webhook; it receives events from that time on')
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
      writeFields(terminal(), await resultOf(api().POST('/v1/reporting_webhooks', { body })));
    });
  webhooks
    .command('probe')
    .argument('<id>', 'id of the webhook', positiveInteger)
    .option('--no-wait', 'ends before the attempt has ended')
    .description('tries the first delivery of a failing webhook at once, and prints the result')
    .action(async (id: number, { wait }: { wait: boolean }) => {
      const params = ofWebhook(id);
      const state = (): Promise<LaneState> => resultOf(api().GET(`${WEBHOOK}/state`, { params }));
      const deliveryState = async (sequence: number): Promise<string> => {
        const { delivery } = await resultOf(
          api().GET(`${WEBHOOK}/deliveries/{sequence}`, {
            params: { path: { ...params.path, sequence } },
          }),
        );
        return delivery.state;
      };
      const before = wait ? await state() : undefined;
      const probed = await resultOf(api().POST(`${WEBHOOK}/probe`, { params }));
      const ended =
        before?.head && probed.result === 'due'
          ? await followProbe(
              { state, deliveryState, terminal: terminal(), ...waiting },
              before.head,
            )
          : undefined;
      writeFields(terminal(), { ...probed, ...ended });
      if (ended?.outcome === 'failed' || ended?.outcome === 'abandoned') endings.setExitCode(1);
      if (ended?.outcome === 'unknown' && waiting.signal.aborted) endings.setInterrupted();
    });
  webhooks
    .command('skip')
    .argument('<id>', 'id of the webhook', positiveInteger)
    .requiredOption(
      '--sequence <number>',
      'sequence of the first delivery, as shown; another one is not skipped',
      positiveInteger,
    )
    .option('--reason <text>', 'reason, stored with the delivery')
    .description('abandons the failing delivery that blocks the others')
    .action(async (id: number, options: { sequence: number; reason?: string }) => {
      const skipped = api().POST(`${WEBHOOK}/skip_head`, {
        params: ofWebhook(id),
        body: { ...options },
      });
      writeFields(terminal(), await resultOf(skipped));
    });
  webhooks
    .command('resend')
    .argument('<id>', 'id of the webhook', positiveInteger)
    .argument('<sequence>', 'sequence of the delivery', positiveInteger)
    .description('sends one delivery once more')
    .action(async (id: number, sequence: number) => {
      const resent = api().POST(`${WEBHOOK}/deliveries/{sequence}/resend`, {
        params: { path: { webhook_id: id, sequence } },
      });
      writeFields(terminal(), await resultOf(resent));
    });
  webhooks
    .command('test')
    .argument('<id>', 'id of the webhook', positiveInteger)
    .argument('[event-type]', 'any event type', 'customer_subscribed')
    .description('sends a sample event')
    .action(async (id: number, eventType: TestedType) => {
      const tested = api().POST(`${WEBHOOK}/test`, {
        params: ofWebhook(id),
        body: { event_type: eventType },
      });
      writeFields(terminal(), await resultOf(tested));
    });
  addReplayCommands(webhooks, api, terminal, waiting, endings.setInterrupted);
}

/** Exit codes of a wait; see the context of the commands. */
interface Endings {
  readonly setExitCode: (code: number) => void;
  readonly setInterrupted: () => void;
}

type Settings = components['schemas']['NewReportingWebhookInput'];

/** The API names the types and operators to a user who gives another one. */
interface CreateOptions {
  readonly event: Settings['events'];
  readonly eventName?: string[];
  readonly filter?: NonNullable<Settings['attribute_filters']>;
  readonly withImports?: true;
  readonly withLate?: true;
  readonly withPersonAttributes?: true;
}

const toRow = ({
  id,
  name,
  endpoint,
  state,
}: components['schemas']['ReportingWebhook']): Record<string, unknown> => ({
  id,
  name,
  state: state?.state === 'disabled' ? 'paused' : state?.state,
  waiting: state?.unfinished_count,
  last_delivered_at: state?.last_delivered_at,
  endpoint,
});
