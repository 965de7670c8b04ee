/**
 * Outcome → HTTP (step 8): one switch, and the bodies that every real client can read.
 *
 * Before: `accept.ts`, once the flush is durable (`batch-committer.ts`). After: `exchange.ts` writes it, and the client
 * is done. The commit batch goes on in `platform/src/queue/queue.ts`.
 */
import type { Issue } from '@sluice/domain/operations/issue';
import { problemBody } from '@sluice/domain/values/problem';
import type { ItemResult, Outcome } from '../calls/outcome.ts';
import type { Call } from '../calls/calls.ts';
import type { RateStanding } from '../auth/rate-limit.ts';

export interface Answer {
  readonly status: string;
  readonly body: string;
  readonly retryAfterSeconds?: number;
  readonly authenticate?: boolean;
}

/** The `WWW-Authenticate` of a 401. */
export const BASIC_CHALLENGE = 'Basic realm="sluice"';

/** Some clients take only 200 for success, so it is never 201 or 202. */
const OK: Answer = { status: '200 OK', body: '{}\n' };
const NO_CONTENT: Answer = { status: '204 No Content', body: '' };

/** Everything refused is 400: one client retries every other 4xx without end. */
const BAD_REQUEST = '400 Bad Request';

const MULTI_STATUS = '207 Multi-Status';

const resultsBody = (items: readonly ItemResult[]): string =>
  `${JSON.stringify({ results: items })}\n`;

/** Outcome → status and body. `standing` if the workspace has a limit. */
export function answerOf(call: Call, outcome: Outcome, standing?: RateStanding): Answer {
  switch (outcome.outcome) {
    case 'accepted':
      if (outcome.items) return { status: OK.status, body: resultsBody(outcome.items) };
      return call.success === 'no-content' ? NO_CONTENT : OK;
    case 'partly-accepted':
      if (outcome.items) return { status: MULTI_STATUS, body: resultsBody(outcome.items) };
      return {
        status: MULTI_STATUS,
        body: problem(
          207,
          'partly_accepted',
          'some items were refused and the others accepted; errors names each refused one',
          outcome.issues,
        ),
      };
    case 'rejected': {
      const [first] = outcome.issues;
      const message =
        outcome.issues.length === 1 && first
          ? first.message
          : `${outcome.issues.length} problems in the request`;
      return {
        status: BAD_REQUEST,
        body: problem(400, first?.code ?? 'invalid', message, outcome.issues),
      };
    }
    case 'unauthorized':
      return {
        status: '401 Unauthorized',
        body: problem(
          401,
          'unauthorized',
          outcome.message ?? 'Unauthorized request: the credentials are missing or not in force',
        ),
        authenticate: true,
      };
    case 'rate-limited':
      return {
        status: '429 Too Many Requests',
        body: problem(
          429,
          'rate_limited',
          'too many calls of this workspace; send it again after the time in Retry-After',
        ),
        retryAfterSeconds: standing?.retryAfterSeconds ?? 1,
      };
    case 'overloaded':
      return {
        status: '503 Service Unavailable',
        body: problem(
          503,
          'overloaded',
          'the call was not stored; send it again after the time in Retry-After',
        ),
        retryAfterSeconds: outcome.retryAfterSeconds,
      };
  }
}

/** A sender of a batch corrects it by these; in 50,000 problems an answer had 50 MB, held for a sender who does not read. */
const DETAIL_COUNT_MAX = 1_000;

/** The first ones, and from there on the first one of each item: every refused item is named. */
function toldOf(issues: readonly Issue[]): readonly Issue[] {
  if (issues.length <= DETAIL_COUNT_MAX) return issues;
  return issues.filter(
    ({ batchIndex }, place) =>
      place < DETAIL_COUNT_MAX ||
      (batchIndex !== undefined && batchIndex !== issues[place - 1]?.batchIndex),
  );
}

const WITHOUT_DETAILS =
  'the details are left out, because the answers to earlier calls have not been read; read each answer';

/** The answer of a call whose workspace has too many unread answers: the same, without its items or its problems. */
export function withoutDetails(answer: Answer, outcome: Outcome): Answer {
  switch (outcome.outcome) {
    case 'accepted':
      return { ...answer, body: OK.body };
    case 'partly-accepted':
      return { ...answer, body: problem(207, 'partly_accepted', WITHOUT_DETAILS) };
    case 'rejected': {
      const count = outcome.issues.length;
      const message = `${count} problems in the request; ${WITHOUT_DETAILS}`;
      return { ...answer, body: problem(400, outcome.issues[0]?.code ?? 'invalid', message) };
    }
    default:
      return answer;
  }
}

/** For requests that never reach the use case: an unknown path, a wrong method, broken framing. */
export function problem(
  status: number,
  code: string,
  message: string,
  issues: readonly Issue[] = [],
): string {
  return `${JSON.stringify(
    problemBody({
      status,
      code,
      message,
      details: toldOf(issues).map((issue) => ({
        field: issue.field,
        reason: issue.code,
        message: issue.message,
        ...(issue.batchIndex === undefined ? {} : { batchIndex: issue.batchIndex }),
        ...(issue.pointer !== undefined && { source: { pointer: pointerInBody(issue) } }),
      })),
    }),
  )}\n`;
}

/** Messages alone are held to schemas, by themselves or in their list. */
const pointerInBody = ({ pointer = '', batchIndex }: Issue): string =>
  batchIndex === undefined ? pointer : `/messages/${batchIndex}${pointer}`;

/** @param counts - by status; accepted calls are not counted. */
export function countRefused(counts: Map<string, number>, status: string): void {
  // First the statuses of nearly all calls: a method of texts takes 0.05 µs more to be found.
  if (status === '200 OK' || status.startsWith('2')) return;
  const code = status.slice(0, 3);
  counts.set(code, (counts.get(code) ?? 0) + 1);
}

/** In a turn of the event loop, a few milliseconds; more come from connections that do not wait for their answers. */
const PROMPT_REQUEST_COUNT_MAX = 256;

/**
 * Requests that came in this turn of the event loop. uWebSockets.js reads the next request of a connection in the same
 * turn, if the one before it is answered; if not, it closes the connection. A sender of prepared requests that are answered at once
 * kept the event loop for as long as it sent. So in a turn of many requests answers wait for the end of the turn.
 */
export class RequestTurns {
  #count = 0;
  #turn = 0;

  /** Of the turn. */
  get number(): number {
    return this.#turn;
  }

  /** @param turn - `number` when the request came. */
  mustWait(turn: number): boolean {
    return this.#count > PROMPT_REQUEST_COUNT_MAX && turn === this.#turn;
  }

  heard(): void {
    if (this.#count++ === 0) setImmediate(this.#endTurn);
  }

  /** Runs at once, or at the end of a turn of many requests. */
  run(write: () => void): void {
    if (this.mustWait(this.#turn)) setImmediate(write);
    else write();
  }

  readonly #endTurn = (): void => {
    this.#count = 0;
    this.#turn++;
  };
}
