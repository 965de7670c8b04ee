/** `sluice events …` and `sluice issues`: the way of a call, and its faults. */
import { type ApiClient, resultOf } from '@sluice/client';
import { AppError } from '@sluice/domain/values/errors';
import { Option, type Command } from 'commander';
import { eventId, positiveInteger } from '../input/arguments.ts';
import { givenMembers } from '../input/given-members.ts';
import { noteMore, writeFields, writeRows } from '../output/result.ts';
import type { Terminal } from '../output/terminal.ts';
import { traceLines } from './trace-lines.ts';

const NOT_FOUND = 'the event was not found';
/** Possible meanings; the API cannot distinguish them. */
const WHY_NOT_FOUND =
  'the event was not found, for one of these reasons:\n' +
  '  it waits in a queue (sluice status shows the age of the oldest event)\n' +
  '  it never came (sluice issues lists refused calls, sluice tail shows incoming ones)\n' +
  '  it is older than the events that are kept\n' +
  '  it is an identify or a group call, which has no id (sluice people show ID shows its person)';

const SEVERITIES = ['error', 'warning'] as const;

interface IssueOptions {
  readonly limit: number;
  readonly code?: string;
  readonly source?: string;
  readonly severity?: (typeof SEVERITIES)[number];
}

export function addEventCommands(
  program: Command,
  api: () => ApiClient,
  terminal: () => Terminal,
): void {
  const events = program.command('events').description('single events');
  events
    .command('trace')
    .argument('<event-id>', "the sender's messageId, or the event_id of a delivery", eventId)
    .description(
      'shows the path of one event: received, commit batch, processed, deliveries, attempts',
    )
    .action(async (id: string) => {
      const { trace } = await resultOf(
        api().GET('/v1/events/{event_id}/trace', { params: { path: { event_id: id } } }),
      ).catch((error: unknown) => {
        throw error instanceof AppError && error.message === NOT_FOUND
          ? new AppError(error.code, WHY_NOT_FOUND)
          : error;
      });
      const output = terminal();
      if (output.format !== 'table') writeFields(output, trace);
      else for (const line of traceLines(trace)) output.line(line);
    });
  events
    .command('show')
    .argument('<event-id>', "the sender's messageId", eventId)
    .description('shows one event with its body')
    .action(async (id: string) => {
      const { event } = await resultOf(
        api().GET('/v1/events/{event_id}', { params: { path: { event_id: id } } }),
      );
      writeFields(terminal(), event);
    });

  program
    .command('issues')
    .description('lists refused, skipped and corrected input, newest day first')
    .option('--code <code>', 'only issues of this code')
    .option('--source <call>', 'only issues of this call, for example pipelines.track')
    .addOption(
      new Option('--severity <severity>', 'only refused input, or only corrected input').choices(
        SEVERITIES,
      ),
    )
    .option('--limit <count>', 'rows', positiveInteger, 50)
    .action(async ({ limit, ...filters }: IssueOptions) => {
      const query = { limit, ...givenMembers(filters) };
      const { ingestion_issues: issues, next } = await resultOf(
        api().GET('/v1/ingestion_issues', { params: { query } }),
      );
      const asked = Object.entries(filters).map(([name, value]) => `${name} ${value}`);
      const output = terminal();
      writeRows(
        output,
        issues,
        ['day', 'count', 'severity', 'code', 'source', 'field', 'message'],
        `no issue${asked.length === 0 ? '' : ` of ${asked.join(', ')}`} is kept`,
      );
      noteMore(output, next, 'raise --limit');
    });
}
