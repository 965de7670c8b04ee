/** The audit log of what belongs to a workspace, for whoever knows the workspace and not its account. */
import type { AuditObjectType } from '@sluice/domain/audit-registry';
import { AppError } from '@sluice/domain/errors';
import type { Transaction } from 'kysely';
import { recordChange, type ChangeOrigin, type RecordedChange } from './audit-logs.ts';
import { findAccountOf } from './environments.ts';
import type { Tables } from './tables.ts';

/**
 * `recordChange` of what belongs to a workspace, in the log of the account that has it.
 *
 * @throws AppError BUG where there is no such workspace.
 */
export async function recordWorkspaceChange<Type extends AuditObjectType>(
  transaction: Transaction<Tables>,
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
