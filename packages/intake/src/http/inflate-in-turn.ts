/**
 * Turns of compressed bodies that wait to be inflated.
 *
 * They bound memory before the workspace is known: a few inflated bodies, and compressed bytes that are counted
 * together with the bytes of bodies on their way in.
 *
 * A burst of honest callers waits. If each reserved the limit of its inflated size, it would be refused.
 *
 * Before: `exchange.ts` has collected the bytes. After: `read-body.ts`.
 */
import { inflateBody } from '../calls/inflate-body.ts';
import type { UninflatedBody } from '../calls/read-body.ts';
import type { Call } from '../calls/calls.ts';
import type { SharedCapacity } from '@sluice/platform/process/shared-capacity';
import type { FairQueue } from './fair-queue.ts';
import type { Turns } from './turns.ts';

/** As many as Node's pool has threads: more at a time would only wait there, each with its output. */
const RUNNING_COUNT_MAX = 4;

interface Inflation {
  readonly owner: number;
  readonly bytes: Uint8Array;
  readonly encoding: 'gzip' | 'deflate';
  readonly call: Pick<Call, 'sizeBytesMax' | 'isBatch'>;
  /** The body keeps its place until this resolves: so few inflated bodies are held. */
  readonly take: (inflated: Uint8Array | UninflatedBody) => Promise<void>;
}

/** Of all bodies of a server. */
export interface InflationState {
  /**
   * Bytes of held bodies: parts of bodies, and compressed bodies until they are inflated. Bodies without valid
   * credentials in the header are of workspace 0.
   */
  readonly collected: SharedCapacity;
  readonly turns: Turns;
  readonly inflations: {
    runningCount: number;
    /** By workspace; 0 for bodies without valid credentials in the header. */
    readonly waiting: FairQueue<Inflation>;
  };
}

/**
 * Inflates at most the call's `sizeBytesMax` bytes once it is the body's turn, and calls `take` once. `bytes` are
 * copied.
 *
 * @returns a function that lets go of a body that still waits, for when its sender hangs up; `take` is not called after
 * it. It has no effect if the body is being inflated or done. Undefined if no more bodies may wait: then `take` is
 * never called.
 */
export function inflateInTurn(
  state: InflationState,
  owner: number,
  bytes: Uint8Array,
  encoding: 'gzip' | 'deflate',
  call: Inflation['call'],
  take: Inflation['take'],
): (() => void) | undefined {
  if (!state.collected.take(owner, bytes.length)) return undefined;
  // Copied: the socket's buffer is gone before the thread pool has read it.
  const inflation: Inflation = { owner, bytes: bytes.slice(), encoding, call, take };
  const { inflations } = state;
  inflations.waiting.add(owner, inflation);
  startNext(state);
  return () => {
    if (inflations.waiting.delete(owner, inflation))
      state.collected.release(owner, inflation.bytes.length);
  };
}

function startNext(state: InflationState): void {
  const { inflations } = state;
  if (inflations.runningCount >= RUNNING_COUNT_MAX) return;
  const inflation = inflations.waiting.take();
  if (inflation === undefined) return;
  inflations.runningCount++;
  void run(state, inflation);
}

async function run(state: InflationState, inflation: Inflation): Promise<void> {
  const { owner, bytes, encoding, call, take } = inflation;
  try {
    const nextTurn = call.isBatch ? () => state.turns.next(owner) : undefined;
    await take(await inflateBody(bytes, encoding, call.sizeBytesMax, nextTurn));
  } finally {
    state.collected.release(owner, bytes.length);
    state.inflations.runningCount--;
    startNext(state);
  }
}
