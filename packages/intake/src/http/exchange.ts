/**
 * One call on its socket (steps 1 and 8). Its body is collected, read and submitted, and its outcome is written. It keeps the
 * rules of uWebSockets.js: a chunk is detached once `onData` returns, `res` is not touched after an abort, writes are corked.
 *
 * A class with few closures: at 80,000 calls a second each closure is 1 % of the core.
 *
 * Before: `server.ts`. After: `fast-path.ts`, or `accept.ts` if that declines.
 */
import { TOO_MANY_BODIES, type AnswerCall, type Outcome } from '../calls/outcome.ts';
import type { Submission } from '../calls/accept.ts';
import { answerOf, countRefused, withoutDetails, type Answer } from './answer.ts';
import type { Call } from '../calls/calls.ts';
import type { CommitOutcome } from '../groups/commit-group.ts';
import type { CutReason } from '../connections/cut-connections.ts';
import { BodyPieces } from '../body/body-pieces.ts';
import type { BodyRead } from '../body/body-reads.ts';
import {
  holdBody,
  inflateHeld,
  nextTurn,
  SMALL_BODY_SIZE_BYTES_MAX,
  type BodyOwner,
} from './body-in-turn.ts';
import { DISCARDED_SIZE_BYTES_MAX, OversizedBody } from '../body/oversized-body.ts';
import type { RateStanding } from '../auth/rate-limit.ts';
import {
  readBody,
  readContentEncoding,
  tooLarge,
  UNREADABLE_PATH,
  unsupportedEncoding,
  type Body,
} from '../calls/read-body.ts';
import { mayRepeatKey, type KeyLook } from '../calls/repeated-key.ts';
import { isStrictMode } from '../calls/strict-mode.ts';
import { LARGE_ANSWER_SIZE_BYTES_MIN, LargeAnswer } from './large-answer.ts';
import type { Head } from './request-head.ts';
import type { FastPath, FastPathCaller } from '../calls/fast-path.ts';
import type { ServerState } from './server-state.ts';
import { writeAnswerHead, type ResponseWriter } from './write-head.ts';

/** A promise resolves once the body is needed no more. */
export type Accept = (submission: Submission, answer: AnswerCall) => void | Promise<void>;

/**
 * A call whose next chunk has not come by then is cut: uWebSockets.js takes a chunk extension for the digits of a size,
 * and would wait for a body that never comes until the connection's time is up.
 *
 * uWebSockets.js also takes chunks that do not end with CRLF. Another reader of the connection could see another end of
 * the body, so the connection ends with the answer to a call that came in chunks.
 */
const CHUNK_WAIT_MS_MAX = 3_000;

/** A larger one that does not take the fast path shares a turn: 64 KB of nested arrays take 6 ms. */
const TINY_BODY_SIZE_BYTES_MAX = 8 * 1_024;

/** One call on its socket, from its head to its answer. */
export class Exchange implements FastPathCaller, BodyOwner {
  // The answer's fields first: they are in two lines of the core's caches then, and have left those when it comes.
  readonly call: Call;
  isAborted = false;
  standing: RateStanding | undefined;
  readonly #fastPath: FastPath | undefined;
  readonly #state: ServerState;
  readonly #turn: number;
  #bodyRead: BodyRead | undefined;
  #answer: Answer | undefined;
  readonly #res: ResponseWriter;
  readonly #isCrossOrigin: boolean;
  #large: LargeAnswer | undefined;
  /** The rest of an oversized body is not read, so the connection cannot be used again. */
  #isCut = false;
  readonly #isChunked: boolean;

  readonly authorization: string;
  /** Not the head: it is the next call's soon. */
  readonly #mayUseDemo: boolean;
  readonly isStrict: boolean;
  readonly #parameters: readonly string[] | undefined;
  readonly #accept: Accept;
  readonly #contentEncoding: string;
  #chunkTimer: NodeJS.Timeout | undefined;
  /** It and `#bodyRead` are set if the body does not come in one piece. */
  #pieces: BodyPieces | undefined;
  /** Ends a compressed body's wait for its turn; undefined if it does not wait. */
  #stopWaiting: (() => void) | undefined;
  /** Set once the body is too large. */
  #oversized: OversizedBody | undefined;
  #owner: number | undefined;
  #sizeBytes = 0;
  #isSubmitted = false;
  /** As the fast path has found: the slow path reports it. */
  #hasRepeatedKey = false;

  /** The exchange whose answer is being corked: `cork` calls back before it returns. */
  static #corked: Exchange | undefined;
  static readonly #writeCorked = (): void => {
    if (Exchange.#corked !== undefined) Exchange.#corked.#write();
  };

  /** @param head - read now, not kept. */
  constructor(
    res: ResponseWriter,
    head: Head,
    call: Call,
    parameters: readonly string[] | undefined,
    state: ServerState,
    accept: Accept,
    fastPath: FastPath | undefined,
  ) {
    this.#res = res;
    this.#mayUseDemo = state.demoGate.isOpenTo(head);
    this.authorization = head.authorization;
    this.isStrict = isStrictMode(head.strictMode);
    this.#contentEncoding = head.contentEncoding;
    this.#isCrossOrigin = head.isCrossOrigin;
    this.#isChunked = head.transferEncodingCount > 0;
    this.#turn = state.requestTurns.number;
    this.call = call;
    this.#parameters = parameters;
    this.#state = state;
    this.#accept = accept;
    this.#fastPath = fastPath;
  }

  receive(): void {
    this.#res.onAborted(() => this.#drop());
    this.#res.onData((chunk, isLast) => this.#collect(chunk, isLast));
    // A closure for each call costs 1 % of the core; few senders use chunks.
    if (this.#isChunked) this.#chunkTimer = setTimeout(() => this.#cutUnread(), CHUNK_WAIT_MS_MAX);
  }

  #drop(): void {
    this.isAborted = true;
    this.#large?.drop();
    // A large answer may be under way.
    if (this.#answer === undefined) this.#state.inFlightCount--;
    clearTimeout(this.#chunkTimer);
    this.#bodyRead?.close();
    this.#pieces?.clear();
    this.#stopWaiting?.();
  }

  #cutUnread(): void {
    if (this.isAborted || this.#isSubmitted) return;
    if (this.#oversized?.isCounting) this.#chunkTimer?.refresh();
    else this.#cut('silent');
  }

  #cut(reason: CutReason): void {
    this.#state.cuts.cut(this.#res, reason, this.ownerId());
  }

  #collect(chunk: ArrayBuffer, isLast: boolean): void {
    if (this.#chunkTimer !== undefined) {
      if (isLast) clearTimeout(this.#chunkTimer);
      else this.#chunkTimer.refresh();
    }
    if (this.#isSubmitted) return;
    if (!isLast && this.#reading().isFlood(chunk.byteLength)) return this.#cut('too_many_chunks');
    this.#sizeBytes += chunk.byteLength;
    if (this.#sizeBytes > this.call.sizeBytesMax) {
      this.#discard(chunk, isLast);
    } else if (!isLast) {
      if (!this.#keptPieces().add(new Uint8Array(chunk))) this.#refuseInPart();
    } else if (this.#pieces === undefined) {
      this.#read(new Uint8Array(chunk), false);
    } else {
      this.#read(this.#pieces.joinedWith(new Uint8Array(chunk)), true);
    }
  }

  #reading(): BodyRead {
    // The sender could not send meanwhile, so its next chunk has all of its time.
    const resumed = (): void => void this.#chunkTimer?.refresh();
    return (this.#bodyRead ??= this.#state.bodyReads.open(this.#res, resumed));
  }

  #keptPieces(): BodyPieces {
    const { collected, blocks } = this.#state;
    return (this.#pieces ??= new BodyPieces({
      blocks,
      take: (sizeBytes) => collected.take(this.ownerId(), sizeBytes),
      release: (sizeBytes) => collected.release(this.ownerId(), sizeBytes),
    }));
  }

  #refuseInPart(): void {
    this.#pieces?.clear();
    this.#isCut = true;
    this.refuseUnread();
  }

  /** Of a body that is too large only the calls are counted. It is submitted after its last piece. */
  #discard(chunk: ArrayBuffer, isLast: boolean): void {
    this.#isCut = this.#sizeBytes > DISCARDED_SIZE_BYTES_MAX;
    this.#isSubmitted = isLast || this.#isCut;
    this.#oversized ??= this.#openOversized();
    this.#oversized.add(new Uint8Array(chunk), this.#isSubmitted);
  }

  #openOversized(): OversizedBody {
    return new OversizedBody({
      pieces: this.#keptPieces(),
      isCountable: this.call.isBatch && readContentEncoding(this.#contentEncoding) === 'identity',
      nextTurn: () => nextTurn(this.#state, this),
      willWait: () => void this.#state.heldCount++,
      pause: () => this.#bodyRead?.pause(),
      resume: () => this.#bodyRead?.resume(),
      ended: (callCount) => void this.submit(tooLarge(callCount)),
    });
  }

  /** @param isCopy - false: `bytes` are valid only until it returns. */
  #read(bytes: Uint8Array, isCopy: boolean): void {
    const encoding = readContentEncoding(this.#contentEncoding);
    if (encoding === 'identity') {
      if (bytes.length > SMALL_BODY_SIZE_BYTES_MAX) holdBody(this.#state, this, bytes, isCopy);
      else if (!this.isOnFastPath(bytes)) {
        if (bytes.length > TINY_BODY_SIZE_BYTES_MAX) holdBody(this.#state, this, bytes, isCopy);
        else void this.submit(readBody(bytes, this.call.itemsKey, this.keyLook()));
      }
    } else if (encoding === 'unsupported') {
      void this.submit(unsupportedEncoding(this.#contentEncoding));
    } else {
      this.#stopWaiting = inflateHeld(this.#state, this, bytes, encoding, isCopy);
    }
  }

  /** The workspace of the header's credentials; 0 without one. One that ends meanwhile stays the owner of the held bytes. */
  ownerId(): number {
    return (this.#owner ??= this.#state.ownerOf(this.authorization));
  }

  refuseUnread(): void {
    this.#isSubmitted = true;
    this.answer(TOO_MANY_BODIES);
  }

  mayRepeatKey(bytes: Uint8Array): boolean {
    return (this.#hasRepeatedKey = this.keyLook()(bytes));
  }

  keyLook(): KeyLook {
    return this.isStrict || this.#hasRepeatedKey
      ? mayRepeatKey
      : this.#state.repeatedKeys.mayRepeatKey;
  }

  /** True if the call is taken on the fast path. */
  isOnFastPath(bytes: Uint8Array): boolean {
    if (this.#fastPath === undefined || this.call.fastPathForm === undefined) return false;
    this.#isSubmitted = this.#fastPath.take(this, bytes);
    return this.#isSubmitted;
  }

  submit(body: Body): void | Promise<void> {
    this.#isSubmitted = true;
    return this.#accept(
      {
        call: this.call,
        authorization: this.authorization,
        isStrict: this.isStrict,
        mayUseDemo: () => this.mayUseDemo(),
        body: this.#parameters === undefined ? UNREADABLE_PATH : body,
        parameters: this.#parameters ?? [],
      },
      (outcome, standing) => {
        this.standing = standing;
        this.answer(outcome);
      },
    );
  }

  mayUseDemo(): boolean {
    return this.#mayUseDemo;
  }

  /** Of a call that took the fast path. */
  committed(outcome: CommitOutcome): void {
    if (this.#fastPath !== undefined) this.answer(this.#fastPath.outcomeOf(outcome));
  }

  answer(outcome: Outcome): void {
    if (this.isAborted) return;
    const answer = answerOf(this.call, outcome, this.standing);
    if (answer.body.length < LARGE_ANSWER_SIZE_BYTES_MIN) return this.#send(answer);
    const { unread } = this.#state;
    const owner = this.ownerId();
    const body = Buffer.from(answer.body);
    if (!unread.take(owner, body.length)) return this.#send(withoutDetails(answer, outcome));
    this.#large = new LargeAnswer(this.#res, body, {
      release: () => unread.release(owner, body.length),
      cut: () => this.#cut('unread_answer'),
    });
    this.#send(answer);
  }

  /** The connection ends with the answer. */
  get #isLast(): boolean {
    return this.#isCut || this.#isChunked || this.#state.isStopping;
  }

  #send(answer: Answer): void {
    if (this.isAborted) return;
    if (this.#state.requestTurns.mustWait(this.#turn))
      return void setImmediate(() => this.#send(answer));
    this.#state.inFlightCount--;
    this.#bodyRead?.finish();
    this.#answer = answer;
    countRefused(this.#state.refusedCounts, answer.status);
    Exchange.#corked = this;
    this.#res.cork(Exchange.#writeCorked);
  }

  #write(): void {
    const res = this.#res;
    const answer = this.#answer as Answer;
    writeAnswerHead(res, answer, this.#isCrossOrigin, this.standing);
    if (this.#large) {
      if (this.#isLast) res.writeHeader('Connection', 'close');
      this.#large.write();
    } else res.end(answer.body, this.#isLast);
  }
}
