/**
 * A body past the limit of its call: only the calls in it are counted.
 *
 * The workspace's owner then sees how many are lost.
 * ```
 *   piece ─▶ kept while its socket rests ─▶ counted in turns ─▶ the socket goes on
 *      └───▶ no capacity for it: counted at once, kept nowhere
 * ```
 * A body of 15 MB takes 50 ms to count, and its bytes cost the sender nearly zero. So it is counted in turns, and no
 * further piece is read before the earlier ones are counted. Made only for such a body: no other call pays for it.
 *
 * * Before: `http/exchange.ts` and `body-pieces.ts`. After: `http/exchange.ts`, which answers.
 */
import { CallCounter } from '../calls/count-calls.ts';
import type { NextTurn } from '../calls/read-body.ts';
import type { BodyPieces } from './body-pieces.ts';

/** A refused body is read to its end so that the client hears the answer, but no further than this. */
export const DISCARDED_SIZE_BYTES_MAX = 16 * 1024 * 1024;

/** The exchange that receives the body. */
interface OversizedBodyOwner {
  /** Pieces that came before the limit, in their order. */
  readonly pieces: BodyPieces;
  /** The body is a batch that is not compressed. */
  readonly isCountable: boolean;
  readonly nextTurn: NextTurn;
  /** Called once, before the first turn. */
  readonly willWait: () => void;
  readonly pause: () => void;
  readonly resume: () => void;
  /**
   * Called once, after the last piece; never after the sender has gone.
   *
   * @param callCount - undefined: not known.
   */
  readonly ended: (callCount: number | undefined) => void;
}

export class OversizedBody {
  readonly #owner: OversizedBodyOwner;
  readonly #counter = new CallCounter();
  #isCountable: boolean;
  #isOver = false;
  #hasWaited = false;
  #isCounting = false;

  constructor(owner: OversizedBodyOwner) {
    this.#owner = owner;
    this.#isCountable = owner.isCountable;
  }

  /** Its socket rests. */
  get isCounting(): boolean {
    return this.#isCounting;
  }

  /**
   * Takes the next piece. Without capacity for waiting pieces, all of it is counted at once: 15 ms for 4 MB.
   *
   * @param bytes - valid until it returns.
   * @param isOver - no further piece is read.
   */
  add(bytes: Uint8Array, isOver: boolean): void {
    const { pieces } = this.#owner;
    this.#isOver = isOver;
    if (this.#isCountable && pieces.add(bytes)) {
      if (!this.#isCounting) void this.#count();
      return;
    }
    // A piece that is being counted comes before this one: while its socket rests, hardly any does.
    this.#isCountable &&= !this.#isCounting;
    if (this.#isCountable) pieces.countAtOnce(this.#counter, bytes);
    pieces.clear();
    if (isOver && !this.#isCounting) this.#end();
  }

  async #count(): Promise<void> {
    const { pieces, nextTurn, willWait, pause, resume } = this.#owner;
    if (!this.#hasWaited) willWait();
    this.#hasWaited = true;
    this.#isCounting = true;
    pause();
    const isCounted = await pieces.countInTurns(this.#counter, nextTurn);
    this.#isCounting = false;
    if (!isCounted) return;
    resume();
    if (this.#isOver) this.#end();
  }

  #end(): void {
    this.#owner.ended(this.#isCountable ? this.#counter.count : undefined);
  }
}
