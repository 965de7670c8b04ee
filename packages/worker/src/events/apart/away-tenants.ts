/**
 * Workspaces whose operations fail, because their node is away. All shards of a process know them, so each shard need
 * not meet the failure again.
 *
 * ```
 *   away ──a look reads its rows──▶ answers ──a part is applied──▶ back
 *     ▲                                │
 *     └────────the part fails──────────┘   the next look comes later
 * ```
 *
 * A node may answer reads and refuse writes, so an applied part alone shows its return. One look at a time is under way:
 * a node that does not answer takes half a minute, and the look holds one connection of the pool. Used by
 * `apply-apart.ts`, whose steps begin the looks.
 */
import { isCancelled, isNodeAway } from '@sluice/database/connection/statement-failure';

const LOOK_AFTER_MS = 1_000;
/** For a workspace whose rows can be read, and whose operations fail again. */
const LOOK_AFTER_MS_MAX = 8_000;
/** If no shard of this process has tried a part by then, each may: the parts may be another process's. */
const TRIED_WITHIN_MS = 8_000;

interface Away {
  readonly error: unknown;
  readonly waitMs: number;
  readonly lookAtMs: number;
  /** Unknown on a plain Postgres, or if other workspaces of the node may be well. */
  node: number | undefined;
  /** Absent: its rows could not be read. */
  readonly answersSinceMs?: number;
  /** A shard applies one of its parts. */
  isTried: boolean;
}

export interface AwayTenantsOptions {
  /** @throws if the rows of the workspace cannot be read. */
  readonly look: (environmentId: number) => Promise<void>;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  readonly onAway: (environmentId: number, error: unknown) => void;
  readonly onBack: (environmentId: number) => void;
}

/** True for an error of a workspace whose node is away. A node that hangs shows as a cancelled statement. */
export const isOfNode = (error: unknown): boolean => isNodeAway(error) || isCancelled(error);

export class AwayTenants {
  readonly #options: AwayTenantsOptions;
  /** The one that was looked at the longest ago first. */
  readonly #tenants = new Map<number, Away>();
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

  /** The nodes that are away, each with the error of one of its workspaces. */
  nodes(): Map<number, unknown> {
    const errors = new Map<number, unknown>();
    for (const { node, error, answersSinceMs } of this.#tenants.values())
      if (node !== undefined && answersSinceMs === undefined) errors.set(node, error);
    return errors;
  }

  /** @param node - if the error is of the node, all of whose workspaces are away with it. */
  add(environmentId: number, error: unknown, node?: number): void {
    if (this.#tenants.has(environmentId)) return;
    this.#wait(environmentId, { error, node, waitMs: LOOK_AFTER_MS });
    this.#options.onAway(environmentId, error);
  }

  /**
   * Applies the first waiting part of a workspace whose rows can be read again, unless another shard does.
   *
   * @throws the error of the part, if it is not of the node.
   */
  async tryIfAnswering(environmentId: number, apply: () => Promise<void>): Promise<void> {
    const away = this.#tenants.get(environmentId);
    if (away?.answersSinceMs === undefined || away.isTried) return;
    away.isTried = true;
    try {
      await apply();
      this.#end(environmentId);
    } catch (error) {
      away.isTried = false;
      if (!isOfNode(error)) throw error;
      const waitMs = Math.min(2 * away.waitMs, LOOK_AFTER_MS_MAX);
      this.#wait(environmentId, { error, node: away.node, waitMs });
    }
  }

  /** Begins the looks that are due, one after another, unless one is under way. */
  lookIfDue(): void {
    const nowMs = this.#options.now();
    for (const [environmentId, { answersSinceMs = Infinity, isTried }] of this.#tenants)
      if (!isTried && answersSinceMs + TRIED_WITHIN_MS <= nowMs) this.#end(environmentId);
    if (this.#isLooking) return;
    const due = [...this.#tenants].find(([, { lookAtMs }]) => lookAtMs <= nowMs);
    if (!due) return;
    this.#isLooking = true;
    void this.#look(...due).finally(() => {
      this.#isLooking = false;
      this.lookIfDue();
    });
  }

  async #look(environmentId: number, away: Away): Promise<void> {
    const { look, now } = this.#options;
    try {
      await look(environmentId);
      this.#tenants.set(environmentId, { ...away, lookAtMs: Infinity, answersSinceMs: now() });
    } catch {
      // The other workspaces of the node wait too: a look at each would keep other nodes waiting for hours.
      for (const [other, { node, answersSinceMs, ...rest }] of [...this.#tenants])
        if (node !== undefined && node === away.node && answersSinceMs === undefined)
          if (other !== environmentId && !rest.isTried) this.#wait(other, { ...rest, node });
      this.#wait(environmentId, away);
    }
  }

  #wait(
    environmentId: number,
    { error, node, waitMs }: Pick<Away, 'error' | 'node' | 'waitMs'>,
  ): void {
    this.#tenants.delete(environmentId);
    const lookAtMs = this.#options.now() + waitMs;
    this.#tenants.set(environmentId, { error, node, waitMs, lookAtMs, isTried: false });
  }

  #end(environmentId: number): void {
    const node = this.#tenants.get(environmentId)?.node;
    this.#tenants.delete(environmentId);
    // The node is there. Its other workspaces are looked at, each by itself.
    for (const away of this.#tenants.values()) if (away.node === node) away.node = undefined;
    this.#backCount++;
    this.#options.onBack(environmentId);
  }
}
