/**
 * Weighted fair queueing of concurrency permits.
 *
 * A permit is one request in flight. Permits are shared out by the time they were held, between accounts first and then
 * between the webhooks of an account. It is start-time fair queueing, twice: each account and each webhook has a tag,
 * the permit time that it has had, and the lowest waits least. After a rest it starts at the present tag, so that rest
 * cannot be saved up. A tag that is far ahead is moved back, which bounds every wait (`fair-queueing.ts`). Without a
 * waiting requester this costs two additions a request, and no time.
 *
 * Slow requests are judged by idle time, not by the clock: a busy process reads every answer late. By the clock all its
 * requests would count as slow, more would be started beside them, and each would be later still (`FairPermits`). Used
 * by `lane-drain.ts`, which asks before each request.
 */
import { MinHeap } from './min-heap.ts';
import {
  accountShare,
  charge,
  laneOf,
  settle,
  type AccountShare,
  type Waiter,
} from './fair-queueing.ts';

export interface FairPermitsOptions {
  /** Requests under way at the same time; slow ones are not counted. */
  readonly permitsMax: number;
  readonly slowMax: number;
  readonly slowAfterMs: number;
  /** Milliseconds, never set back. */
  readonly monotonicNow: () => number;
  /** Idle time of this process in all. */
  readonly idleTimeMs: () => number;
}

/** In a row, while others wait. */
const TURNS_MAX = 16;
const TURNS_MS_MAX = 250;
/** How often slow requests are looked for while somebody waits. */
const LOOK_INTERVAL_MS = 20;

/** Whose request it is. */
export interface PermitRequester {
  readonly accountId: number;
  /** Unique within the account. */
  readonly lane: string;
}

export interface Permit {
  /** Ends the use. */
  release(): void;
  /**
   * Ends the use and begins the next one by the same lane, and returns true; or returns false without an effect. A lane
   * may have a few turns in a row although others wait: its connection and its rows are warm, and each turn is charged.
   *
   * @param permits - the permits that the next use wants.
   */
  renew(permits: FairPermits): boolean;
}

interface HeldPermit extends Permit {
  startedAtIdleTimeMs: number;
  isSlow: boolean;
}

/**
 * The permits of one kind in one process.
 *
 *   permit time    account 1 ──┬── webhook 7   4,020 ms  ← hangs: waits until the others have had as much
 *                              └── webhook 9      12 ms
 *                  account 2 ───── webhook 3       3 ms  ← next
 *
 * A request that still waits after `slowAfterMs` of idle time costs memory and a socket, but no computing. Its permit goes
 * to the next request, while it counts among `slowMax`. So endpoints that hang do not keep permits from healthy ones. Only
 * if too many hang are permits held until the requests end. With clock time in place of idle time, two connections were
 * opened for three deliveries (measured).
 */
export class FairPermits {
  readonly #options: FairPermitsOptions;
  readonly #accounts = new Map<number, AccountShare>();
  readonly #waitingAccounts = new MinHeap<AccountShare>();
  /** The longest held first. */
  readonly #held = new Set<HeldPermit>();
  #presentMs = 0;
  #slowCount = 0;
  #waitingCount = 0;
  #isServing = false;
  #willLook = false;

  constructor(options: FairPermitsOptions) {
    this.#options = options;
  }

  /** Held now, slow ones not counted. */
  get heldCount(): number {
    return this.#held.size;
  }

  get slowCount(): number {
    return this.#slowCount;
  }

  get waitingCount(): number {
    return this.#waitingCount;
  }

  /** A permit, or undefined if no permit is free for this requester now: then `wait`. */
  tryAcquire(requester: PermitRequester): Permit | undefined {
    // Waiting requesters come first.
    if (this.#waitingCount > 0 || this.#held.size >= this.#options.permitsMax) return undefined;
    return this.#acquire(requester);
  }

  /**
   * Calls `onFree` once, when it is this requester's turn: it may `takeTurn` within that call, and not later. Returns a
   * function that ends the wait before that.
   */
  wait(requester: PermitRequester, onFree: () => void): () => void {
    const account = this.#accountOf(requester.accountId);
    const lane = laneOf(account, requester.lane);
    account.uses++;
    lane.uses++;
    this.#waitingCount++;
    const waitsFromMs = Math.max(lane.tagMs, account.presentMs);
    const waiter: Waiter = { lane: requester.lane, onFree, waitsFromMs, isCancelled: false };
    account.waiting.push(waiter, waitsFromMs);
    this.#queue(account);
    this.#serve();
    return () => {
      if (waiter.isCancelled) return;
      waiter.isCancelled = true;
      this.#leave(account, requester.lane);
    };
  }

  /** A permit for the one whose turn it is: only within its `onFree`. */
  takeTurn(requester: PermitRequester): Permit {
    return this.#acquire(requester);
  }

  #acquire(requester: PermitRequester): Permit {
    const account = this.#accountOf(requester.accountId);
    const lane = laneOf(account, requester.lane);
    account.uses++;
    lane.uses++;
    const { monotonicNow, idleTimeMs } = this.#options;
    let startedAtMs = monotonicNow();
    const firstTurnAtMs = startedAtMs;
    let turns = 1;
    let { expectedMs } = lane;
    let isHeld = true;
    const begin = (): void => {
      ({ expectedMs } = lane);
      this.#presentMs = charge(account, this.#presentMs, expectedMs);
      account.presentMs = charge(lane, account.presentMs, expectedMs);
      this.#held.add(permit);
    };
    const end = (nowMs: number): void => {
      if (permit.isSlow) this.#slowCount--;
      else this.#held.delete(permit);
      lane.expectedMs = nowMs - startedAtMs;
      const unexpectedMs = lane.expectedMs - expectedMs;
      settle(account, this.#presentMs, unexpectedMs);
      settle(lane, account.presentMs, unexpectedMs);
    };
    const permit: HeldPermit = {
      startedAtIdleTimeMs: idleTimeMs(),
      isSlow: false,
      release: () => {
        if (!isHeld) return;
        isHeld = false;
        end(monotonicNow());
        this.#forget(account, requester.lane);
        this.#serve();
      },
      renew: (permits) => {
        const nowMs = monotonicNow();
        const isOthersTurn =
          this.#waitingCount > 0 && (turns >= TURNS_MAX || nowMs - firstTurnAtMs > TURNS_MS_MAX);
        if (permits !== this || permit.isSlow || isOthersTurn) return false;
        end(nowMs);
        turns++;
        startedAtMs = nowMs;
        permit.startedAtIdleTimeMs = idleTimeMs();
        begin();
        return true;
      },
    };
    begin();
    return permit;
  }

  #serve(): void {
    // A served requester may ask again within the call: the loop below sees it.
    if (this.#isServing) return;
    this.#isServing = true;
    try {
      this.#serveAll();
    } finally {
      // An `onFree` that throws must not keep the others from their turns.
      this.#isServing = false;
    }
  }

  #serveAll(): void {
    while (this.#waitingCount > 0) {
      if (this.#held.size >= this.#options.permitsMax) this.#setSlowAside();
      if (this.#held.size >= this.#options.permitsMax) {
        this.#lookLater();
        return;
      }
      const account = this.#waitingAccounts.pop();
      if (!account) return;
      account.isQueued = false;
      const waiter = account.waiting.pop();
      if (!waiter) continue;
      if (waiter.isCancelled) {
        this.#queue(account);
        continue;
      }
      if (this.#hasFallenBehind(account, waiter)) continue;
      waiter.isCancelled = true;
      try {
        waiter.onFree();
      } finally {
        this.#leave(account, waiter.lane);
        this.#queue(account);
      }
    }
  }

  /**
   * True if uses that ended since the wait began were charged to this requester or its account: then it queues again
   * by its tags of now.
   */
  #hasFallenBehind(account: AccountShare, waiter: Waiter): boolean {
    const lane = laneOf(account, waiter.lane);
    const isAccountBehind = account.tagMs > account.waitsFromMs;
    if (!isAccountBehind && lane.tagMs <= waiter.waitsFromMs) return false;
    waiter.waitsFromMs = Math.max(lane.tagMs, account.presentMs);
    account.waiting.push(waiter, waiter.waitsFromMs);
    this.#queue(account);
    return true;
  }

  #queue(account: AccountShare): void {
    if (account.isQueued || account.waiting.size === 0) return;
    account.isQueued = true;
    account.waitsFromMs = Math.max(account.tagMs, this.#presentMs);
    this.#waitingAccounts.push(account, account.waitsFromMs);
  }

  #lookLater(): void {
    if (this.#willLook) return;
    this.#willLook = true;
    setTimeout(() => {
      this.#willLook = false;
      this.#serve();
    }, LOOK_INTERVAL_MS);
  }

  #setSlowAside(): void {
    const slowBeforeMs = this.#options.idleTimeMs() - this.#options.slowAfterMs;
    for (const permit of this.#held) {
      if (permit.startedAtIdleTimeMs > slowBeforeMs || this.#slowCount >= this.#options.slowMax)
        return;
      permit.isSlow = true;
      this.#held.delete(permit);
      this.#slowCount++;
    }
  }

  #leave(account: AccountShare, lane: string): void {
    this.#waitingCount--;
    this.#forget(account, lane);
  }

  #accountOf(accountId: number): AccountShare {
    let account = this.#accounts.get(accountId);
    if (!account) {
      account = accountShare(accountId);
      this.#accounts.set(accountId, account);
    }
    return account;
  }

  /** Ends one use. A tag that the present has reached has no meaning any more. */
  #forget(account: AccountShare, laneName: string): void {
    account.uses--;
    const lane = account.lanes.get(laneName);
    if (lane) lane.uses--;
    if (lane?.uses === 0 && lane.tagMs <= account.presentMs) account.lanes.delete(laneName);
    // The debts between its webhooks count only while the account has something under way.
    if (account.uses === 0 && account.tagMs <= this.#presentMs)
      this.#accounts.delete(account.accountId);
  }
}
