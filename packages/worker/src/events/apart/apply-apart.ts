/**
 * Applies a shard's commit batches workspace by workspace.
 *
 * ```
 *   queue:  head [A B]   [B C]   [A]   [C]   …      A's node is away
 *                 ▲ ▲     ▲ ▲           ▲           the second and the fourth batch leave the queue
 *               A waits           A waits           the shard's job stays at the head
 * ```
 *
 * The design is in `docs/design/README.md`. Before: `commit-batch-processor.ts`, if a node is away.
 */
import type { Database } from '@sluice/database/connection/connection';
import { isNodeAway } from '@sluice/database/connection/statement-failure';
import {
  AppliedInParts,
  beginParts,
  endParts,
  listAppliedCommitBatches,
} from '@sluice/database/events/commit-batch-parts';
import { expectNode } from '@sluice/database/events/tenant-nodes';
import { partIdOf, type CommitBatch } from '@sluice/domain/operations/envelope';
import type { PendingBatches, PendingView } from '@sluice/platform/consumers/pending-batches';
import type { FurtherBatches } from '@sluice/platform/consumers/queue-behind';
import type { Logger } from '@sluice/platform/process/logger';
import { AwayTenants, isOfNode } from './away-tenants.ts';
import { Pass } from './pass.ts';
import { isComplete, planParts, tenantsOf } from './tenant-parts.ts';
import { TenantPending } from './tenant-pending.ts';

/** A process that has met a batch in parts expects others; another process knows for whom it waits. */
const EXPECTED_FOR_MS = 5_000;
/** Between two looks at a queue without a new batch. */
const IDLE_MS = 100;
/** The others of a window come in the next step, so that no try takes as long as one that hangs (`WORKER_HUNG_AFTER_MS`). */
const SLOW_AFTER_MS = 5_000;

/** The outcome of some parts, as `ProcessOutcome`. */
interface PartsOutcome {
  readonly outcome: 'applied' | 'already-applied' | 'waiting';
  /** How many parts, from the first on, if they are applied. */
  readonly envelopes?: number;
}

/** Applies parts of one workspace, as `processCommitBatch` applies batches. */
export type ApplyParts<Outcome extends PartsOutcome> = (
  first: CommitBatch,
  behind: readonly CommitBatch[],
  pending: PendingView,
) => Promise<Outcome>;

export interface ApplyApartOptions<Outcome extends PartsOutcome> {
  readonly database: Database;
  readonly applyParts: ApplyParts<Outcome>;
  /** The node of each workspace, if it is known. */
  readonly listNodes: (environmentIds: readonly number[]) => Promise<ReadonlyMap<number, number>>;
  readonly logger: Logger;
}

export interface ApartOutcome<Outcome extends PartsOutcome> {
  /** The head and all its parts are applied. */
  readonly isDone: boolean;
  /** Batches whose last part was applied, the head included. */
  readonly completeCount: number;
  readonly outcomes: readonly Outcome[];
  /** Absent: the next step may begin at once. */
  readonly afterMs: number;
  /** Of a workspace that waits. */
  readonly failure: unknown;
}

export class ApplyApart<Outcome extends PartsOutcome> {
  readonly #options: ApplyApartOptions<Outcome>;
  readonly #away: AwayTenants;
  readonly #passes = new WeakMap<FurtherBatches, Pass>();
  readonly #pendings = new WeakMap<PendingBatches, TenantPending>();
  #expectedUntilMs = -Infinity;

  constructor(options: ApplyApartOptions<Outcome>) {
    const { database, logger } = options;
    this.#options = options;
    this.#away = new AwayTenants({
      look: (environmentId) => expectNode(database, environmentId),
      now: () => performance.now(),
      onAway: (environmentId, error) =>
        logger.error(
          { error, environmentId },
          'calls of a workspace wait, because its database node is away or refuses them; others go on',
        ),
      onBack: (environmentId) =>
        logger.warn({ environmentId }, 'calls of a workspace that waited are tried again'),
    });
  }

  /** True while a workspace waits here, or did lately in another process. */
  get isOn(): boolean {
    return !this.#away.isEmpty || performance.now() < this.#expectedUntilMs;
  }

  /** True for the error of a whole batch whose parts may be applied; from then on `isOn` is true. */
  meets(error: unknown): boolean {
    if (!isNodeAway(error) && !(error instanceof AppliedInParts)) return false;
    this.#expect();
    return true;
  }

  /**
   * Applies the next window of the queue, but for workspaces that wait.
   *
   * @param head - the job of the shard.
   * @throws any error that is of no workspace; the step may be repeated.
   */
  async step(
    head: CommitBatch,
    further: FurtherBatches,
    pending: PendingBatches,
  ): Promise<ApartOutcome<Outcome>> {
    const { database } = this.#options;
    this.#away.lookIfDue();
    const pass = Pass.next(this.#passes.get(further), head, this.#away.backCount);
    this.#passes.set(further, pass);
    const window = await pass.readWindow(further);
    const ids = window.map(({ id }) => id);
    await beginParts(database, ids);
    const partIds = window.flatMap((batch) =>
      tenantsOf(batch).map((tenant) => partIdOf(batch.id, tenant)),
    );
    const known = await listAppliedCommitBatches(database, [head.id, ...ids, ...partIds]);
    if (known.has(head.id)) return this.#endHead(head, further, pending);
    const applied = new Set(known);
    const outcomes: Outcome[] = [];
    const isCut =
      (await this.#tryReturned(pass, pending, outcomes)) ||
      (await this.#applyWindow(pass, window, applied, pending, outcomes));
    const complete = window.filter((batch) => isComplete(batch, applied));
    const ended = complete.filter(({ id }) => !known.has(id));
    // First the mark of the end: a batch that stays in the queue after it is found applied.
    await endParts(
      database,
      ended.map(({ id, operations }) => ({ id, operationCount: operations.length })),
    );
    await this.#remove(complete, further, pending);
    const isDone = complete.some(({ id }) => id === head.id);
    if (!isCut) pass.moveBehind(window.filter((batch) => !complete.includes(batch)));
    return {
      isDone,
      completeCount: ended.length,
      outcomes,
      afterMs: window.length > 0 ? 0 : IDLE_MS,
      failure: [...pass.waiting.keys()].map((tenant) => this.#away.errorOf(tenant)).find(Boolean),
    };
  }

  /**
   * Another worker has ended the head, perhaps. It may have the next batch in progress, which the window, read before, may
   * not have. So no other batch is applied.
   */
  async #endHead(
    head: CommitBatch,
    further: FurtherBatches,
    pending: PendingBatches,
  ): Promise<ApartOutcome<Outcome>> {
    await this.#remove([head], further, pending);
    return { isDone: true, completeCount: 0, outcomes: [], afterMs: 0, failure: undefined };
  }

  /**
   * Applies the first waiting part of each workspace whose node answers again.
   *
   * @returns true if one took so long that the next step has the others.
   */
  async #tryReturned(pass: Pass, pending: PendingBatches, outcomes: Outcome[]): Promise<boolean> {
    for (const [tenant, part] of pass.waiting) {
      const begunAtMs = performance.now();
      await this.#away.tryIfAnswering(tenant, () =>
        this.#applyParts(tenant, [part], pending, new Set(), outcomes),
      );
      if (performance.now() - begunAtMs > SLOW_AFTER_MS) return true;
    }
    return false;
  }

  /**
   * @param applied - gets the ids of the parts that are applied.
   * @returns true if other workspaces than the waiting ones have unapplied parts in the window.
   * @throws an error that is of no node, if no part was applied.
   */
  async #applyWindow(
    pass: Pass,
    window: readonly CommitBatch[],
    applied: Set<string>,
    pending: PendingBatches,
    outcomes: Outcome[],
  ): Promise<boolean> {
    const plan = planParts(window, applied, pass.waiting);
    const nodes = await this.#options.listNodes([...plan.keys()]);
    const nodesAway = this.#away.nodes();
    let fault: { readonly error: unknown } | undefined;
    for (const [tenant, parts] of plan) {
      const node = nodes.get(tenant);
      // One attempt shows it for all workspaces of the node: each takes long if the node does not answer.
      if (node !== undefined && nodesAway.has(node))
        this.#away.add(tenant, nodesAway.get(node), node);
      if (this.#away.has(tenant)) {
        pass.wait(tenant, parts);
        continue;
      }
      const begunAtMs = performance.now();
      try {
        await this.#applyParts(tenant, parts, pending, applied, outcomes);
      } catch (error) {
        if (isOfNode(error)) {
          const nodeAway = isNodeAway(error) ? node : undefined;
          this.#away.add(tenant, error, nodeAway);
          if (nodeAway !== undefined) nodesAway.set(nodeAway, error);
          pass.wait(
            tenant,
            parts.filter(({ id }) => !applied.has(id)),
          );
        } else fault ??= { error };
        if (performance.now() - begunAtMs > SLOW_AFTER_MS) return true;
      }
    }
    if (fault && outcomes.length === 0) throw fault.error;
    return fault !== undefined;
  }

  async #applyParts(
    tenant: number,
    parts: readonly CommitBatch[],
    pending: PendingBatches,
    applied: Set<string>,
    outcomes: Outcome[],
  ): Promise<void> {
    const tenantPending = this.#tenantPending(pending);
    for (const part of parts) await tenantPending.learn(part, tenant);
    const view = tenantPending.of(tenant);
    let left = parts;
    for (let [first, ...behind] = left; first; [first, ...behind] = left) {
      const outcome = await this.#options.applyParts(first, behind, view);
      if (outcome.outcome === 'waiting') continue;
      outcomes.push(outcome);
      const count = outcome.envelopes ?? 1;
      for (const { id } of left.slice(0, count)) applied.add(id);
      left = left.slice(count);
    }
  }

  async #remove(
    complete: readonly CommitBatch[],
    further: FurtherBatches,
    pending: PendingBatches,
  ): Promise<void> {
    const logged = await Promise.all(complete.map(({ id }) => pending.find(id)));
    pending.removeApplied(logged.flatMap((batch) => batch ?? []));
    await further.removeFurther(complete.map(({ id }) => id));
  }

  #tenantPending(pending: PendingBatches): TenantPending {
    const known = this.#pendings.get(pending);
    if (known) return known;
    const made = new TenantPending(this.#options.database, pending, () => this.#expect());
    this.#pendings.set(pending, made);
    return made;
  }

  #expect(): void {
    this.#expectedUntilMs = performance.now() + EXPECTED_FOR_MS;
  }
}
