/** `sluice tail`: what comes in and what is reported, as it happens, from every process. */
import { AppError, reasonOf } from '@sluice/domain/values/errors';
import { printable, printableJson } from '@sluice/domain/values/printable';
import type { ApiClient } from './api-client.ts';
import { colored, type Color, type Terminal } from './terminal.ts';

export interface TailOptions {
  readonly person?: string;
  readonly name?: string;
  readonly outcome?: string;
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

const AGAIN_AFTER_MS = 500;
/** A restarted API is there again by then; until then the tail goes on trying. */
const THERE_AGAIN_WITHIN_MS = 60_000;

/**
 * Until `signal`. A tail that the API ends is begun again at once, so that little is missed; one that
 * broke off, or ended as it had begun, after a moment.
 *
 * @throws AppError COMMAND_FAILED where it cannot be begun.
 */
export async function tail(
  { api, terminal, now, pause, signal }: TailDependencies,
  options: TailOptions,
): Promise<void> {
  const query = new URLSearchParams(Object.entries(options).filter(([, value]) => value));
  let openUntilMs: number | undefined;
  let isSaid = false;
  while (!signal.aborted) {
    const openedAtMs = now();
    try {
      const answer = await api.open(`/v1/stream?${query.toString()}`, signal);
      isSaid = false;
      terminal.note('listening; Ctrl-C ends it');
      await readEvents(answer, (event, data) => writeLine(terminal, event, data));
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

function writeLine(terminal: Terminal, event: string, data: string): void {
  if (terminal.isJson) {
    terminal.line(printableJson({ event, ...(JSON.parse(data) as object) }));
    return;
  }
  if (event === 'dropped') {
    const { count } = JSON.parse(data) as { count: number | null };
    terminal.line(colored(terminal, 'gray', `${count ?? 'some'} lines lost: too many to show`));
    return;
  }
  const line = JSON.parse(data) as TailLine;
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
  terminal.line(
    [
      colored(terminal, 'gray', time),
      event.padEnd(8),
      colored(terminal, COLORS[line.outcome] ?? 'cyan', line.outcome.padEnd(9)),
      printable(line.name ?? `${type ?? source ?? ''}`),
      ...people,
      colored(terminal, 'gray', rest.join(' ')),
    ].join(' '),
  );
}
