/**
 * Server-sent events by `fetch`. `EventSource` shows neither the status nor the text of a refusal, and cannot name the
 * workspace in a header.
 */
import type { Call } from './call.ts';

export interface ServerEvent {
  readonly type: string;
  readonly data: string;
}

/** Blocks end with an empty line; a line is a field and its value. A comment is no event. */
export function parseEvents(text: string): { events: ServerEvent[]; rest: string } {
  const blocks = text.split('\n\n');
  const rest = blocks.pop() ?? '';
  const events = blocks.flatMap((block) => {
    let type = 'message';
    const data: string[] = [];
    for (const line of block.split('\n')) {
      if (line.startsWith('event:')) type = line.slice(6).trim();
      else if (line.startsWith('data:')) data.push(line.slice(5).trimStart());
    }
    return data.length === 0 ? [] : [{ type, data: data.join('\n') }];
  });
  return { events, rest };
}

/**
 * Reads until the server ends the stream or `signal` aborts it.
 *
 * @param onOpen - called once, when the server has accepted.
 * @throws RequestFailed if it refuses; the fetch's own error if the stream breaks.
 */
export async function readServerEvents(
  call: Call<ReadableStream<Uint8Array<ArrayBuffer>>>,
  workspaceId: number,
  signal: AbortSignal,
  onOpen: () => void,
  onEvents: (events: readonly ServerEvent[]) => void,
): Promise<void> {
  const lines = await call.send({ workspaceId, signal });
  onOpen();
  const reader = lines.pipeThrough(new TextDecoderStream()).getReader();
  let unread = '';
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    const { events, rest } = parseEvents(unread + part.value);
    unread = rest;
    if (events.length > 0) onEvents(events);
  }
}
