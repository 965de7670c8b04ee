/**
 * Receivers' answers to a request, and the results of the delivery.
 *
 * The receivers have read the request.
 */
import type { Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { StallWatch } from '@sluice/platform/testing/stall-watch';
import { outcomeOf, type HttpOutcome } from '../../../src/http/http-outcome.ts';
import { answer, type ReceivedRequest } from '../../support/receiver.ts';
import { HOUR_MS, POLICY } from './lane-world.ts';

const OK_HEAD = 'HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\n';

/** 64 MB of zeros, compressed. */
const BOMB = gzipSync(Buffer.alloc(64 * 1_048_576));

/** Of the first wait, with the chance that the lane world has. */
export const BACKOFF_MS = POLICY.backoffBaseMs * 0.75;

export interface HostileAnswer {
  readonly does: string;
  /** Called with the start of the attempt, by the monotonic clock. */
  readonly onRequest: (request: ReceivedRequest, startedAtMs: number) => void;
  readonly failure: string | null;
  readonly status: number | null;
  readonly waitMs: number | null;
}

export const HOSTILE_ANSWERS: readonly HostileAnswer[] = [
  {
    does: 'accepts and never answers',
    onRequest: () => {},
    failure: 'timeout',
    status: null,
    waitMs: BACKOFF_MS,
  },
  {
    does: 'answers at 3 s',
    onRequest: ({ socket }, startedAtMs) => answerAt(socket, startedAtMs + 3_000),
    failure: null,
    status: 200,
    waitMs: null,
  },
  {
    does: 'answers at 4.1 s',
    onRequest: ({ socket }, startedAtMs) => answerAt(socket, startedAtMs + 4_100),
    failure: 'timeout',
    status: null,
    waitMs: BACKOFF_MS,
  },
  {
    does: 'drips its head, a byte a second',
    onRequest: ({ socket }) => drip(socket, answer(200)),
    failure: 'timeout',
    status: null,
    waitMs: BACKOFF_MS,
  },
  {
    does: 'drips its body, a byte a second',
    onRequest: ({ socket }) => {
      socket.write(OK_HEAD);
      drip(socket, '0123456789');
    },
    failure: 'timeout',
    status: 200,
    waitMs: BACKOFF_MS,
  },
  {
    does: 'resets before the head',
    onRequest: ({ socket }) => void socket.resetAndDestroy(),
    failure: 'connection_reset',
    status: null,
    waitMs: HOUR_MS,
  },
  {
    does: 'resets during the head',
    onRequest: ({ socket }) => resetAfter(socket, 'HTTP/1.1 200 O'),
    failure: 'connection_reset',
    status: null,
    waitMs: HOUR_MS,
  },
  {
    does: 'resets after the head',
    onRequest: ({ socket }) => resetAfter(socket, `${OK_HEAD}abc`),
    failure: 'connection_reset',
    status: 200,
    waitMs: HOUR_MS,
  },
  {
    does: 'closes its half instead of answering',
    onRequest: ({ socket }) => void socket.end(),
    failure: 'end_of_file',
    status: null,
    waitMs: HOUR_MS,
  },
  {
    does: 'closes its half in the middle of the body',
    onRequest: ({ socket }) => void socket.end(`${OK_HEAD}abc`),
    failure: 'end_of_file',
    status: 200,
    waitMs: HOUR_MS,
  },
  {
    does: 'sends garbage instead of HTTP',
    onRequest: ({ socket }) => void socket.write('\0\u0001SSH-2.0-OpenSSH_9.6\r\n\r\n'),
    failure: 'misbehaving_server',
    status: null,
    waitMs: HOUR_MS,
  },
  {
    does: 'sends a flood of 100 Continue',
    onRequest: ({ socket }) => void socket.write('HTTP/1.1 100 Continue\r\n\r\n'.repeat(10_000)),
    failure: 'misbehaving_server',
    status: null,
    waitMs: HOUR_MS,
  },
  {
    does: 'sends a body of 10 GB',
    onRequest: ({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\ncontent-length: 10000000000\r\n\r\n');
      pour(socket);
    },
    failure: null,
    status: 200,
    waitMs: null,
  },
  {
    does: 'sends a body without end',
    onRequest: ({ socket }) => {
      socket.write('HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n');
      pour(socket);
    },
    failure: null,
    status: 200,
    waitMs: null,
  },
  {
    does: 'sends a gzip bomb',
    onRequest: ({ socket }) => {
      socket.write(
        `HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: ${BOMB.length}\r\n\r\n`,
      );
      socket.write(BOMB);
    },
    failure: null,
    status: 200,
    waitMs: null,
  },
  {
    does: 'answers 500 with a body of 10 GB',
    onRequest: ({ socket }) => {
      socket.write('HTTP/1.1 500 No\r\ncontent-length: 10000000000\r\n\r\n');
      pour(socket);
    },
    failure: 'status',
    status: 500,
    waitMs: HOUR_MS,
  },
];

/** After a longer one an answer and a deadline may be due together: then either may come first. */
const STANDSTILL_MS = 200;
const TRIES_MAX = 3;

/**
 * Sends again if the outcome is a timeout in place of the expected outcome, or the reverse, and this process stood still
 * meanwhile. The receiver is in this process too.
 */
export async function sendSteadily(
  post: () => Promise<HttpOutcome>,
  { failure, status }: Pick<HostileAnswer, 'failure' | 'status'>,
): Promise<HttpOutcome> {
  for (let tries = 1; ; tries++) {
    const watch = new StallWatch();
    const outcome = await post().finally(() => void watch.stop());
    const found = outcomeOf(outcome);
    const isExpected = found === (failure ?? 'delivered') && outcome.status === status;
    const isByTime = found === 'timeout' || failure === 'timeout';
    const isDisturbed = watch.longestMs >= STANDSTILL_MS;
    if (isExpected || !isByTime || !isDisturbed || tries === TRIES_MAX) return outcome;
  }
}

function answerAt(socket: Socket, atMs: number): void {
  const timer = setTimeout(() => socket.write(answer(200)), atMs - performance.now());
  socket.on('close', () => clearTimeout(timer));
}

function drip(socket: Socket, text: string): void {
  let sent = 0;
  const timer = setInterval(() => socket.write(text.charAt(sent++)), 1_000);
  socket.on('close', () => clearInterval(timer));
}

function resetAfter(socket: Socket, text: string): void {
  socket.write(text, () => setTimeout(() => socket.resetAndDestroy(), 50));
}

function pour(socket: Socket): void {
  const chunk = Buffer.alloc(65_536, 'x');
  const more = (): void => {
    while (!socket.destroyed && socket.write(chunk));
  };
  socket.on('drain', more);
  more();
}
