/**
 * Workspaces whose operations fail, because their node is away. All shards of a process know them, so each shard need
 * not meet the failure again.
 *
 * One look at a time asks whether a workspace's rows can be read: a node that does not answer takes half a minute, and
 * the look holds one connection of the pool. Used by `apply-apart.ts`, whose steps begin the looks.
 */
const LOOK_AFTER_MS = 1_000;
/** For a workspace whose rows can be read, and whose operations fail again. */
const LOOK_AFTER_MS_MAX = 8_000;

interface Away {
  readonly error: unknown;
  readonly waitMs: number;
  lookAtMs: number;
}

export interface AwayTenantsOptions {
  /** @throws if the rows of the workspace cannot be read. */
  readonly look: (environmentId: number) => Promise<void>;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly onAway: (environmentId: number, error: unknown) => void;
  readonly onBack: (environmentId: number) => void;
}

export class AwayTenants {
  readonly #options: AwayTenantsOptions;
  /** The one that was looked at the longest ago first. */
  readonly #tenants = new Map<number, Away>();
  readonly #backs = new Map<number, { readonly atMs: number; readonly waitMs: number }>();
  #isLooking = false;
  #backCount = 0;

  constructor(options: AwayTenantsOptions) {
    this.#options = options;
  }

  get isEmpty(): boolean {
    return this.#tenants.size === 0;
  }

  /** How many times a workspace has come back. */
  get backCount(): number {
    return this.#backCount;
  }

  has(environmentId: number): boolean {
    return this.#tenants.has(environmentId);
  }

  /** The error of a workspace; undefined if it is not away. */
  errorOf(environmentId: number): unknown {
    return this.#tenants.get(environmentId)?.error;
  }

  add(environmentId: number, error: unknown): void {
    if (this.#tenants.has(environmentId)) return;
    const nowMs = this.#options.now();
    const back = this.#backs.get(environmentId);
    this.#backs.delete(environmentId);
    const isAgain = back !== undefined && nowMs - back.atMs < LOOK_AFTER_MS_MAX;
    const waitMs = isAgain ? Math.min(2 * back.waitMs, LOOK_AFTER_MS_MAX) : LOOK_AFTER_MS;
    this.#tenants.set(environmentId, { error, waitMs, lookAtMs: nowMs + waitMs });
    if (!isAgain) this.#options.onAway(environmentId, error);
  }

  /** Begins the looks that are due, one after another, unless one is under way. */
  lookIfDue(): void {
    if (this.#isLooking) return;
    const due = [...this.#tenants].find(([, { lookAtMs }]) => lookAtMs <= this.#options.now());
    if (!due) return;
    this.#isLooking = true;
    void this.#look(...due).finally(() => {
      this.#isLooking = false;
      this.lookIfDue();
    });
  }

  async #look(environmentId: number, away: Away): Promise<void> {
    const { look, now, onBack } = this.#options;
    const isBack = await look(environmentId).then(
      () => true,
      () => false,
    );
    this.#tenants.delete(environmentId);
    if (!isBack) {
      this.#tenants.set(environmentId, { ...away, lookAtMs: now() + away.waitMs });
      return;
    }
    this.#backs.set(environmentId, { atMs: now(), waitMs: away.waitMs });
    this.#backCount++;
    onBack(environmentId);
  }
}
