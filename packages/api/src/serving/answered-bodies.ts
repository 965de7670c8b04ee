/**
 * Slows the rests of bodies whose calls are answered.
 *
 * A call may be refused before its body has come. Node reads the rest, so that the sender reads the answer. It reads as
 * fast as the sender sends: one connection without a token took a third of a core, and for hours if it was to bring a
 * file. So the rests of all connections together have a pace, and each has a deadline.
 *
 * Used by `body-deadline.ts`.
 */
import type { IncomingMessage } from 'node:http';

export interface AnsweredBodiesOptions {
  /** Of all rests together. */
  readonly sizeBytesASecondMax: number;
  /** Of one rest, after which its connection is cut. */
  readonly restMsMax: number;
}

export const ANSWERED_BODIES: AnsweredBodiesOptions = {
  sizeBytesASecondMax: 16 * 1_048_576,
  restMsMax: 30_000,
};

/** A socket reads some megabytes in that time. */
const LOOK_INTERVAL_MS = 20;

interface Rest {
  readonly request: IncomingMessage;
  readonly endsAtMs: number;
  /** Of its socket, at the last look. */
  readSizeBytes: number;
}

export class AnsweredBodies {
  readonly #options: AnsweredBodiesOptions;
  readonly #rests = new Set<Rest>();
  /** Read beyond the pace. */
  #aheadSizeBytes = 0;
  #lookedAtMs = 0;
  #looking: NodeJS.Timeout | undefined;

  constructor(options: AnsweredBodiesOptions) {
    this.#options = options;
  }

  /** @param request - is answered, and its body has not come to its end. */
  add(request: IncomingMessage): void {
    const nowMs = performance.now();
    this.#rests.add({
      request,
      endsAtMs: nowMs + this.#options.restMsMax,
      readSizeBytes: request.socket.bytesRead,
    });
    if (this.#looking !== undefined) return;
    this.#lookedAtMs = nowMs;
    this.#looking = setInterval(() => this.#look(), LOOK_INTERVAL_MS).unref();
  }

  #look(): void {
    const nowMs = performance.now();
    const allowed = ((nowMs - this.#lookedAtMs) * this.#options.sizeBytesASecondMax) / 1_000;
    this.#lookedAtMs = nowMs;
    let sizeBytes = 0;
    for (const rest of this.#rests) {
      const { bytesRead } = rest.request.socket;
      sizeBytes += bytesRead - rest.readSizeBytes;
      rest.readSizeBytes = bytesRead;
    }
    this.#aheadSizeBytes = Math.max(0, this.#aheadSizeBytes + sizeBytes - allowed);
    for (const rest of this.#rests) this.#drive(rest, nowMs);
    if (this.#rests.size > 0) return;
    clearInterval(this.#looking);
    this.#looking = undefined;
    this.#aheadSizeBytes = 0;
  }

  #drive(rest: Rest, nowMs: number): void {
    const { socket, complete } = rest.request;
    if (nowMs >= rest.endsAtMs && !complete) socket.destroy();
    const isOver = complete || socket.destroyed;
    if (isOver) this.#rests.delete(rest);
    if (isOver || this.#aheadSizeBytes === 0) socket.resume();
    else socket.pause();
  }
}
