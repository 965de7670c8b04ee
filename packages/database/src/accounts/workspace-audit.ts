/** Audit entries of a workspace, for callers without its account's number. */
import type { AuditObjectType } from '@sluice/domain/accounts/audit-registry';
import { AppError } from '@sluice/domain/values/errors';
import { recordChange, type ChangeOrigin, type RecordedChange } from '../changes/record-change.ts';
import type { Transaction } from '../connection/connection.ts';
import { findAccountOf } from './environments.ts';

/**
 * `recordChange` for objects of a workspace, in the log of the account that has it.
 *
 * @throws AppError BUG if there is no such workspace.
 */
export async function recordWorkspaceChange<Type extends AuditObjectType>(
  transaction: Transaction,
  environmentId: number,
  origin: ChangeOrigin,
  change: Omit<RecordedChange<Type>, 'environmentId'>,
  nowMs: number,
): Promise<void> {
  const accountId = await findAccountOf(transaction, environmentId);
  if (accountId === undefined)
    throw new AppError('BUG', `no account has workspace ${environmentId}`);
  await recordChange(transaction, accountId, origin, { ...change, environmentId }, nowMs);
}
