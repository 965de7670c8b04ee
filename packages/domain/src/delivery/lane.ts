/**
 * One webhook's ordered deliveries, as a machine without clock or network.
 *
 * It decides which delivery may be sent now, and how its ending changes the others (`LaneRun`).
 * Deliveries about one person start in order, each after the end of the one before it. While the lane fails, only the head
 * starts. A delivered delivery never starts again, and the cursor passes finished deliveries only.
 *
 * A run may continue after a crash from a snapshot of any moment. The snapshot is `failing` as soon as a failure is known,
 * so a crash cannot shorten a wait.
 *
 * Step 12 of the walk. Before and after: `worker/src/lane/lane-drain.ts` (step 11) drives it and sends the deliveries.
 * The simulation in `test/delivery/lane-simulation.test.ts` drives it over months of virtual time.
 */
import {
  judgeFailure,
  type DeliveryPolicy,
  type FailedAttempt,
  type RetryState,
} from './delivery-schedule.ts';
import { AppError } from '../values/errors.ts';
import { PersonLines, type LineEntry } from './person-lines.ts';

export interface LanePolicy extends DeliveryPolicy {
  readonly windowMax: number;
}

/** State of a lane between runs. */
export interface LaneSnapshot {
  readonly state: 'healthy' | 'failing';
  /** Every delivery up to this sequence is delivered or abandoned. */
  readonly cursor: number;
  /** Deliveries after the cursor up to here may have been attempted; later ones have not. */
  readonly attemptedThrough: number;
  /** Null exactly while healthy. */
  readonly nextProbeAtMs: number | null;
  readonly concurrencyLimit: number;
}

/** A row of the log, with the result of its earlier attempts. */
export interface LaneDelivery {
  readonly sequence: number;
  readonly retry: RetryState;
  /** Delivered or abandoned out of order, in an earlier run. */
  readonly isFinished: boolean;
  /** An operator asked for it: its first failure ends it, so that it never blocks later deliveries. */
  readonly isTriedOnce: boolean;
  /** The internal id of the person whom it is about. Null if it is about no person, or if its order is free. */
  readonly personId: number | null;
  /**
   * With the first delivery of a page: merges of people whom the page is about, by merged person, whom they are part of
   * now. `personId` of the page's deliveries is after them.
   */
  readonly merges?: ReadonlyMap<number, number>;
}

interface Failing {
  readonly head: number | undefined;
  readonly nextProbeAtMs: number;
  readonly restsUntilMs: number;
}

interface Entry<Delivery> extends LineEntry {
  readonly delivery: Delivery;
  retry: RetryState;
  state: 'waiting' | 'in_flight' | 'finished';
}

/**
 * One run over a lane, from a snapshot through endings to the next snapshot.
 *
 *   healthy: up to `concurrencyLimit` deliveries in flight, at most one a person. Each success raises the limit by one.
 *     │ After a failure no delivery starts, the ones in flight end, and the earliest failed one is the head.
 *     ▼
 *   failing: the head alone, one attempt at a time, at `nextProbeAtMs`. It is after its own wait, and after the hour or
 *     │      the `Retry-After` of each delivery that failed beside it with a status of the one-hour list
 *     │ the head is delivered or abandoned
 *     ▼
 *   healthy, concurrency limit 1: the blocked deliveries follow, in order
 *
 * The lane's memory is a cursor over its log: all deliveries up to it are delivered or abandoned.
 *
 *   sequence  1 2 3 4 5 6 7 8 9 …
 *             ✓ ✓ ✓ ✓ ✗ ✓ ✗ · ·      cursor 4, head 5, attempted through 7
 *
 * Deliveries about one person stand in a line, and deliveries about other people pass it (`person-lines.ts`). So the
 * head may have deliveries before it that were never attempted:
 *
 *   person    A A B A C D …
 *             ✓ · ✓ · ✗ ✓ · · ·      cursor 1, head 5, attempted through 6
 */
export class LaneRun<Delivery extends LaneDelivery> {
  readonly #policy: LanePolicy;
  /** The deliveries loaded and beyond the cursor, by sequence. */
  readonly #entries = new Map<number, Entry<Delivery>>();
  readonly #lines = new PersonLines<Entry<Delivery>>();
  #cursor: number;
  #attemptedThrough: number;
  #loadedThrough: number;
  /** A waiting delivery up to here stands in a line or is in `#released`, unless the lane is failing. */
  #passedThrough: number;
  /** Deliveries up to `#passedThrough` whose turn in their line has come, in order. */
  #released: Entry<Delivery>[] = [];
  #inFlight = 0;
  #concurrencyLimit: number;
  /**
   * Set exactly while failing. `head` is the earliest delivery known to have failed, undefined until it is loaded. The
   * endpoint rests until `restsUntilMs` because of an answer: the hour of `ingestion-webhooks.md` §7, or `Retry-After`.
   */
  #failing: Failing | undefined;

  constructor(snapshot: LaneSnapshot, policy: LanePolicy) {
    this.#policy = policy;
    this.#cursor = snapshot.cursor;
    this.#attemptedThrough = snapshot.attemptedThrough;
    this.#loadedThrough = snapshot.cursor;
    this.#passedThrough = snapshot.cursor;
    this.#concurrencyLimit = Math.min(Math.max(snapshot.concurrencyLimit, 1), policy.windowMax);
    if (snapshot.nextProbeAtMs !== null) {
      const { nextProbeAtMs } = snapshot;
      this.#failing = { head: undefined, nextProbeAtMs, restsUntilMs: nextProbeAtMs };
    }
  }

  get inFlight(): number {
    return this.#inFlight;
  }

  /** How many may be in flight while the lane is healthy. */
  get concurrencyLimit(): number {
    return this.#concurrencyLimit;
  }

  /** How many loaded deliveries come after those already started; when few, it is time to load more. */
  get ahead(): number {
    return this.#loadedThrough - Math.max(this.#passedThrough, this.#cursor);
  }

  /** How many loaded deliveries wait for an earlier one about the same person. */
  get inLineCount(): number {
    return this.#lines.inLineCount;
  }

  /** How many deliveries are held in memory: loaded, and not all before them finished. */
  get span(): number {
    return this.#entries.size;
  }

  get loadedThrough(): number {
    return this.#loadedThrough;
  }

  /** Null while healthy. */
  get nextProbeAtMs(): number | null {
    return this.#failing?.nextProbeAtMs ?? null;
  }

  /** True while failing, if the delivery of the retry probe is not loaded yet. */
  get isHeadUnknown(): boolean {
    return this.#failing !== undefined && this.#failing.head === undefined;
  }

  /**
   * Adds the next deliveries of the log, in order and without a gap.
   *
   * @throws AppError BUG on a gap: a run that continued would lose the missing deliveries.
   */
  load(deliveries: readonly Delivery[]): void {
    const merges = deliveries[0]?.merges;
    if (merges) this.#mergeLines(merges);
    for (const delivery of deliveries) {
      if (delivery.sequence !== this.#loadedThrough + 1) {
        throw new AppError('BUG', `lane log: ${delivery.sequence} follows ${this.#loadedThrough}`);
      }
      this.#loadedThrough = delivery.sequence;
      const entry: Entry<Delivery> = {
        delivery,
        retry: delivery.retry,
        state: delivery.isFinished ? 'finished' : 'waiting',
        personId: delivery.personId,
        waitsFor: 0,
        follower: undefined,
        beside: undefined,
      };
      this.#entries.set(delivery.sequence, entry);
      if (!delivery.isFinished) this.#lines.join(entry);
    }
    this.#advance();
    this.#findHead();
  }

  /** True if `start` would give one. */
  mayStart(nowMs: number): boolean {
    return (this.#failing ? this.#probe(this.#failing, nowMs) : this.#nextWaiting()) !== undefined;
  }

  /** The delivery to send now, which counts as in flight from here; undefined if no delivery may start. */
  start(nowMs: number): Delivery | undefined {
    const entry = this.#failing ? this.#probe(this.#failing, nowMs) : this.#nextWaiting();
    if (!entry) return undefined;
    // It is the first of them, if there are any. While failing their turns do not count.
    this.#released.shift();
    entry.state = 'in_flight';
    this.#inFlight++;
    this.#attemptedThrough = Math.max(this.#attemptedThrough, entry.delivery.sequence);
    return entry.delivery;
  }

  /** The attempts that `sequence` has had, the one in flight not counted. */
  attempts(sequence: number): number {
    return this.#started(sequence).retry.attempts;
  }

  /**
   * The delivery in flight was answered with a 2xx.
   *
   * @param mayGrow - false if more requests at a time would have no benefit.
   */
  succeed(sequence: number, mayGrow = true): void {
    this.#finish(sequence);
    if (!this.#failing) {
      if (!mayGrow) return;
      this.#concurrencyLimit = Math.min(this.#concurrencyLimit + 1, this.#policy.windowMax);
    } else if (this.#failing.head === sequence) {
      this.#resume();
    }
  }

  /** The delivery in flight failed. `chance` as for `judgeFailure`. */
  fail(
    sequence: number,
    attempt: FailedAttempt,
    endedAtMs: number,
    chance: number,
  ): 'retrying' | 'abandoned' {
    const entry = this.#started(sequence);
    if (entry.delivery.isTriedOnce) {
      this.#finish(sequence);
      if (this.#failing?.head === sequence) this.#resume();
      return 'abandoned';
    }
    const verdict = judgeFailure(entry.retry, attempt, endedAtMs, this.#policy, chance);
    entry.retry = verdict.retry;
    if (verdict.outcome === 'abandoned') {
      this.#finish(sequence);
      if (!this.#failing || this.#failing.head === sequence) this.#resume();
      return 'abandoned';
    }
    entry.state = 'waiting';
    this.#inFlight--;
    const own = { nextProbeAtMs: verdict.nextAttemptAtMs, restsUntilMs: verdict.restsUntilMs };
    const known = this.#failing ?? { ...own, head: sequence };
    const restsUntilMs = Math.max(known.restsUntilMs, own.restsUntilMs);
    const head = Math.min(known.head ?? sequence, sequence);
    const { nextProbeAtMs } = sequence === head ? own : known;
    this.#failing = {
      head,
      nextProbeAtMs: Math.max(nextProbeAtMs, restsUntilMs),
      restsUntilMs,
    };
    return 'retrying';
  }

  /** The endpoint was changed: the head need not wait any longer. */
  probeAtOnce(nowMs: number): void {
    if (!this.#failing) return;
    const { head, nextProbeAtMs, restsUntilMs } = this.#failing;
    this.#failing = {
      head,
      nextProbeAtMs: Math.min(nextProbeAtMs, nowMs),
      restsUntilMs: Math.min(restsUntilMs, nowMs),
    };
  }

  snapshot(): LaneSnapshot {
    return {
      state: this.#failing ? 'failing' : 'healthy',
      cursor: this.#cursor,
      attemptedThrough: Math.max(this.#attemptedThrough, this.#cursor),
      nextProbeAtMs: this.nextProbeAtMs,
      concurrencyLimit: this.#concurrencyLimit,
    };
  }

  /** Everything started before a failure has ended, so the earliest that failed is the head. */
  #probe({ head, nextProbeAtMs }: Failing, nowMs: number): Entry<Delivery> | undefined {
    if (this.#inFlight > 0 || nowMs < nextProbeAtMs) return undefined;
    return head === undefined ? undefined : this.#entries.get(head);
  }

  #nextWaiting(): Entry<Delivery> | undefined {
    if (this.#inFlight >= this.#concurrencyLimit) return undefined;
    const [released] = this.#released;
    if (released) return released;
    for (; this.#passedThrough < this.#loadedThrough; this.#passedThrough++) {
      const entry = this.#entries.get(this.#passedThrough + 1);
      if (entry?.state === 'waiting' && entry.waitsFor === 0) return entry;
    }
    return undefined;
  }

  /**
   * After a load: the head is the earliest delivery that was tried and is not finished. If a crash lost its earlier
   * attempts, the earliest unfinished delivery takes its place.
   */
  #findHead(): void {
    if (!this.#failing || this.#failing.head !== undefined) return;
    let earliest: number | undefined;
    for (const [sequence, { state, retry }] of this.#entries) {
      if (state === 'finished') continue;
      earliest ??= sequence;
      if (retry.attempts === 0) continue;
      this.#failing = { ...this.#failing, head: sequence };
      return;
    }
    if (this.#loadedThrough >= this.#attemptedThrough)
      this.#failing = { ...this.#failing, head: earliest };
  }

  /** A delivery whose turn had come may have to wait now. */
  #mergeLines(merges: ReadonlyMap<number, number>): void {
    this.#lines.merge(merges, this.#entries.values());
    this.#released = this.#released.filter(({ waitsFor }) => waitsFor === 0);
  }

  #release(entry: Entry<Delivery>): void {
    const released = this.#released;
    // From the end: it comes last nearly always, and each delivered one of a line comes here.
    const before = released.findLastIndex(
      (each) => each.delivery.sequence < entry.delivery.sequence,
    );
    released.splice(before + 1, 0, entry);
  }

  #resume(): void {
    this.#failing = undefined;
    this.#concurrencyLimit = 1;
    // Deliveries that failed beside the head wait behind it.
    this.#passedThrough = this.#cursor;
    this.#released = [];
  }

  #finish(sequence: number): void {
    const entry = this.#started(sequence);
    entry.state = 'finished';
    this.#inFlight--;
    const released = this.#lines.leave(entry);
    if (released && released.delivery.sequence <= this.#passedThrough) this.#release(released);
    this.#advance();
  }

  #advance(): void {
    while (this.#entries.get(this.#cursor + 1)?.state === 'finished') {
      this.#cursor++;
      this.#entries.delete(this.#cursor);
    }
  }

  #started(sequence: number): Entry<Delivery> {
    const entry = this.#entries.get(sequence);
    if (entry?.state !== 'in_flight')
      throw new AppError('BUG', `lane: delivery ${sequence} is not in flight`);
    return entry;
  }
}
