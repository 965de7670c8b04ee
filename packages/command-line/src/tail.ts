/** `sluice tail`: what comes in and what is reported, as it happens, from every process. */
import { setTimeout as sleep } from 'node:timers/promises';
import { AppError } from '@sluice/domain/errors';
import type { ApiClient } from './api-client.ts';
import { colored, type Color, type Terminal } from './terminal.ts';

export interface TailOptions {
  readonly person?: string;
  readonly name?: string;
  readonly outcome?: string;
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

/**
 * Until `signal`. A tail that the API ends, or that breaks off, is begun again after a moment.
 *
 * @throws AppError COMMAND_FAILED where it cannot be.
 */
export async function tail(
  api: ApiClient,
  terminal: Terminal,
  options: TailOptions,
  signal: AbortSignal,
): Promise<void> {
  const query = new URLSearchParams(Object.entries(options).filter(([, value]) => value));
  while (!signal.aborted) {
    try {
      const answer = await api.open(`/v1/stream?${query.toString()}`, signal);
      terminal.progress('listening; Ctrl-C ends it');
      terminal.progressDone();
      await readEvents(answer, (event, data) => writeLine(terminal, event, data));
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof AppError) throw error;
      terminal.progress(`the stream broke off (${(error as Error).message}); it is opened again`);
      terminal.progressDone();
    }
    await sleep(AGAIN_AFTER_MS, undefined, { signal }).catch(() => undefined);
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
    terminal.line(JSON.stringify({ event, ...(JSON.parse(data) as object) }));
    return;
  }
  if (event === 'dropped') {
    const { count } = JSON.parse(data) as { count: number | null };
    terminal.line(colored(terminal, 'gray', `${count ?? 'some'} lines lost: too many to show`));
    return;
  }
  const line = JSON.parse(data) as TailLine;
  const time = new Date(line.at_ms).toISOString().slice(11, 23);
  const people = line.people.map((person) =>
    Object.entries(person)
      .map(([kind, value]) => `${kind}=${value}`)
      .join(' '),
  );
  const { type, source, ...details } = line.details;
  const rest = Object.entries(details)
    .filter(([, value]) => value !== null)
    .map(([name, value]) => `${name}=${String(value)}`);
  terminal.line(
    [
      colored(terminal, 'gray', time),
      event.padEnd(8),
      colored(terminal, COLORS[line.outcome] ?? 'cyan', line.outcome.padEnd(9)),
      line.name ?? `${type ?? source ?? ''}`,
      ...people,
      colored(terminal, 'gray', rest.join(' ')),
    ].join(' '),
  );
}
