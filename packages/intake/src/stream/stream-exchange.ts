/**
 * One stream on its socket: its bytes, its acknowledgements. The rules of uWebSockets.js are kept here
 * as in `exchange.ts`.
 *
 * It answers 200 with a line of JSON for each committed group and one at the end, in which `end` has the reason. A fault
 * before the first byte is read is an ordinary problem (401, 400, 503), in both modes: a 200 for a stream whose lines are
 * dropped would mislead the sender.
 *
 * Before: `server.ts`. After: `stream-request.ts`, `stream-bytes.ts`, `take-stream.ts`.
 */
import type { SharedCapacity } from '@sluice/platform/process/shared-capacity';
import { isError } from '@sluice/domain/operations/issue';
import { problem } from '../http/answer.ts';
import type { CutReason } from '../connections/cut-connections.ts';
import type { BodyRead } from '../body/body-reads.ts';
import { readMsMaxOf } from '../http/large-answer.ts';
import type { ServerState } from '../http/server-state.ts';
import { writeHead, type ResponseWriter } from '../http/write-head.ts';
import { readContentEncoding } from '../calls/read-body.ts';
import { mayRepeatKey } from '../calls/repeated-key.ts';
import { isStrictMode } from '../calls/strict-mode.ts';
import type { Head } from '../http/request-head.ts';
import type { HeldBytes, Reading } from './held-bytes.ts';
import { inflated, StreamBytes } from './stream-bytes.ts';
import { describeEnd, toWire, type StreamEnd } from './stream-end.ts';
import { StreamPace } from './stream-pace.ts';
import {
  isStillAuthorized,
  readStreamRequest,
  type Refusal,
  type StreamGate,
  type StreamQuery,
} from './stream-request.ts';
import {
  takeStream,
  type Acknowledgement,
  type StreamDependencies,
  type StreamOutcome,
  type StreamRequest,
} from './take-stream.ts';
import type { StreamTrace } from '../http/trace-calls.ts';

export interface StreamOptions extends StreamDependencies, StreamGate {
  /** For streams that are open at the same time. */
  readonly places: SharedCapacity;
  readonly held: HeldBytes;
  /** Of all streams: compressed bytes without output. */
  readonly emptyInputPace: StreamPace;
  /** A stream that brings no bytes for so long is ended. */
  readonly idleTimeoutMs: number;
  /** By the stream's `traceparent` and `X-Request-Id`. If it is absent, no stream is traced. */
  readonly trace?: (traceparent: string, requestId: string) => StreamTrace | undefined;
}

const TOO_MANY_RETRY_SECONDS = 10;
const LINGER_MS = 2_000;

export class StreamExchange {
  readonly #res: ResponseWriter;
  readonly #query: StreamQuery;
  readonly #state: ServerState;
  readonly #options: StreamOptions;
  readonly #trace: StreamTrace | undefined;
  readonly #authorization: string;
  readonly #mayUseDemo: boolean;
  readonly #contentEncoding: string;
  readonly #isStrict: boolean;
  readonly #isCrossOrigin: boolean;
  readonly #isChunked: boolean;
  readonly #read: BodyRead;
  readonly #bytes: StreamBytes;
  #hasHead = false;
  #isAborted = false;
  #isWritable = true;
  #wakeWriter: (() => void) | undefined;
  /** Set while the sender takes no bytes of its acknowledgements. */
  #overdue: NodeJS.Timeout | undefined;
  /** The sender has sent all. */
  #isReceived = false;
  #wakeLinger: (() => void) | undefined;
  /** The last acknowledged one. */
  #line = 0;
  #lineBefore = 0;
  #refusedCount = 0;

  constructor(
    res: ResponseWriter,
    head: Head,
    query: StreamQuery,
    state: ServerState,
    options: StreamOptions,
    trace: StreamTrace | undefined,
  ) {
    this.#res = res;
    this.#authorization = head.authorization;
    this.#mayUseDemo = state.demoGate.isOpenTo(head);
    this.#contentEncoding = head.contentEncoding;
    this.#isStrict = isStrictMode(head.strictMode);
    this.#isCrossOrigin = head.isCrossOrigin;
    this.#isChunked = head.transferEncodingCount > 0;
    this.#trace = trace;
    this.#query = query;
    this.#state = state;
    this.#options = options;
    this.#read = state.bodyReads.open({
      pause: () => void (this.#isAborted || res.pause()),
      resume: () => void (this.#isAborted || res.resume()),
    });
    const open = (each: Reading) => options.held.open(state.ownerOf(head.authorization), each);
    const cut = (): void => this.#cut('too_many_bytes');
    this.#bytes = new StreamBytes(this.#read, options.idleTimeoutMs, open, cut);
  }

  #cut(reason: CutReason): void {
    const { cuts, ownerOf } = this.#state;
    if (!this.#isAborted) cuts.cut(this.#res, reason, ownerOf(this.#authorization));
  }

  /** `framing`: the reason, if the request's body has no certain end. */
  receive(framing: string | undefined): void {
    this.#res.onAborted(() => {
      this.#isAborted = true;
      clearTimeout(this.#overdue);
      this.#read.close();
      this.#bytes.finish('cut');
      this.#wakeWriter?.();
      this.#wakeLinger?.();
    });
    if (framing !== undefined) {
      this.#read.close();
      this.#bytes.discard();
      this.#trace?.end(400, {});
      this.#isAborted = true;
      this.#res.cork(() => {
        writeHead(this.#res, '400 Bad Request', this.#isCrossOrigin);
        this.#res.end(problem(400, 'invalid_framing', framing), true);
      });
      return;
    }
    this.#res.onData((chunk, isLast) => {
      if (!isLast && this.#read.isFlood(chunk.byteLength)) this.#cut('too_many_chunks');
      else if (!this.#bytes.push(new Uint8Array(chunk), isLast)) this.#cut('too_many_bytes');
      if (!isLast) return;
      this.#isReceived = true;
      this.#wakeLinger?.();
    });
    const read = readStreamRequest(this.#options, {
      authorization: this.#authorization,
      mayUseDemo: this.#mayUseDemo,
      query: this.#query,
      isStrict: this.#isStrict,
      mayRepeatKey: this.#isStrict ? mayRepeatKey : this.#state.repeatedKeys.mayRepeatKey,
      trace: this.#trace,
    });
    if (read.outcome === 'refused') {
      void this.#refuse(read);
      return;
    }
    const { request } = read;
    this.#line = request.firstLine - 1;
    this.#lineBefore = this.#line;
    const encoding = readContentEncoding(this.#contentEncoding);
    if (encoding === 'unsupported') {
      const message = 'the content encoding is not supported; use gzip, deflate or no encoding';
      const issue = { code: 'invalid_encoding', field: null, message } as const;
      this.#options.recordRefusal?.(request.workspace, request.call.name, [issue]);
      void this.#refuse({
        status: '400 Bad Request',
        body: problem(400, 'invalid_encoding', message),
      });
    } else if (
      this.#state.isStopping ||
      !this.#options.places.take(request.workspace.environmentId, 1)
    ) {
      const message = 'too many streams are open; try again after the time in Retry-After';
      void this.#refuse({
        status: '503 Service Unavailable',
        body: problem(503, 'overloaded', message),
        header: ['Retry-After', String(TOO_MANY_RETRY_SECONDS)],
      });
    } else {
      this.#res.onWritable(() => {
        this.#isWritable = true;
        clearTimeout(this.#overdue);
        this.#overdue = undefined;
        this.#wakeWriter?.();
        return true;
      });
      void this.#run(request, encoding);
    }
  }

  async #run(request: StreamRequest, encoding: 'identity' | 'gzip' | 'deflate'): Promise<void> {
    const handle = {
      stop: () => {
        this.#bytes.finish('stopping');
        this.#wakeWriter?.();
      },
    };
    // Its place was taken by our caller.
    this.#state.streams.add(handle);
    this.#state.inFlightCount++;
    try {
      // Forty that begin at once would take 40 ms.
      await this.#options.turns.next(request.workspace.environmentId);
      const bytes =
        encoding === 'identity'
          ? this.#bytes.pieces()
          : inflated(this.#bytes, encoding, this.#paceOfInput());
      const outcome = await takeStream(this.#options, request, bytes, {
        acknowledge: (acknowledgement) => this.#acknowledge(acknowledgement),
        writable: () => this.#writable(),
        isComplete: () => this.#bytes.end === 'complete',
        isCut: () => this.#bytes.end === 'cut',
        hasEndedEarly: () => this.#bytes.end !== undefined && this.#bytes.end !== 'complete',
        isStopping: () => this.#bytes.end === 'stopping',
        isAuthorized: () => isStillAuthorized(this.#options, this.#authorization, request),
        stopReading: () => this.#bytes.finish('stopping'),
      });
      const { end } = await this.#end(outcome);
      this.#endTrace(request.call.name, this.#bytes.end === 'cut' ? 'cut' : end);
    } finally {
      this.#bytes.discard();
      this.#state.streams.delete(handle);
      this.#options.places.release(request.workspace.environmentId, 1);
      this.#state.inFlightCount--;
    }
  }

  /**
   * A stream brings half of the bytes that it may inflate to: 32 MB a second. One process takes some 20 MB a second of real
   * lines. All streams together bring 4 MB a second of input without output.
   */
  #paceOfInput(): (sizeBytes: number, emptySizeBytes: number) => Promise<void> {
    const { monotonicNow, pause, emptyInputPace } = this.#options;
    const pace = new StreamPace(monotonicNow);
    const isOver = (): boolean => this.#bytes.end === 'cut' || this.#bytes.end === 'stopping';
    return async (sizeBytes, emptySizeBytes) => {
      pace.spend(2 * sizeBytes, 0);
      await pace.wait(pause, isOver);
      if (emptySizeBytes === 0) return;
      emptyInputPace.spend(16 * emptySizeBytes, 0);
      await emptyInputPace.wait(pause, isOver);
    };
  }

  #acknowledge({ line, issues }: Acknowledgement): void {
    this.#line = line;
    this.#refusedCount += new Set(issues.filter(isError).map((issue) => issue.line)).size;
    const text = issues.length === 0 ? { line } : { line, issues: issues.map(toWire) };
    this.#write(`${JSON.stringify(text)}\n`);
  }

  /** A stop does not wait for a slow reader: no more lines are taken from it, so little more is written. */
  #writable(): Promise<void> {
    if (this.#isWritable || this.#isAborted || this.#bytes.end === 'stopping') {
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      this.#wakeWriter = () => {
        this.#wakeWriter = undefined;
        resolve();
      };
    });
  }

  #write(text: string): void {
    if (this.#isAborted) return;
    this.#res.cork(() => {
      this.#writeHead();
      this.#isWritable = this.#res.write(text);
    });
    // Bytes that its sender sends keep the connection: uWebSockets.js would not cut it.
    if (!this.#isWritable)
      this.#overdue ??= setTimeout(
        () => this.#cut('unread_answer'),
        readMsMaxOf(text.length),
      ).unref();
  }

  #endTrace(call: string, outcome: StreamEnd['end'] | 'cut'): void {
    const attributes = {
      'sluice.call': call,
      'sluice.outcome': outcome,
      'sluice.lines': this.#line - this.#lineBefore,
      'sluice.refused_lines': this.#refusedCount,
    };
    this.#trace?.end(200, attributes, outcome === 'cut' ? outcome : undefined);
  }

  async #end(outcome: StreamOutcome): Promise<StreamEnd> {
    const end = describeEnd(outcome, this.#bytes.end);
    this.#write(`${JSON.stringify({ line: this.#line, refused: this.#refusedCount, ...end })}\n`);
    if (end.end !== 'complete') await this.#linger();
    this.#finish();
    return end;
  }

  /**
   * Not by an end that closes the connection: uWebSockets.js would write `Connection: close` between the chunks, and
   * readers would take the whole answer for broken. A sender that is still sending is cut off.
   */
  #finish(): void {
    if (this.#isAborted) return;
    clearTimeout(this.#overdue);
    this.#read.finish();
    this.#isAborted = true;
    if (this.#isReceived) this.#res.cork(() => this.#res.end('', false));
    else this.#res.close();
  }

  /**
   * A sender in the middle of its lines: closing on it at once would reset the connection, and with
   * it throw away the line with the reason. Later bytes are read and dropped for a while.
   */
  async #linger(): Promise<void> {
    if (this.#isAborted || this.#isReceived) return;
    this.#bytes.discard();
    this.#read.resume();
    await this.#untilReceived();
  }

  async #untilReceived(): Promise<void> {
    if (this.#isAborted || this.#isReceived) return;
    const received = new Promise<void>((resolve) => (this.#wakeLinger = resolve));
    await Promise.race([received, this.#options.pause(LINGER_MS)]);
  }

  #writeHead(): void {
    if (this.#hasHead) return;
    this.#hasHead = true;
    this.#res.writeHeader('Content-Type', 'application/x-ndjson; charset=utf-8');
    this.#res.writeHeader('X-Content-Type-Options', 'nosniff');
    this.#res.writeHeader('Cache-Control', 'no-store');
    // As for a call that came in chunks (`exchange.ts`); a sender that obeys ends the connection.
    if (this.#isChunked) this.#res.writeHeader('Connection', 'close');
    if (this.#isCrossOrigin) this.#res.writeHeader('Access-Control-Allow-Origin', '*');
  }

  /**
   * Answered once the body has come: if it were closed at once, a sender in the middle of its lines would be reset
   * and never see why. A sender that goes on sending, or waits for acknowledgements, is not waited for long.
   */
  async #refuse({ status, body, header }: Refusal): Promise<void> {
    this.#trace?.end(Number.parseInt(status, 10), {});
    this.#bytes.discard();
    await this.#untilReceived();
    if (this.#isAborted) return;
    this.#read.finish();
    this.#isAborted = true;
    this.#res.cork(() => {
      writeHead(this.#res, status, this.#isCrossOrigin);
      if (header !== undefined) this.#res.writeHeader(...header);
      this.#res.end(body, true);
    });
  }
}
