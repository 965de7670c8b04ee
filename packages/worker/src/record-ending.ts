/** The end of a run in the account's audit log, in the transaction that ends it. */
import { recordChange } from '@sluice/database/audit-logs';
import type { Run } from '@sluice/database/runs';
import type { Tables } from '@sluice/database/tables';
import type { RunEnding } from '@sluice/domain/run';
import type { Transaction } from 'kysely';

/** Call last: the audit log's lock is the last to be taken. */
export async function recordEnding(
  transaction: Transaction<Tables>,
  run: Run,
  status: RunEnding,
  nowMs: number,
): Promise<void> {
  await recordChange(
    transaction,
    run.accountId,
    { actor: { type: 'system' }, runId: run.runId },
    {
      objectType: 'purchase',
      objectId: run.runId,
      before: { kind: run.kind, rail: run.rail, status: run.status },
      after: { kind: run.kind, rail: run.rail, status },
    },
    nowMs,
  );
}
