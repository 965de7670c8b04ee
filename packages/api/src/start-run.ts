/**
 * Starts a purchase: one transaction that writes the run and its audit entry, then a wake-up. Who finds
 * the lane taken joins the purchase there or is refused (`domain/src/run.ts`); the database's unique
 * index decides, so it does not matter how many ask at the same moment, of which process.
 *
 * A wake-up that is lost is made good by the workers' sweep. After: `worker/src/advance-run.ts`.
 */
import { recordChange, type ChangeOrigin } from '@sluice/database/audit-logs';
import type { Database } from '@sluice/database/connection';
import {
  findPendingRun,
  findRun,
  insertRun,
  listRunSteps,
  type Run,
  type RunKey,
  type RunStep,
} from '@sluice/database/runs';
import { fingerprintOf, judgeStart, laneOf, type Rail, type RunKind } from '@sluice/domain/run';
import type { RunContent } from '@sluice/domain/run-content';
import { setTimeout as sleep } from 'node:timers/promises';

export interface StartRunDeps {
  readonly database: Database;
  readonly wakeRun: (run: RunKey) => Promise<void>;
  readonly newId: () => string;
  readonly now: () => number;
  /** Card rail: how long the customer may take to pay. */
  readonly cardPaymentMs: number;
}

export interface RunRequest {
  readonly accountId: number;
  readonly kind: RunKind;
  readonly rail: Rail;
  readonly content: RunContent;
  /** What makes two requests the same purchase. */
  readonly sameness: Readonly<Record<string, unknown>>;
  readonly origin: ChangeOrigin;
}

export type StartOutcome =
  | { readonly outcome: 'created' | 'joined'; readonly run: Run }
  | { readonly outcome: 'in-flight'; readonly run: Run };

/** The purchase in the lane may end between our insert and our look at it; then there is room for ours. */
const TRIES_MAX = 5;

export async function startRun(deps: StartRunDeps, request: RunRequest): Promise<StartOutcome> {
  const { accountId, kind, rail } = request;
  const lane = laneOf(kind, rail);
  const fingerprint = fingerprintOf(kind, request.sameness);
  for (let attempt = 1; ; attempt++) {
    const nowMs = deps.now();
    const runId = `run_${deps.newId()}`;
    const created = await deps.database.transaction().execute(async (transaction) => {
      const run = await insertRun(
        transaction,
        {
          accountId,
          runId,
          lane,
          kind,
          rail,
          fingerprint,
          content: request.content,
          origin: request.origin,
          expiresAtMs: lane === 'card' ? nowMs + deps.cardPaymentMs : null,
        },
        nowMs,
      );
      if (!run) return undefined;
      await recordChange(
        transaction,
        accountId,
        { ...request.origin, runId },
        {
          objectType: 'purchase',
          objectId: runId,
          before: null,
          after: { kind, rail, status: 'pending', content: request.sameness },
        },
        nowMs,
      );
      return run;
    });
    if (created) {
      await deps.wakeRun(created).catch(() => undefined);
      return { outcome: 'created', run: created };
    }
    const pending = await findPendingRun(deps.database, accountId, lane);
    if (pending) {
      const judged = judgeStart(lane, pending.fingerprint, fingerprint);
      return { outcome: judged === 'join' ? 'joined' : 'in-flight', run: pending };
    }
    if (attempt === TRIES_MAX) throw new Error(`the lane ${lane} of an account is never free`);
  }
}

const WAIT_MS_MIN = 20;
const WAIT_MS_MAX = 250;

export interface RunState {
  readonly run: Run;
  readonly steps: readonly RunStep[];
}

/** Reads a run again and again until it is as wanted, or the time is over. */
export async function waitForRun(
  deps: Pick<StartRunDeps, 'database'>,
  key: RunKey,
  waitMs: number,
  isWanted: (state: RunState) => boolean,
): Promise<RunState | undefined> {
  const deadlineMs = performance.now() + waitMs;
  for (let pauseMs = WAIT_MS_MIN; ; pauseMs = Math.min(pauseMs * 1.5, WAIT_MS_MAX)) {
    const run = await findRun(deps.database, key.accountId, key.runId);
    if (!run) return undefined;
    const state = { run, steps: await listRunSteps(deps.database, key) };
    if (isWanted(state) || performance.now() >= deadlineMs) return state;
    await sleep(Math.min(pauseMs, Math.max(1, deadlineMs - performance.now())));
  }
}
