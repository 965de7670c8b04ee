/**
 * Steps of purchase workflows: each request to the payment provider, and its result. The request is noted beforehand.
 * By the primary key.
 *
 * Before: `purchase-workflows.ts`, whose lease and fence they are written under.
 */
import type { StepName, StepState } from '@sluice/domain/billing/workflow-steps';
import { sql } from 'kysely';
import type { DatabaseOrTransaction, Transaction } from '../connection/connection.ts';
import type { PurchaseKey } from './purchase-workflows.ts';

export interface PurchaseStep {
  readonly step: StepName;
  readonly attempt: number;
  readonly state: StepState;
  readonly input: unknown;
  readonly output: unknown;
  readonly startedAt: Date;
  readonly endedAt: Date | null;
  /** See `forgiveAttempts`. */
  readonly isForgiven: boolean;
}

export interface StepEnd {
  readonly state: Exclude<StepState, 'intent'>;
  readonly output: object;
}

const STEP = sql`
  step, attempt, state, input, output, started_at as "startedAt", ended_at as "endedAt",
  coalesce((output ->> 'forgiven')::boolean, false) as "isForgiven"`;

/** In the order in which they were begun. */
export async function listPurchaseSteps(
  database: DatabaseOrTransaction,
  { accountId, runId }: PurchaseKey,
): Promise<PurchaseStep[]> {
  const { rows } = await sql<PurchaseStep>`
    select ${STEP} from run_steps where account_id = ${accountId} and run_id = ${runId}
     order by started_at, attempt, step`.execute(database);
  return rows;
}

/**
 * Notes the next request to the payment provider, and keeps the lease for the time it may take.
 *
 * @returns the step as it is on record (an earlier worker's intent, if there is one), or undefined if the worker was
 *   overtaken or the purchase workflow has ended.
 */
export async function insertStepIntent(
  database: DatabaseOrTransaction,
  workflow: PurchaseKey & { readonly fence: number },
  step: {
    readonly step: StepName;
    readonly attempt: number;
    readonly idempotencyKey: string;
    readonly input: object;
  },
  leaseMs: number,
  nowMs: number,
): Promise<PurchaseStep | undefined> {
  const { rows } = await sql<PurchaseStep>`
    with held as (
      update runs set lease_until = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
       where account_id = ${workflow.accountId} and run_id = ${workflow.runId} and fence = ${workflow.fence}
         and status = 'pending'
      returning account_id, run_id
    )
    insert into run_steps (account_id, run_id, step, attempt, state, idempotency_key, input, started_at)
    select account_id, run_id, ${step.step}, ${step.attempt}, 'intent', ${step.idempotencyKey},
           ${JSON.stringify(step.input)}, ${new Date(nowMs)}
      from held
    on conflict (account_id, run_id, step, attempt) do update set state = run_steps.state
    returning ${STEP}`.execute(database);
  return rows[0];
}

/**
 * Moves a step on from one state, and leaves a step in another state as it is.
 *
 * Call with the purchase workflow locked and its fence compared.
 *
 * @param from - `done` for a step that the payment provider had done and that has failed after all, as a bank's payment
 *   may days later.
 */
export async function updateStep(
  transaction: Transaction,
  { accountId, runId }: PurchaseKey,
  step: { readonly step: StepName; readonly attempt: number },
  from: 'intent' | 'done',
  end: StepEnd,
  nowMs: number,
): Promise<void> {
  await sql`
    update run_steps set state = ${end.state}, output = ${JSON.stringify(end.output)},
           ended_at = ${new Date(nowMs)}
     where account_id = ${accountId} and run_id = ${runId} and step = ${step.step}
       and attempt = ${step.attempt} and state = ${from}`.execute(transaction);
}

/**
 * Attempts without a result do not count any more: a person lets the purchase workflow's steps be tried as often again.
 */
export async function forgiveAttempts(
  transaction: Transaction,
  { accountId, runId }: PurchaseKey,
): Promise<void> {
  await sql`
    update run_steps set output = coalesce(output, '{}') || '{"forgiven": true}'
     where account_id = ${accountId} and run_id = ${runId} and state not in ('intent', 'done')`.execute(
    transaction,
  );
}
