/**
 * Shared state of a server's exchanges: counters, open streams, and held bodies.
 *
 * Made by `server.ts`; used by `exchange.ts` and `stream/stream-exchange.ts`.
 */
import type { DemoGate } from '../auth/demo-gate.ts';
import type { RequestTurns } from './answer.ts';
import type { CutConnections } from '../connections/cut-connections.ts';
import type { BodyReads } from '../body/body-reads.ts';
import type { RepeatedKeyLooks } from '../calls/repeated-key.ts';
import type { SharedCapacity } from '@sluice/platform/process/shared-capacity';
import type { InflationState } from './inflate-in-turn.ts';

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
  readonly requestTurns: RequestTurns;
  readonly cuts: Pick<CutConnections, 'cut'>;
  /** The workspace whose credentials the `Authorization` header has; 0 if they are unknown. */
  readonly ownerOf: (authorization: string) => number;
}
