/** `sluice tail`: shows calls and deliveries as they happen, from every process. */
import type { ApiClient, operations } from '@sluice/client';
import { AppError, reasonOf } from '@sluice/domain/values/errors';
import { printable } from '@sluice/domain/values/printable';
import { EVENT_STREAM } from '../connection/api-client.ts';
import { givenMembers } from '../input/given-members.ts';
import { documentWriter, type Row } from '../output/result.ts';
import { colored, type Color, type Terminal } from '../output/terminal.ts';
import { cutToWidth, widthOf } from '../output/text-width.ts';
import { fitsAll } from './line-filter.ts';

type Filters = NonNullable<operations['streamEvents']['parameters']['query']>;

/** The API looks at all but `grep`; an older one does not look at `source` and `webhook`. */
export interface TailOptions {
  readonly person?: string;
  readonly name?: string;
  readonly outcome?: Filters['outcome'];
  /** Kind of call: `pipelines.track`, or the beginning of its name. */
  readonly source?: string;
  /** Only attempts of this webhook. */
  readonly webhook?: number;
  /** As {@link fitsAll}. */
  readonly grep?: readonly string[];
}

export interface TailDependencies {
  readonly api: ApiClient;
  readonly terminal: Terminal;
  readonly now: () => number;
  readonly pause: (durationMs: number) => Promise<unknown>;
  readonly signal: AbortSignal;
}

const COLORS: Readonly<Record<string, Color>> = {
  accepted: 'green',
  delivered: 'green',
  mended: 'yellow',
  retrying: 'yellow',
  rate_limited: 'yellow',
  overloaded: 'red',
  refused: 'red',
  abandoned: 'red',
};

/** Of CSV. */
const COLUMNS = ['at_ms', 'event', 'outcome', 'name', 'people', 'details'];

const AGAIN_AFTER_MS = 500;
/** A restarted API is there again by then; until then the tail goes on trying. */
const THERE_AGAIN_WITHIN_MS = 60_000;

/**
 * Runs until `signal`. A tail that the API ends is begun again at once, so that few lines are missed; one that broke
 * off, or ended as it had begun, after a moment.
 *
 * @throws AppError if it cannot be begun.
 */
export async function tail(
  { api, terminal, now, pause, signal }: TailDependencies,
  { webhook, grep = [], ...asked }: TailOptions,
): Promise<void> {
  const { source } = asked;
  const query = givenMembers({ ...asked, webhook_id: webhook });
  const writeDocument = documentWriter(terminal, COLUMNS);
  const show = (event: string, data: string): void => {
    const line = { event, ...(JSON.parse(data) as object) };
    // Lost lines may have fitted.
    if (event !== 'dropped' && !(isOf(source, webhook, line) && fitsAll(grep, line))) return;
    if (writeDocument) writeDocument(line);
    else terminal.line(lineText(terminal, event, line));
  };
  let openUntilMs: number | undefined;
  let isSaid = false;
  while (!signal.aborted) {
    const openedAtMs = now();
    try {
      const { response: answer } = await api.GET('/v1/stream', {
        params: { query },
        headers: { Accept: EVENT_STREAM },
        parseAs: 'stream',
        signal,
      });
      isSaid = false;
      terminal.note('listening; Ctrl-C ends it');
      await readEvents(answer, show);
      openUntilMs = now();
      if (openUntilMs - openedAtMs >= AGAIN_AFTER_MS) continue;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof AppError)) openUntilMs = now();
      // A refusal that does not pass by itself has no cause.
      else if (error.cause === undefined || openUntilMs === undefined) throw error;
      else if (now() - openUntilMs >= THERE_AGAIN_WITHIN_MS) throw error;
      if (!isSaid) terminal.note(`the stream broke off (${reasonOf(error)}); it is opened again`);
      isSaid = true;
    }
    await pause(AGAIN_AFTER_MS);
  }
}

/** Server-sent events (WHATWG HTML §9.2): of each its name and its data. */
export async function readEvents(
  answer: Response,
  onEvent: (event: string, data: string) => void,
): Promise<void> {
  let rest = '';
  const decoder = new TextDecoder();
  for await (const chunk of answer.body ?? []) {
    rest += decoder.decode(chunk as Uint8Array, { stream: true });
    const blocks = rest.split('\n\n');
    rest = blocks.pop() ?? '';
    for (const block of blocks) {
      const fields = new Map(
        block.split('\n').map((line) => {
          const colon = line.indexOf(': ');
          return [line.slice(0, colon), line.slice(colon + 2)] as const;
        }),
      );
      const data = fields.get('data');
      if (data !== undefined) onEvent(fields.get('event') ?? 'message', data);
    }
  }
}

interface TailLine {
  readonly at_ms: number;
  readonly outcome: string;
  readonly name: string | null;
  readonly people: readonly Readonly<Record<string, string>>[];
  readonly details: Readonly<Record<string, string | number | null>>;
}

function isOf(source: string | undefined, webhook: number | undefined, line: Row): boolean {
  const { source: said, webhook_id: webhookId } = (line['details'] ?? {}) as Readonly<
    Record<string, unknown>
  >;
  if (webhook !== undefined && webhookId !== webhook) return false;
  if (source === undefined) return true;
  return typeof said === 'string' && (said === source || said.startsWith(`${source}.`));
}

const OUTCOME_WIDTH = 'rate_limited'.length;

/** One line, cut to the terminal's width if that is known. */
function lineText(terminal: Terminal, event: string, row: Row): string {
  if (event === 'dropped') {
    const count = (row['count'] as number | null) ?? 'some';
    return colored(terminal, 'gray', `${count} lines lost: too many to show`);
  }
  const line = row as unknown as TailLine;
  const time = new Date(line.at_ms).toISOString().slice(11);
  const people = line.people.map((person) =>
    Object.entries(person)
      .map(([kind, value]) => printable(`${kind}=${value}`))
      .join(' '),
  );
  const { type, source, ...details } = line.details;
  const rest = Object.entries(details)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => printable(`${name}=${String(value)}`));
  const parts: readonly (readonly [text: string, color?: Color])[] = [
    [time, 'gray'],
    [event.padEnd('received'.length)],
    [line.outcome.padEnd(OUTCOME_WIDTH), COLORS[line.outcome] ?? 'cyan'],
    // A line without an event has no name: then its kind of operation and its call.
    [printable(line.name ?? [type, source].filter((part) => part != null).join(' '))],
    ...people.map((text) => [text] as const),
    [rest.join(' '), 'gray'],
  ];
  let left = terminal.width ?? Infinity;
  return parts
    .filter(([text]) => text !== '')
    .flatMap(([text, color]) => {
      if (left <= 0) return [];
      const shown = cutToWidth(text, left);
      left -= widthOf(shown) + 1;
      return [color ? colored(terminal, color, shown) : shown];
    })
    .join(' ')
    .trimEnd();
}
