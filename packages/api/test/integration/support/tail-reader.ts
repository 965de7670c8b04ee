/** A reader of the live tail over a real socket. It may be slow. */
import { request as httpRequest, type IncomingMessage } from 'node:http';

export interface TailReader {
  readonly answer: IncomingMessage;
  /** All that it has read. */
  readonly read: () => string;
  /** The data of its server-sent events of a kind. */
  readonly events: (kind: string) => Record<string, unknown>[];
  /** Ends the slowness of a slow one. */
  readonly readNow: () => void;
  isEnded: boolean;
}

interface TailRequest {
  readonly port: number;
  /** Absent: `headers` name the reader. */
  readonly key?: string;
  /** With its question mark. */
  readonly query: string;
  readonly headers?: Record<string, string>;
  /** Does not read until the test starts it. */
  readonly isSlow?: boolean;
}

/** Resolves with the head of the answer. */
export async function openTailReader({
  port,
  key,
  query,
  headers = {},
  isSlow = false,
}: TailRequest): Promise<TailReader> {
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    httpRequest(
      {
        port,
        host: '127.0.0.1',
        path: `/v1/stream${query}`,
        headers: { ...(key !== undefined && { authorization: `Bearer ${key}` }), ...headers },
      },
      resolve,
    )
      .on('error', reject)
      .end();
  });
  answer.on('error', () => undefined);
  let text = '';
  const reader: TailReader = {
    answer,
    read: () => text,
    events: (kind) =>
      text
        .split('\n\n')
        // After the last blank line an event may still be on its way.
        .slice(0, -1)
        .filter((block) => block.startsWith(`event: ${kind}\n`))
        .map((block) => JSON.parse(block.slice(block.indexOf('\ndata: ') + 7))),
    readNow: () => answer.on('data', (part: string) => (text += part)),
    isEnded: false,
  };
  answer.setEncoding('utf8');
  answer.on('end', () => (reader.isEnded = true));
  if (!isSlow) reader.readNow();
  return reader;
}
