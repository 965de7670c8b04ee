/**
 * The use case of a stream (`POST /v1/stream`): newline-delimited calls of any number on one request, taken in groups,
 * each acknowledged once it is durable.
 * ```
 *   lines ─▶ group (building) ─▶ group (in flight) ─▶ acknowledged: {"line":N,"issues":[…]}
 *              at most one           at most one
 * ```
 * Group commit as in `batcher.ts`: lines that came while the last group was being made durable are the next group,
 * without a timer. A bad line is an issue of its group and its neighbours are taken. In strict mode it ends the stream,
 * after the lines before it. Unacknowledged lines may or may not have been taken, and may be sent again
 * (`stream-line.ts`).
 *
 * Before: `stream-exchange.ts`, `split-lines.ts`, `stream-line.ts`. After: `batcher.ts`.
 */
import { isError } from '@sluice/domain/operations/issue';
import type { AcceptDependencies } from '../calls/accept.ts';
import { recordIssues } from '../calls/call-issues.ts';
import { sizeBytesMaxOf } from '../calls/strict-mode.ts';
import type { CommitSlots } from './commit-slots.ts';
import { OperationWriter } from '../groups/operation-writer.ts';
import { LineSplitter, type Line } from './split-lines.ts';
import { InflationRatioExceeded } from './stream-bytes.ts';
import { isBlank, readLine, type LineOrigin } from './stream-line.ts';
import { GROUP_LINES_MAX, isFull, type Group, type LineIssue } from './stream-group.ts';

import { StreamPace } from './stream-pace.ts';
import { TailedCall } from '../calls/tailed-call.ts';
import type { StreamTrace } from '../http/trace-calls.ts';
import type { Turn, Turns } from '../http/turns.ts';

export interface StreamRequest extends LineOrigin {
  /** The number of the first line that comes. */
  readonly firstLine: number;
  /** Undefined: not traced. */
  readonly trace: Pick<StreamTrace, 'mark'> | undefined;
}

/** Every line up to this one is durable, or is among these issues or the issues of an earlier one. */
export interface Acknowledgement {
  readonly line: number;
  readonly issues: readonly LineIssue[];
}

/** How the taking ended; the caller knows why there were no more bytes. */
export type StreamOutcome =
  | { readonly outcome: 'read-to-end' }
  /** Strict mode: a line was refused. It and the lines after it are not taken. */
  | { readonly outcome: 'rejected'; readonly issues: readonly LineIssue[] }
  | { readonly outcome: 'invalid-encoding'; readonly message: string }
  | { readonly outcome: 'inflation-ratio-exceeded' }
  /** The key is no longer in force. Lines after the last acknowledged one are not taken. */
  | { readonly outcome: 'unauthorized' }
  /** Lines after the last acknowledged one could not be made durable. */
  | { readonly outcome: 'overloaded'; readonly retryAfterSeconds: number };

export interface StreamDependencies extends AcceptDependencies {
  readonly pause: (durationMs: number) => Promise<unknown>;
  readonly turns: Turns;
  readonly commitSlots: CommitSlots;
  /** Of workspaces whose calls wait to be admitted (`commit/admission.ts`). */
  readonly waitingSlots: CommitSlots;
  /** Milliseconds that never go back. */
  readonly monotonicNow: () => number;
}

export interface StreamPort {
  /** Called in order of lines. */
  readonly acknowledge: (acknowledgement: Acknowledgement) => void;
  /** Resolves when the sender has capacity for more acknowledgements. */
  readonly writable: () => Promise<void>;
  /** This process stops: no more bytes come, and the stream must end soon. */
  readonly isStopping: () => boolean;
  /** The sender has ended the body: the bytes after the last newline are a whole line too. */
  readonly isComplete: () => boolean;
  /** The sender is gone: lines that are not in flight are dropped. */
  readonly isCut: () => boolean;
  /** The bytes ended before the body: by a cut, a stop, or a sender that was idle for too long. */
  readonly hasEndedEarly: () => boolean;
  /** Its key is in force; asked for each group, since a stream may stay open for days. */
  readonly isAuthorized: () => boolean;
  /** No more lines are wanted: a pending read ends. */
  readonly stopReading: () => void;
}

/** How long a group waits for capacity among the calls of others before the stream is ended. */
const CAPACITY_WAIT_MS_MAX = 10_000;
const CAPACITY_RETRY_MS = 50;
/**
 * A piece of a few lines is read at once; it takes a tenth of a millisecond. But 64 KB that come in small chunks are
 * sixteen such pieces, of each stream, so all streams together have a bound (`Turns.mayWorkAtOnce`).
 */
const SMALL_PIECE_SIZE_BYTES_MAX = 4_096;

/**
 * Takes lines until there are no more, or one of the outcomes ends it. Everything taken is acknowledged when it resolves.
 *
 * One group is in flight at most, so no line after a failed one is taken before it, and "durable up to line N" has no holes.
 * A group that fills while the one before is in flight stops the reading: the sender waits.
 */
export async function takeStream(
  deps: StreamDependencies,
  request: StreamRequest,
  bytes: AsyncIterable<Uint8Array>,
  port: StreamPort,
): Promise<StreamOutcome> {
  return new StreamTaker(deps, request, port).take(bytes);
}

class StreamTaker {
  readonly #deps: StreamDependencies;
  readonly #request: StreamRequest;
  readonly #port: StreamPort;
  #group: Group;
  #inFlight: Promise<void> | undefined;
  #ending: StreamOutcome | undefined;
  /** The last one, which may have time left. */
  #turn: Turn | undefined;
  readonly #pace: StreamPace;
  /** Empty, to be used again: two groups take turns. */
  readonly #writers: OperationWriter[] = [];

  constructor(deps: StreamDependencies, request: StreamRequest, port: StreamPort) {
    this.#deps = deps;
    this.#request = request;
    this.#port = port;
    this.#group = this.#emptyGroup(request.firstLine - 1);
    this.#pace = new StreamPace(deps.monotonicNow);
  }

  async take(bytes: AsyncIterable<Uint8Array>): Promise<StreamOutcome> {
    const { call, isStrict, firstLine } = this.#request;
    const splitter = new LineSplitter(sizeBytesMaxOf(call, isStrict), firstLine);
    try {
      for await (const piece of bytes) {
        splitter.add(piece);
        await this.#takePiece(piece.length, splitter);
        if (this.#isDone()) break;
        this.#startCommit();
        // Not only for full groups: the answers to bad lines are much larger than the lines.
        await this.#port.writable();
        await this.#waitForPace();
        if (this.#isDone()) break;
      }
      const last = splitter.last();
      if (last && !this.#ending && this.#port.isComplete()) this.#take(last);
    } catch (error) {
      if (this.#ending === undefined) this.#ending = this.#cannotInflate(error as Error);
    }
    if (this.#port.isCut()) this.#group = this.#emptyGroup(this.#group.line);
    this.#startCommit();
    // A commit that ends begins the next one.
    while (this.#inFlight !== undefined) await this.#inFlight;
    return this.#ending ?? { outcome: 'read-to-end' };
  }

  #cannotInflate(error: Error): StreamOutcome {
    const { call, workspace } = this.#request;
    const isBeyondRatio = error instanceof InflationRatioExceeded;
    // A part of a valid body ends in the middle of its compressed data: that is no fault of its sender.
    if (isBeyondRatio || !this.#port.hasEndedEarly()) {
      const message = `the body cannot be inflated: ${error.message}`;
      const issue = { code: 'invalid_encoding', field: null, message } as const;
      this.#deps.recordRefusal?.(workspace, call.name, [issue]);
    }
    return isBeyondRatio
      ? { outcome: 'inflation-ratio-exceeded' }
      : { outcome: 'invalid-encoding', message: error.message };
  }

  /** Takes the lines of a piece, in as many turns as that takes. */
  async #takePiece(sizeBytes: number, splitter: LineSplitter): Promise<void> {
    const { turns, rateLimiter } = this.#deps;
    const { environmentId } = this.#request.workspace;
    // Small pieces share a turn: with one each, a stream would get 4 KB in an iteration of the event loop.
    const rest = this.#turn?.isOver() === false ? this.#turn : undefined;
    // One byte may end a line of 64 KB.
    const workSizeBytes = splitter.startedSizeBytes + sizeBytes;
    const needsTurn =
      workSizeBytes > SMALL_PIECE_SIZE_BYTES_MAX ||
      (rest === undefined && !turns.mayWorkAtOnce(workSizeBytes));
    let turn = needsTurn ? await turns.next(environmentId) : rest;
    let lineCount = 0;
    for (; !this.#isDone(); lineCount++) {
      if (rateLimiter === undefined) lineCount += this.#passBlank(splitter);
      const line = splitter.next();
      if (line === undefined) break;
      if (rateLimiter !== undefined) await this.#waitForToken();
      this.#take(line);
      if (isFull(this.#group, turns)) await this.#handOver();
      if (turn?.isOver()) turn = await turns.next(environmentId);
    }
    this.#turn = turn;
    this.#pace.spend(sizeBytes, lineCount);
  }

  /** Blank lines count as lines, and need no other work. */
  #passBlank(splitter: LineSplitter): number {
    const group = this.#group;
    const count = splitter.passBlank(GROUP_LINES_MAX - 1 - group.lineCount);
    group.lineCount += count;
    group.line += count;
    return count;
  }

  /** As for its rate: the sender waits. */
  #waitForPace(): Promise<void> {
    return this.#pace.wait(this.#deps.pause, () => this.#isDone() || this.#port.isStopping());
  }

  /** The reading is over: it has ended, or the sender is gone. */
  #isDone(): boolean {
    return this.#ending !== undefined || this.#port.isCut();
  }

  /** Throttled rather than refused: the sender waits for its rate. */
  async #waitForToken(): Promise<void> {
    const { rateLimiter, pause } = this.#deps;
    if (rateLimiter === undefined) return;
    const { environmentId } = this.#request.workspace;
    while (!rateLimiter.take(environmentId).isTaken && !this.#isOver()) {
      this.#startCommit();
      await pause(CAPACITY_RETRY_MS);
    }
  }

  #take(line: Line): void {
    const group = this.#group;
    if (line.isTooLarge || !isBlank(line.bytes)) {
      const { call, workspace, isStrict } = this.#request;
      const receivedAtMs = this.#deps.now();
      const { operations, issues } = readLine(this.#request, line, receivedAtMs, this.#deps.newId);
      const published = issues.map((issue): LineIssue => ({ ...issue, line: line.number }));
      if (isStrict && issues.some(isError)) {
        this.#deps.recordRefusal?.(workspace, call.name, issues.filter(isError));
        this.#ending = { outcome: 'rejected', issues: published };
        return;
      }
      for (const operation of operations) group.operations.add(operation);
      if (published.length > 0) {
        for (const record of recordIssues(call, workspace, receivedAtMs, issues))
          group.operations.add(record);
        group.issues.push(...published);
      }
      group.sizeBytes += line.bytes.length;
    }
    group.line = line.number;
    group.lineCount++;
  }

  /** A full group waits for the end of the one in flight, and for the sender to read. */
  async #handOver(): Promise<void> {
    while (this.#inFlight !== undefined && !this.#ending) await this.#inFlight;
    this.#startCommit();
    await this.#port.writable();
  }

  /** Commits the waiting lines unless a group is in flight; the end of that calls this again. */
  #startCommit(): void {
    if (this.#inFlight !== undefined || this.#group.lineCount === 0 || this.#isOver()) return;
    if (!this.#port.isAuthorized()) {
      this.#ending = { outcome: 'unauthorized' };
      this.#port.stopReading();
      return;
    }
    const group = this.#group;
    this.#group = this.#emptyGroup(group.line);
    this.#request.trace?.mark(group.operations.operations);
    this.#inFlight = this.#commit(group).then((isDurable) => {
      this.#inFlight = undefined;
      if (!isDurable) {
        this.#ending = {
          outcome: 'overloaded',
          retryAfterSeconds: this.#deps.retryAfterSeconds(),
        };
        return;
      }
      this.#port.acknowledge({ line: group.line, issues: group.issues });
      this.#publish(group);
      if (!group.operations.keepsOperations) {
        group.operations.clear();
        this.#writers.push(group.operations);
      }
      this.#startCommit();
    });
  }

  #emptyGroup(line: number): Group {
    const { tail, batcher } = this.#deps;
    const { workspace, trace } = this.#request;
    const keepsOperations =
      trace !== undefined || batcher.isTraced || tail?.isTailed(workspace.environmentId) === true;
    // Writers that keep operations are not used again: the tail may be closed by then.
    const operations = keepsOperations
      ? new OperationWriter(true)
      : (this.#writers.pop() ?? new OperationWriter(false));
    return { operations, issues: [], sizeBytes: 0, line, lineCount: 0 };
  }

  /** Publishes to readers of the workspace's live tail. */
  #publish({ operations, issues }: Group): void {
    const { call, workspace } = this.#request;
    const { tail, now } = this.#deps;
    if (!tail?.isTailed(workspace.environmentId)) return;
    const tailed = new TailedCall(call.name, now());
    tailed.found(operations.operations, issues);
    tail.publish(workspace.environmentId, tailed.lines({ outcome: 'accepted' }));
  }

  /** A commit failed, its key is gone or the sender is: no further commit begins. */
  #isOver(): boolean {
    const ending = this.#ending?.outcome;
    return ending === 'overloaded' || ending === 'unauthorized' || this.#port.isCut();
  }

  async #commit(group: Group): Promise<boolean> {
    const operationCount = group.operations.count;
    if (operationCount === 0) return true;
    const { commitSlots, waitingSlots, batcher } = this.#deps;
    const { environmentId } = this.#request.workspace;
    // A group that waits to be admitted must not keep the place of others.
    const slots = batcher.mustWait(environmentId) ? waitingSlots : commitSlots;
    const release = await slots.take(environmentId, operationCount);
    try {
      // While it waited the sender may have gone.
      return this.#port.isCut() ? false : await this.#commitNow(group);
    } finally {
      release();
    }
  }

  async #commitNow({ operations, sizeBytes }: Group): Promise<boolean> {
    const { batcher, pause, monotonicNow } = this.#deps;
    for (const startedAtMs = monotonicNow(); ;) {
      let answer: (isDurable: boolean) => void;
      const answered = new Promise<boolean>((resolve) => (answer = resolve));
      const isTaken = batcher.addWritten(operations, sizeBytes, (outcome) =>
        answer(outcome === 'committed'),
      );
      if (isTaken) return answered;
      if (monotonicNow() - startedAtMs > CAPACITY_WAIT_MS_MAX || this.#port.isCut()) return false;
      await pause(CAPACITY_RETRY_MS);
    }
  }
}
