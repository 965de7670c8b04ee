/**
 * Turns of compressed bodies that wait to be inflated.
 *
 * They bound memory before the workspace is known. A burst of honest callers waits: with its limit reserved, each
 * would be refused.
 * ```
 *   tiny body ──▶ the event loop, at once ──────────────────────────▶ read at once
 *   small body ─────┴─▶ a shared turn on the event loop ────────────▶ read in the same turn
 *   large body ─────┴─▶ wait ─▶ one of four places, or the last ────▶ read in a turn
 * ```
 * There are four places, or as many as cores but one. The last, one more, is for a workspace without any, so bombs of
 * another workspace do not keep it waiting.
 * Before: `exchange.ts` has collected the bytes. After: `read-body.ts`.
 */
import { availableParallelism } from 'node:os';
import { inflateAtOnce, inflateBody, mayInflateAtOnce } from '../calls/inflate-body.ts';
import type { NextTurn, UninflatedBody } from '../calls/read-body.ts';
import type { Call } from '../calls/calls.ts';
import type { SharedCapacity } from '@sluice/platform/process/shared-capacity';
import { FairQueue } from './fair-queue.ts';
import type { Turns } from './turns.ts';

/** As many as Node's pool has threads: more at a time would only wait there, each with its output. */
const RUNNING_COUNT_MAX = 4;
/**
 * One core is left to the event loop. With four bodies at a time on two cores, the p99 of an honest call was 28 to 31 ms,
 * with one 18 ms (`npm run bench -- hostile --attacks "batch that inflates"`).
 */
const SPARE_CORE_COUNT = Math.max(1, availableParallelism() - 1);

/**
 * The body keeps its place until this resolves: so few inflated bodies are held. With `isInTurn` it has a turn on the
 * event loop and no place, so it must be read at once.
 */
export type TakeInflated = (
  inflated: Uint8Array | UninflatedBody,
  isInTurn: boolean,
) => void | Promise<void>;

interface Inflation {
  readonly owner: number;
  readonly bytes: Uint8Array;
  readonly encoding: 'gzip' | 'deflate';
  readonly call: Pick<Call, 'sizeBytesMax' | 'isBatch'>;
  readonly take: TakeInflated;
  /** Its sender is gone. */
  isAbandoned: boolean;
  /** It waits for a turn or for a place. */
  isWaiting: boolean;
}

/** Of all bodies of a server. */
export interface InflationState {
  /**
   * Bytes of held bodies: parts of bodies, and compressed bodies until they are inflated. Bodies without valid
   * credentials in the header are of workspace 0.
   */
  readonly collected: SharedCapacity;
  readonly turns: Turns;
  readonly inflations: Inflations;
}

interface Inflations {
  /** Without the place for a workspace without any. Its body shares the threads, which inflate 16 KB at a time. */
  readonly runningCountMax: number;
  runningCount: number;
  /** By workspace; an entry is above 0. */
  readonly runningCounts: Map<number, number>;
  /** By workspace; 0 for bodies without valid credentials in the header. */
  readonly waiting: FairQueue<Inflation>;
}

/** @param runningCountMax - bodies that are inflated at a time; one more if its workspace has no other. */
export const noInflations = (
  runningCountMax = Math.min(RUNNING_COUNT_MAX, SPARE_CORE_COUNT),
): Inflations => ({
  runningCountMax,
  runningCount: 0,
  runningCounts: new Map(),
  waiting: new FairQueue(),
});

/** Such a body that is not compressed waits for no turn either. */
const TINY_INFLATED_SIZE_BYTES_MAX = 8_192;
/** Beside its bytes: opening zlib takes 20 µs. So 32 bodies are inflated in an iteration, in 1 ms. */
const OPENING_SIZE_BYTES = 480;

/**
 * Inflates a call as a client library sends it, at once. A turn would have it wait behind the long work of its
 * workspace: the key of a web page is public, so that may be a hostile sender's.
 *
 * @returns `undefined` if it must wait for a turn.
 */
export function inflateTiny(
  turns: Turns,
  bytes: Uint8Array,
  encoding: 'gzip' | 'deflate',
  sizeBytesMax: number,
): Uint8Array | UninflatedBody | undefined {
  if (!mayInflateAtOnce(bytes)) return undefined;
  if (!turns.mayWorkAtOnce(OPENING_SIZE_BYTES + bytes.length)) return undefined;
  return inflateAtOnce(bytes, encoding, Math.min(sizeBytesMax, TINY_INFLATED_SIZE_BYTES_MAX));
}

/**
 * Inflates at most the call's `sizeBytesMax` bytes once it is the body's turn, and calls `take` once.
 *
 * @param isCopy - of the bytes of the socket: they are not copied again. Of 4 MB the second copy waits for the collector.
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
  isCopy = false,
): (() => void) | undefined {
  if (!state.collected.take(owner, bytes.length)) return undefined;
  // The socket's buffer is gone before the thread pool has read it.
  const inflation: Inflation = {
    owner,
    bytes: isCopy ? bytes : bytes.slice(),
    encoding,
    call,
    take,
    isAbandoned: false,
    isWaiting: true,
  };
  if (mayInflateAtOnce(bytes)) state.turns.share(owner, () => void runAtOnce(state, inflation));
  else wait(state, inflation);
  return () => {
    inflation.isAbandoned = true;
    if (!inflation.isWaiting) return;
    inflation.isWaiting = false;
    state.inflations.waiting.delete(owner, inflation);
    state.collected.release(owner, inflation.bytes.length);
  };
}

/** In a shared turn. No bound counts the inflated bytes, so they are read in the same turn. */
async function runAtOnce(state: InflationState, inflation: Inflation): Promise<void> {
  // Its bytes are released.
  if (inflation.isAbandoned) return;
  const { owner, bytes, encoding, call, take } = inflation;
  const inflated = inflateAtOnce(bytes, encoding, call.sizeBytesMax);
  if (inflated === undefined) return wait(state, inflation);
  inflation.isWaiting = false;
  try {
    await take(inflated, true);
  } finally {
    state.collected.release(owner, bytes.length);
  }
}

function wait(state: InflationState, inflation: Inflation): void {
  state.inflations.waiting.add(inflation.owner, inflation);
  startNext(state);
}

function startNext(state: InflationState): void {
  const { runningCount, runningCountMax, runningCounts, waiting } = state.inflations;
  if (runningCount > runningCountMax) return;
  const isFree = runningCount < runningCountMax;
  const inflation = waiting.take((owner) => isFree || !runningCounts.has(owner));
  if (inflation === undefined) return;
  inflation.isWaiting = false;
  countRunning(state.inflations, inflation.owner, 1);
  void run(state, inflation);
}

function countRunning(inflations: Inflations, owner: number, change: 1 | -1): void {
  inflations.runningCount += change;
  const count = (inflations.runningCounts.get(owner) ?? 0) + change;
  if (count > 0) inflations.runningCounts.set(owner, count);
  else inflations.runningCounts.delete(owner);
}

async function run(state: InflationState, inflation: Inflation): Promise<void> {
  const { owner, bytes, encoding, call, take } = inflation;
  try {
    const nextTurn: NextTurn = async () => {
      const turn = await state.turns.next(owner);
      return inflation.isAbandoned ? undefined : turn;
    };
    const counting = call.isBatch ? nextTurn : undefined;
    await take(await inflateBody(bytes, encoding, call.sizeBytesMax, counting), false);
  } finally {
    state.collected.release(owner, bytes.length);
    countRunning(state.inflations, owner, -1);
    startNext(state);
  }
}
