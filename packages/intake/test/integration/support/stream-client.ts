/**
 * A sender of `POST /v1/stream` that reads while it writes.
 *
 * It writes one piece at a time.
 */
import { once } from 'node:events';
import { request, type ClientRequest, type IncomingMessage } from 'node:http';
import { createInterface } from 'node:readline';
import { PIPELINES_AUTHORIZATION } from './intake-under-test.ts';

export interface StreamLine {
  readonly line: number;
  readonly end?: string;
  readonly refused?: number;
  readonly message?: string;
  readonly issues?: readonly {
    line: number;
    code: string;
    field: string | null;
    severity: string;
  }[];
  readonly retry_after_seconds?: number;
}

export interface StreamClient {
  readonly status: () => number | undefined;
  /** Answers so far. */
  readonly answers: readonly StreamLine[];
  /** Resolves with the next line of the answer; never after its end. */
  answered(): Promise<void>;
  /** Resolves when the socket takes more. */
  write(bytes: string | Uint8Array): Promise<void>;
  /** Ends the body, and resolves with the last line. */
  end(): Promise<StreamLine>;
  /** Resolves when the answer has ended, however it did. */
  readonly ended: Promise<void>;
  cut(): void;
}

export function openStream(
  url: string,
  headers: Record<string, string> = {},
  query = '',
): StreamClient {
  const answers: StreamLine[] = [];
  const waiting: (() => void)[] = [];
  let status: number | undefined;
  const sender: ClientRequest = request(`${url}/v1/stream${query}`, {
    method: 'POST',
    agent: false,
    headers: { Authorization: PIPELINES_AUTHORIZATION, ...headers },
  });
  sender.flushHeaders();
  // The last bytes of a sender that must stop have no reader.
  sender.on('error', () => undefined);
  const ended = new Promise<void>((resolve) => {
    sender.once('response', (response: IncomingMessage) => {
      status = response.statusCode;
      response.on('error', () => undefined);
      createInterface({ input: response })
        .on('line', (line) => {
          answers.push(JSON.parse(line) as StreamLine);
          for (const wake of waiting.splice(0)) wake();
        })
        .on('error', () => undefined)
        .once('close', resolve);
    });
    sender.once('close', resolve);
  });
  return {
    status: () => status,
    answers,
    answered: () => new Promise((resolve) => waiting.push(resolve)),
    async write(bytes) {
      if (!sender.write(bytes) && !sender.destroyed) {
        await Promise.race([once(sender, 'drain'), ended]);
      }
    },
    async end() {
      sender.end();
      await ended;
      return answers.at(-1) ?? { line: -1 };
    },
    ended,
    cut: () => void sender.destroy(),
  };
}
