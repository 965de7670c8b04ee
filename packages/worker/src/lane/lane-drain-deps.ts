/**
 * Dependencies of a drain: from `deliver-webhook.ts` for a webhook's own delivery queue, from `replay-deliveries.ts`
 * for a replay.
 */
import type { AttemptRecord } from '@sluice/database/delivery/lane-progress';
import type { ClaimedLane } from '@sluice/database/delivery/lanes';
import type { LoggedDelivery } from '@sluice/database/delivery/logged-deliveries';
import type { LanePolicy } from '@sluice/domain/delivery/lane';
import type { TailPublisher } from '@sluice/domain/operations/tail';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { Logger } from '@sluice/platform/process/logger';
import type { HttpOutcome } from '../http/http-outcome.ts';
import type { LanePermits } from '../scheduling/lane-permits.ts';
import type { DeliveryPost } from './endpoint-access.ts';
import type { LaneStore } from './lane-store.ts';
import type { IdleTime } from '../scheduling/idle-time.ts';

/** Sends one attempt of a delivery. */
export type PostDelivery = (
  request: DeliveryPost,
  delivery: LoggedDelivery,
) => Promise<HttpOutcome>;

export interface LaneDrainDeps {
  readonly store: Pick<LaneStore, 'load' | 'keep'>;
  /** Of a log whose end is not known before it is read: true once it is. */
  readonly isAtEnd?: () => boolean;
  readonly policy: LanePolicy;
  readonly permits: LanePermits;
  readonly leases: LeaseOptions;
  /** No request is started while others may take this process for dead, and take over its lanes. */
  readonly presence: Presence;
  /** Others may wait for this lane's place: then it makes room when its time slice is over. */
  readonly isPlaceWanted: () => boolean;
  readonly post: PostDelivery;
  /** Opens an encrypted secret of a workspace. */
  readonly openSecret: (environmentId: number, encrypted: string) => string;
  /** Unix milliseconds, for timestamps and waits. */
  readonly now: () => number;
  /**
   * Called before a delivery is recorded as given up, with the end of its last attempt by `now`. Throws if it must not
   * be.
   */
  readonly confirmGivingUp: (endedAtMs: number) => Promise<void>;
  /**
   * Called before deliveries are recorded as failed and tried again, with the earliest end of their attempts by `now`.
   * Throws if they must not be.
   */
  readonly confirmFailure: (endedAtMs: number) => Promise<void>;
  /** Never set back: the clock of leases and time slices. */
  readonly monotonicNow: () => number;
  readonly idleTime: IdleTime;
  /** How many lanes this process drains now. */
  readonly laneCount: () => number;
  readonly pause: (durationMs: number) => Promise<void>;
  /** 0 ≤ x < 1. */
  readonly random: () => number;
  readonly tail?: TailPublisher;
  /** Called for each attempt that has ended. */
  readonly countAttempt?: (lane: LaneKey, attempt: AttemptRecord) => void;
  readonly logger: Logger;
}

/** Whether the other workers see that this process lives (`process/worker-presence.ts`). */
export interface Presence {
  readonly processId: number;
  readonly isShown: boolean;
  /** Since when without a break, by the monotonic clock. Earlier leases may have been released for another worker. */
  readonly shownSinceMs: number;
  /** @throws if it is not shown soon. */
  shown(): Promise<void>;
}

export interface LeaseOptions {
  /** Longest time of one request. */
  readonly timeoutMs: number;
  /** How long a lane waits for a worker that died. Must be well above the timeout. */
  readonly leaseMs: number;
  /** After this a lane makes room for others that wait, once its requests in flight have ended. */
  readonly timeSliceMs: number;
}

/** A lease that is held already. */
export interface TakenLane {
  readonly claimed: ClaimedLane;
  /** Before the lease was taken, by the monotonic clock. */
  readonly claimedAtMs: number;
  /** The first waiting deliveries; if absent, they are read. */
  readonly deliveries?: readonly LoggedDelivery[];
}
