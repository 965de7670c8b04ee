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
import type { NextTurn, UninflatedBody } from '../calls/read-body.ts';
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
  /** Its sender is gone. */
  isAbandoned: boolean;
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
 * @returns a function that lets go of the body, for when its sender hangs up. If it still waits, `take` is not called
 * after that. If it is being inflated, its calls are counted no further. Undefined if no more bodies may wait: then
 * `take` is never called.
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
  const inflation = { owner, bytes: bytes.slice(), encoding, call, take, isAbandoned: false };
  const { inflations } = state;
  inflations.waiting.add(owner, inflation);
  startNext(state);
  return () => {
    inflation.isAbandoned = true;
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
    const nextTurn: NextTurn = async () => {
      const turn = await state.turns.next(owner);
      return inflation.isAbandoned ? undefined : turn;
    };
    const counting = call.isBatch ? nextTurn : undefined;
    await take(await inflateBody(bytes, encoding, call.sizeBytesMax, counting));
  } finally {
    state.collected.release(owner, bytes.length);
    state.inflations.runningCount--;
    startNext(state);
  }
}
