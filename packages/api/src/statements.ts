/**
 * The SQL statements that the routes and the outbox's relay need, on one database: what `buildServer` and
 * `createRelay` are given for them.
 */
import {
  activateProduct,
  requireTwoFactor,
  updateAccount,
  updateAddress,
} from '@sluice/database/account-changes';
import { isBuilderFromTrial } from '@sluice/database/account-plans';
import {
  findAccountToken,
  findAccountTokenById,
  recordCredentialUse,
} from '@sluice/database/account-tokens';
import { findAccount, findAccountByEnvironment } from '@sluice/database/accounts';
import {
  createCredential,
  revokeCredential,
  rotateCredential,
} from '@sluice/database/api-credential-changes';
import { findCredential, listCredentials } from '@sluice/database/api-credentials';
import {
  findAuditLogExport,
  findExportPart,
  orderAuditLogExport,
} from '@sluice/database/audit-log-exports';
import { findAuditLog, listAuditLogs } from '@sluice/database/audit-log-reads';
import { listActivities } from '@sluice/database/activity-reads';
import { takeCalls } from '@sluice/database/call-counts';
import { beginCardChange, endCardChange } from '@sluice/database/card-changes';
import type { Database } from '@sluice/database/connection';
import { findAppKey } from '@sluice/database/credentials';
import { findPersonProfile, listDevices, listRelationships } from '@sluice/database/customer-reads';
import {
  listAttempts,
  listDeliveries,
  listDeliveriesOfState,
} from '@sluice/database/delivery-reads';
import {
  findEventArrival,
  findEventAt,
  listAttemptsOf,
  listDeliveriesOfEvent,
} from '@sluice/database/event-traces';
import { findWorkspaceTotals, updateEnvironment } from '@sluice/database/environments';
import { appendResend, appendTest, probeNow, skipHead } from '@sluice/database/lane-actions';
import { findLaneState } from '@sluice/database/lane-states';
import { appendImportChunk } from '@sluice/database/import-chunks';
import { listImportProblems } from '@sluice/database/import-problems';
import {
  cancelImport,
  deleteImport,
  finishUpload,
  insertImport,
} from '@sluice/database/import-changes';
import { findImport, listImports } from '@sluice/database/imports';
import {
  claimIdempotencyKey,
  keepIdempotentAnswer,
  releaseIdempotencyKey,
} from '@sluice/database/idempotency-keys';
import { listIngestionIssues } from '@sluice/database/ingestion-issue-reads';
import {
  findObjectProfile,
  findObjects,
  listObjectRelationships,
  listObjectTypes,
} from '@sluice/database/object-reads';
import { planReplay, startReplay } from '@sluice/database/replay-start';
import {
  cancelReplay,
  findReplay,
  listAttemptsOfReplay,
  listReplays,
} from '@sluice/database/replays';
import {
  cancelWebhookSecret,
  promoteWebhookSecret,
  rotateWebhookSecret,
} from '@sluice/database/signing-key-changes';
import { findSigningKeys } from '@sluice/database/signing-keys';
import { changeWebhook, makeWebhook, removeWebhook } from '@sluice/database/webhook-changes';
import { findWebhook, listWebhooks } from '@sluice/database/webhooks';
import { claimOutbox, finishOutbox, postponeOutbox } from '@sluice/database/outbox';
import {
  decidePartner,
  insertPartner,
  listApprovedPartners,
  submitStartupApplication,
} from '@sluice/database/partners';
import { findReceipt } from '@sluice/database/receipts';
import {
  countSignupAttempt,
  createAccount,
  findSignup,
  keepSignupCode,
  startSignup,
} from '@sluice/database/signups';
import { listUsers } from '@sluice/database/users';
import { findVendorCustomer } from '@sluice/database/vendor-customers';

const STATEMENTS = {
  listAuditLogs,
  findAuditLog,
  orderAuditLogExport,
  findAuditLogExport,
  findExportPart,
  findAccountToken,
  findAccountTokenById,
  recordCredentialUse,
  takeCalls,
  findAccount,
  findAccountByEnvironment,
  updateAccount,
  updateAddress,
  updateEnvironment,
  requireTwoFactor,
  activateProduct,
  listUsers,
  listCredentials,
  findCredential,
  createCredential,
  rotateCredential,
  revokeCredential,
  findReceipt,
  claimIdempotencyKey,
  keepIdempotentAnswer,
  releaseIdempotencyKey,
  startSignup,
  countSignupAttempt,
  createAccount,
  findSignup,
  keepSignupCode,
  claimOutbox,
  finishOutbox,
  postponeOutbox,
  findVendorCustomer,
  isBuilderFromTrial,
  beginCardChange,
  endCardChange,
  listApprovedPartners,
  insertPartner,
  decidePartner,
  submitStartupApplication,
  findAppKey,
  findWorkspaceTotals,
  findPersonProfile,
  listDevices,
  listActivities,
  listRelationships,
  listIngestionIssues,
  appendImportChunk,
  listImportProblems,
  insertImport,
  deleteImport,
  findImport,
  listImports,
  finishUpload,
  cancelImport,
  listObjectTypes,
  findObjects,
  findObjectProfile,
  listObjectRelationships,
  makeWebhook,
  listWebhooks,
  findWebhook,
  changeWebhook,
  removeWebhook,
  listDeliveries,
  listDeliveriesOfState,
  listAttempts,
  findEventArrival,
  findEventAt,
  listDeliveriesOfEvent,
  listAttemptsOf,
  findLaneState,
  probeNow,
  skipHead,
  appendResend,
  appendTest,
  findSigningKeys,
  rotateWebhookSecret,
  promoteWebhookSecret,
  cancelWebhookSecret,
  planReplay,
  startReplay,
  listReplays,
  findReplay,
  cancelReplay,
  listAttemptsOfReplay,
};

type OnDatabase<Statement> = Statement extends (
  database: never,
  ...rest: infer Rest
) => infer Result
  ? (...rest: Rest) => Result
  : never;

export type Statements = {
  readonly [Name in keyof typeof STATEMENTS]: OnDatabase<(typeof STATEMENTS)[Name]>;
};

/** Each statement with its first argument given. */
export function statementsOn(database: Database): Statements {
  const bound = Object.entries(STATEMENTS).map(([name, statement]) => [
    name,
    (...rest: unknown[]) => (statement as (...all: unknown[]) => unknown)(database, ...rest),
  ]);
  return Object.fromEntries(bound) as Statements;
}
