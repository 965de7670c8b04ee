/**
 * Whole bodies that are read in turns: large, compressed and unusual ones.
 * ```
 *   compressed ──▶ inflated ──┬─ small ──▶ a shared turn ──▶ submitted
 *   plain ──▶ copied ─────────┴─ large ──▶ a turn ─────────▶ submitted
 * ```
 * A body whose sender is gone is dropped: the sender would not learn that it was taken.
 *
 * Before: `exchange.ts` has all bytes. After: `exchange.ts` submits the body.
 */
import { readBatchInTurns } from '../calls/batch-items.ts';
import type { Call } from '../calls/calls.ts';
import { readBody, readLargeBody, type Body } from '../calls/read-body.ts';
import type { KeyLook } from '../calls/repeated-key.ts';
import { inflateInTurn, inflateTiny, type TakeInflated } from './inflate-in-turn.ts';
import type { ServerState } from './server-state.ts';
import type { Turn } from './turns.ts';

/** A larger body waits for a turn of its own. */
export const SMALL_BODY_SIZE_BYTES_MAX = 64 * 1_024;

/** The exchange that has received the body. */
export interface BodyOwner {
  readonly call: Call;
  /** Its sender has gone. */
  readonly isAborted: boolean;
  /** The workspace of the header's credentials; 0 without one. */
  ownerId(): number;
  keyLook(): KeyLook;
  /** True if the call is taken on the fast path. */
  isOnFastPath(bytes: Uint8Array): boolean;
  submit(body: Body): void | Promise<void>;
  /** There is no capacity for the body. */
  refuseUnread(): void;
}

/**
 * Keeps a large body until its turn.
 *
 * @param isCopy - of the bytes of the socket. Others are copied.
 */
export function holdBody(
  state: ServerState,
  owner: BodyOwner,
  bytes: Uint8Array,
  isCopy: boolean,
): void {
  const { collected } = state;
  const ownerId = owner.ownerId();
  const sizeBytes = bytes.length;
  if (!collected.take(ownerId, sizeBytes)) return owner.refuseUnread();
  state.heldCount++;
  const kept = isCopy ? bytes : bytes.slice();
  void takeInTurn(state, owner, kept).finally(() => collected.release(ownerId, sizeBytes));
}

/**
 * @param isCopy - of the bytes of the socket. Others are copied, unless they are inflated at once.
 * @returns a function that ends the wait, for when the sender hangs up. Undefined if it does not wait.
 */
export function inflateHeld(
  state: ServerState,
  owner: BodyOwner,
  bytes: Uint8Array,
  encoding: 'gzip' | 'deflate',
  isCopy: boolean,
): (() => void) | undefined {
  const { call } = owner;
  const take: TakeInflated = (inflated, isInTurn) => {
    if (owner.isAborted) return;
    if (!(inflated instanceof Uint8Array)) return owner.submit(inflated);
    if (isInTurn) state.turns.noteCallWithTurn();
    if (inflated.length <= SMALL_BODY_SIZE_BYTES_MAX && owner.isOnFastPath(inflated)) return;
    if (!isInTurn) return takeInTurn(state, owner, inflated);
    return owner.submit(readBody(inflated, call.itemsKey, owner.keyLook()));
  };
  const tiny = inflateTiny(state.turns, bytes, encoding, call.sizeBytesMax);
  if (tiny !== undefined) {
    void take(tiny, true);
    return undefined;
  }
  // Before it waits: turns rest for calls that need no turn.
  state.heldCount++;
  const stopWaiting = inflateInTurn(state, owner.ownerId(), bytes, encoding, call, take, isCopy);
  if (stopWaiting !== undefined) return stopWaiting;
  state.heldCount--;
  owner.refuseUnread();
  return undefined;
}

/** Undefined: the sender is gone. */
export async function nextTurn(state: ServerState, owner: BodyOwner): Promise<Turn | undefined> {
  const turn = await state.turns.next(owner.ownerId());
  return owner.isAborted ? undefined : turn;
}

async function takeInTurn(state: ServerState, owner: BodyOwner, bytes: Uint8Array): Promise<void> {
  const { call } = owner;
  if (bytes.length <= SMALL_BODY_SIZE_BYTES_MAX) {
    await sharedTurn(state, owner, () =>
      owner.submit(readBody(bytes, call.itemsKey, owner.keyLook())),
    );
    return;
  }
  const turn = await nextTurn(state, owner);
  if (turn === undefined || owner.isOnFastPath(bytes)) return;
  const body = call.isBatch
    ? await readBatchInTurns(bytes, turn, () => nextTurn(state, owner), owner.keyLook())
    : readLargeBody(bytes, call, owner.keyLook());
  if (body !== undefined) await owner.submit(body);
}

function sharedTurn(
  state: ServerState,
  owner: BodyOwner,
  work: () => void | Promise<void>,
): Promise<void> {
  return new Promise((resolve) => {
    state.turns.share(owner.ownerId(), () => {
      if (!owner.isAborted) state.turns.noteCallWithTurn();
      resolve(owner.isAborted ? undefined : work());
    });
  });
}
