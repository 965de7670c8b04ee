/**
 * One drain of one lane: the part of `deliver-webhook.ts` (step 11) between the claim of the lease and its release.
 *
 * The domain decides which delivery may start (`domain/src/delivery/lane.ts`). This file feeds it the log, has the
 * started deliveries sent (`lane-attempts.ts`), and the ended ones recorded under its lease (`lane-lease.ts`).
 *
 * Each request needs a permit of `fair-permits.ts`. Without a free one the lane waits for its turn, until its time
 * slice is over.
 */
import type { LoggedDelivery } from '@sluice/database/delivery/logged-deliveries';
import type { LaneAfterProgress } from '@sluice/database/delivery/lane-progress';
import { LaneRun } from '@sluice/domain/delivery/lane';
import type { LaneKey } from '@sluice/domain/wake-ups/lane-key';
import type { FairPermits, Permit, PermitRequester } from '../scheduling/fair-permits.ts';
import { LaneAttempts } from './lane-attempts.ts';
import { LaneLease } from './lane-lease.ts';
import { firstConcurrencyLimit, LaneLog, nextPageSize, wantsPage } from './lane-log.ts';
import type { LaneDrainDeps, TakenLane } from './lane-drain-deps.ts';
import { LaneEndpoint } from './lane-endpoint.ts';
import { TimeSlice } from '../scheduling/time-slice.ts';
import { PaceWait } from './pace-wait.ts';
import { PermitWait } from '../scheduling/permit-wait.ts';

/** How a drain ended, the lease being given back or lost. */
export type DrainOutcome =
  | { readonly outcome: 'kept'; readonly lane: ReleasedLane }
  /** The lease was lost to another worker, or the webhook was deleted meanwhile; no progress was stored since. */
  | { readonly outcome: 'fenced' };

/** A lane without a holder. */
export interface ReleasedLane {
  readonly isPaused: boolean;
  readonly nextProbeAtMs: number | null;
  /** No request before it, if there is a rate limit. */
  readonly nextStartAtMs: number | null;
  readonly lastSequence: number;
  readonly cursor: number;
}

/** How far deliveries may run ahead of the oldest that still hangs. */
const SPAN_MAX = 1_024;

/** Made for one drain; call `run` once. */
export class LaneDrain {
  readonly #deps: LaneDrainDeps;
  readonly #run: LaneRun<LoggedDelivery>;
  readonly #log: LaneLog;
  readonly #timeSlice: TimeSlice;
  readonly #lease: LaneLease;
  readonly #endpoint: LaneEndpoint;
  readonly #attempts: LaneAttempts;
  /** As of the claim: a rate limit that is changed counts from the next time slice on. */
  readonly #pace: PaceWait;
  #isPaused = false;
  #isStopped = false;
  readonly #requester: PermitRequester;
  readonly #permitWait: PermitWait;
  #wakeUp: () => void = () => {};
  #loading: Promise<void> | undefined;
  #keeping: Promise<void> | undefined;
  #failure: { readonly error: unknown } | undefined;
  /** No further request is started; progress of the sent deliveries is stored first, or they would be sent again. */
  #loadFailure: { readonly error: unknown } | undefined;

  constructor(deps: LaneDrainDeps, lane: LaneKey, { claimed, claimedAtMs, deliveries }: TakenLane) {
    this.#deps = deps;
    const windowMax = Math.min(claimed.windowMax ?? Infinity, deps.policy.windowMax);
    const snapshot = {
      ...claimed,
      concurrencyLimit: firstConcurrencyLimit(
        claimed,
        deps.idleTime.isShort(),
        // It is not among them yet.
        deps.laneCount() + 1,
      ),
    };
    this.#run = new LaneRun(snapshot, { ...deps.policy, windowMax });
    this.#log = new LaneLog(deps.store, lane, claimed, deps.isAtEnd);
    this.#timeSlice = new TimeSlice({
      timeSliceMs: deps.leases.timeSliceMs,
      isPlaceWanted: deps.isPlaceWanted,
    });
    const { fencing } = claimed;
    this.#lease = new LaneLease(deps, lane, { fencing, atMs: claimedAtMs }, () => this.#wakeUp());
    this.#endpoint = new LaneEndpoint(deps, lane, claimed);
    const [run, lease, endpoint] = [this.#run, this.#lease, this.#endpoint];
    this.#attempts = new LaneAttempts({ deps, lane, run, endpoint, lease });
    this.#pace = new PaceWait(deps, claimed, (error) =>
      error === undefined ? this.#wakeUp() : this.#fail(error),
    );
    const { accountId } = claimed;
    this.#requester = { accountId, lane: `${lane.environmentId}/${lane.webhookId}` };
    this.#permitWait = new PermitWait({
      requester: this.#requester,
      timeSlice: this.#timeSlice,
      monotonicNow: deps.monotonicNow,
      onTurn: (acquirePermit) => {
        // Checked again: a delivery that ended meanwhile may have started the next one in its own permit.
        if (this.#mayStartNow()) this.#startOne(acquirePermit());
        this.#startWhatMayStart();
        this.#wakeUp();
      },
      onGivenUp: () => this.#wakeUp(),
    });
    if (deliveries) this.#adoptLogged(deliveries);
  }

  /** True if the lane has only waited for its endpoint for so much idle time: then it uses only memory. */
  isStill(durationMs: number): boolean {
    return (
      this.#run.inFlight > 0 &&
      !this.#permitWait.isWaiting &&
      this.#attempts.idleTimeMsSinceEnding >= durationMs
    );
  }

  /**
   * The log has grown up to `lastSequence`. False if this drain does not look at it again.
   *
   * @param deliveries - the last of the log; if absent, they are read.
   */
  noteLogged(lastSequence: number, deliveries?: readonly LoggedDelivery[]): boolean {
    if (!this.looksAgain) return false;
    this.#log.noteLogged(lastSequence);
    if (deliveries) this.#adoptLogged(deliveries);
    this.#wakeUp();
    return true;
  }

  /** Takes the logged deliveries as they are if they come next and would be read now; else they are read later. */
  #adoptLogged(deliveries: readonly LoggedDelivery[]): void {
    const run = this.#run;
    const isNext = deliveries[0]?.sequence === run.loadedThrough + 1;
    if (!isNext || this.#loading || !this.#hasRoom) return;
    this.#log.noteRead(deliveries, run.loadedThrough === run.snapshot().cursor);
    run.load(deliveries);
    this.#timeSlice.begin(this.#deps.monotonicNow());
  }

  /** The release of the lane returns the end of its log. After the end of the lease any process may drain the lane. */
  get looksAgain(): boolean {
    return !this.#isStopped && !this.#lease.isOver(this.#deps.monotonicNow());
  }

  async run(): Promise<DrainOutcome> {
    try {
      for (;;) {
        const ending = this.#nextEnding();
        this.#startWhatMayStart();
        if (this.#failure) throw this.#failure.error;
        if (this.#lease.isFenced) return { outcome: 'fenced' };
        // Side by side: neither waits for the other's statement.
        this.#loadWhatIsWanted();
        const isAtWork = this.#run.inFlight > 0 || this.#permitWait.isWaiting || !!this.#loading;
        this.#keepWhatIsDue(isAtWork);
        if (!isAtWork && !this.#keeping) return await this.#release();
        await ending;
      }
    } finally {
      this.#isStopped = true;
      this.#lease.close();
      this.#permitWait.close();
      await Promise.all([this.#loading, this.#keeping]);
      while (this.#run.inFlight > 0 && !this.#failure) await this.#nextEnding();
    }
  }

  /** Once a turn: the answer changes with time, and `run` would wait for ever for a load that was not begun. */
  #loadWhatIsWanted(): void {
    if (this.#loading || !this.#mayLoad()) return;
    this.#loading = this.#inBackground(this.#load(), () => (this.#loading = undefined));
  }

  #keepWhatIsDue(isAtWork: boolean): void {
    if (this.#keeping || !this.#lease.isKeepingDue) return;
    // A failing lane without other work is kept and given back in one statement, next.
    if (!isAtWork && this.#run.nextProbeAtMs !== null) return;
    this.#keeping = this.#inBackground(this.#keep(false), () => (this.#keeping = undefined));
  }

  async #release(): Promise<DrainOutcome> {
    // A delivery that waits for its pace must not start beside the release.
    this.#isStopped = true;
    const after = await this.#keep(true);
    if (!after) return { outcome: 'fenced' };
    if (this.#loadFailure) throw this.#loadFailure.error;
    const { nextStartAtMs } = this.#pace;
    const { cursor } = this.#run.snapshot();
    return { outcome: 'kept', lane: { ...after, nextStartAtMs, cursor } };
  }

  /** The first error ends the drain, at its next turn. */
  #fail(error: unknown): void {
    this.#failure ??= { error };
    this.#wakeUp();
  }

  /** An error of `work` ends the drain. */
  #inBackground(work: Promise<unknown>, onEnd: () => void): Promise<void> {
    return work
      .then(
        () => undefined,
        (error: unknown) => this.#fail(error),
      )
      .finally(() => {
        onEnd();
        this.#wakeUp();
      });
  }

  #mayStart(): boolean {
    const nowMs = this.#deps.monotonicNow();
    return (
      !this.#isStopped &&
      !this.#isPaused &&
      this.#lease.mayStart(nowMs) &&
      !this.#timeSlice.isOver(nowMs)
    );
  }

  /** Also by its rate limit, for which it waits if necessary. */
  #mayStartNow(): boolean {
    return (
      this.#mayStart() &&
      this.#run.mayStart(this.#deps.now()) &&
      !this.#pace.mustWait(this.#run.inFlight > 0)
    );
  }

  #mayLoad(): boolean {
    const run = this.#run;
    if (!this.#mayStart() || run.loadedThrough >= this.#log.end) return false;
    if (run.nextProbeAtMs !== null)
      return run.isHeadUnknown && run.nextProbeAtMs <= this.#deps.now();
    return this.#hasRoom;
  }

  get #hasRoom(): boolean {
    return wantsPage(this.#run) && this.#run.span < SPAN_MAX;
  }

  async #load(): Promise<void> {
    const limit = nextPageSize(this.#run);
    const { cursor } = this.#run.snapshot();
    try {
      this.#run.load(await this.#log.read(this.#run.loadedThrough, limit, cursor));
      this.#timeSlice.begin(this.#deps.monotonicNow());
    } catch (error) {
      this.#loadFailure = { error };
      this.#isStopped = true;
    }
  }

  #startWhatMayStart(): void {
    while (!this.#permitWait.isWaiting && this.#mayStartNow()) {
      const permits = this.#permits;
      const permit = permits.tryAcquire(this.#requester);
      if (!permit) {
        this.#permitWait.begin(permits);
        return;
      }
      this.#startOne(permit);
    }
  }

  get #permits(): FairPermits {
    const { deliveries, probes } = this.#deps.permits;
    return this.#run.nextProbeAtMs === null ? deliveries : probes;
  }

  #startOne(permit: Permit): void {
    const nowMs = this.#deps.now();
    const delivery = this.#run.start(nowMs);
    if (delivery) {
      this.#pace.start(nowMs);
      this.#send(delivery, permit);
    } else permit.release();
  }

  #send(delivery: LoggedDelivery, permit: Permit): void {
    this.#attempts
      .make(delivery, () => this.#goOn(permit))
      .catch((error: unknown) => {
        permit.release();
        this.#fail(error);
      });
  }

  /**
   * Starts the next request in the permit of the ended one, if that is allowed, and others if they may start. Also
   * while the lane waits for a further permit: otherwise it would hand each on after one request.
   */
  #goOn(permit: Permit): void {
    if (this.#mayStartNow() && permit.renew(this.#permits)) this.#startOne(permit);
    else permit.release();
    this.#startWhatMayStart();
    if (this.#run.inFlight === 0 || this.#lease.isKeepingDue || (!this.#loading && this.#mayLoad()))
      this.#wakeUp();
  }

  /** Undefined if the lease was lost. */
  async #keep(isLast: boolean): Promise<LaneAfterProgress | undefined> {
    const after = await this.#lease.keep({
      snapshot: this.#run.snapshot(),
      nextStartAtMs: this.#pace.nextStartAtMs,
      endpointVersion: this.#endpoint.version,
      isLast,
      readFromDay: this.#log.cursorFromDay,
    });
    if (after) this.#adopt(after);
    return after;
  }

  #adopt(after: LaneAfterProgress): void {
    this.#log.adoptEnd(after.lastSequence);
    this.#isPaused = after.isPaused;
    if (this.#endpoint.adopt(after)) this.#run.probeAtOnce(this.#deps.now());
  }

  #nextEnding(): Promise<void> {
    return new Promise((resolve) => {
      this.#wakeUp = resolve;
    });
  }
}
