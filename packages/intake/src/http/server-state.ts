/**
 * Shared state of a server's exchanges: counters, open streams, and held bodies.
 *
 * Opened by `server.ts`; used by `exchange.ts` and `stream/stream-exchange.ts`.
 */
import { DemoGate } from '../auth/demo-gate.ts';
import { RequestTurns } from './answer.ts';
import type { CutConnections } from '../connections/cut-connections.ts';
import { BodyReads } from '../body/body-reads.ts';
import { PieceBlocks } from '../body/piece-blocks.ts';
import { RepeatedKeyLooks } from '../calls/repeated-key.ts';
import type { SharedCapacity } from '@sluice/platform/process/shared-capacity';
import { noInflations, type InflationState } from './inflate-in-turn.ts';

export interface ServerState extends InflationState {
  isStopping: boolean;
  inFlightCount: number;
  /** Calls that have come since the start; streams not counted. */
  receivedCount: number;
  /** Of them, those whose bodies waited for a turn. */
  heldCount: number;
  /** By status, as `400`: refused calls. Calls that are taken in part are not here. */
  readonly refusedCounts: Map<string, number>;
  /** Open streams, to be ended by a stop. */
  readonly streams: Set<{ stop(): void }>;
  /** Bytes of large answers that their callers have not read. */
  readonly unread: SharedCapacity;
  readonly demoGate: DemoGate;
  readonly repeatedKeys: RepeatedKeyLooks;
  readonly bodyReads: BodyReads;
  /** Memory for the pieces of large bodies. */
  readonly blocks: PieceBlocks;
  readonly requestTurns: RequestTurns;
  readonly cuts: Pick<CutConnections, 'cut'>;
  /** The workspace whose credentials the `Authorization` header has; 0 if they are unknown. */
  readonly ownerOf: (authorization: string) => number;
}

/** Two oversized bodies whose pieces wait for their turn have as much. */
const FREE_BLOCKS_SIZE_BYTES_MAX = 4 * 1_048_576;

/** @param options - the parts that it shares with others, and the hosts at which demo keys open the demo. */
export const openServerState = (
  options: Pick<ServerState, 'collected' | 'unread' | 'turns' | 'ownerOf' | 'cuts'> & {
    readonly demoHosts: ConstructorParameters<typeof DemoGate>[0];
  },
): ServerState => ({
  isStopping: false,
  inFlightCount: 0,
  receivedCount: 0,
  heldCount: 0,
  // There from the start, because a rate misses the first value of a series that appears later.
  refusedCounts: new Map(['400', '401', '429', '503'].map((status) => [status, 0])),
  collected: options.collected,
  unread: options.unread,
  inflations: noInflations(),
  streams: new Set(),
  turns: options.turns,
  ownerOf: options.ownerOf,
  demoGate: new DemoGate(options.demoHosts),
  repeatedKeys: new RepeatedKeyLooks(() => performance.now()),
  bodyReads: new BodyReads(() => performance.now()),
  blocks: new PieceBlocks(FREE_BLOCKS_SIZE_BYTES_MAX),
  requestTurns: new RequestTurns(),
  cuts: options.cuts,
});
