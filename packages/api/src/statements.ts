/**
 * The SQL statements that the routes and the outbox's relay need, on one database: what `buildServer` and
 * `createRelay` are given for them.
 */
import {
  activateProduct,
  requireTwoFactor,
  updateAccount,
  updateAddress,
} from '@sluice/database/accounts/account-changes';
import { isBuilderFromTrial } from '@sluice/database/billing/account-plans';
import {
  findAccountToken,
  findAccountTokenById,
  recordCredentialUse,
} from '@sluice/database/accounts/account-tokens';
import { findAccount, findAccountByEnvironment } from '@sluice/database/accounts/accounts';
import {
  createCredential,
  revokeCredential,
  rotateCredential,
} from '@sluice/database/accounts/api-credential-changes';
import { findCredential, listCredentials } from '@sluice/database/accounts/api-credentials';
import {
  findAuditLogExport,
  findExportPart,
  orderAuditLogExport,
} from '@sluice/database/audit/audit-log-exports';
import { findAuditLog, listAuditLogs } from '@sluice/database/audit/audit-log-reads';
import { listActivities } from '@sluice/database/people/activity-reads';
import { takeCalls } from '@sluice/database/changes/call-counts';
import { beginCardChange, endCardChange } from '@sluice/database/billing/card-changes';
import type { Database } from '@sluice/database/connection/connection';
import { findAppKey } from '@sluice/database/accounts/credentials';
import {
  findPersonProfile,
  listDevices,
  listRelationships,
} from '@sluice/database/people/customer-reads';
import {
  listAttempts,
  listDeliveries,
  listDeliveriesOfState,
} from '@sluice/database/delivery/delivery-reads';
import {
  findEventArrival,
  findEventAt,
  listAttemptsOf,
  listDeliveriesOfEvent,
} from '@sluice/database/events/event-traces';
import { findWorkspaceTotals, updateEnvironment } from '@sluice/database/accounts/environments';
import {
  appendResend,
  appendTest,
  probeNow,
  skipHead,
} from '@sluice/database/replays/lane-actions';
import { findLaneState } from '@sluice/database/delivery/lane-states';
import { appendImportChunk } from '@sluice/database/imports/import-chunks';
import { listImportProblems } from '@sluice/database/imports/import-problems';
import {
  cancelImport,
  deleteImport,
  finishUpload,
  insertImport,
} from '@sluice/database/imports/import-changes';
import { findImport, listImports } from '@sluice/database/imports/imports';
import {
  claimIdempotencyKey,
  keepIdempotentAnswer,
  releaseIdempotencyKey,
} from '@sluice/database/changes/idempotency-keys';
import { listIngestionIssues } from '@sluice/database/events/ingestion-issue-reads';
import {
  findObjectProfile,
  findObjects,
  listObjectRelationships,
  listObjectTypes,
} from '@sluice/database/people/object-reads';
import { planReplay, startReplay } from '@sluice/database/replays/replay-start';
import {
  cancelReplay,
  findReplay,
  listAttemptsOfReplay,
  listReplays,
} from '@sluice/database/replays/replays';
import {
  cancelWebhookSecret,
  promoteWebhookSecret,
  rotateWebhookSecret,
} from '@sluice/database/webhooks/signing-key-changes';
import { findSigningKeys } from '@sluice/database/webhooks/signing-keys';
import {
  changeWebhook,
  makeWebhook,
  removeWebhook,
} from '@sluice/database/webhooks/webhook-changes';
import { findWebhook, listWebhooks } from '@sluice/database/webhooks/webhooks';
import { claimOutbox, finishOutbox, postponeOutbox } from '@sluice/database/changes/outbox';
import {
  decidePartner,
  insertPartner,
  listApprovedPartners,
  submitStartupApplication,
} from '@sluice/database/accounts/partners';
import { findReceipt } from '@sluice/database/billing/receipts';
import {
  countSignupAttempt,
  createAccount,
  findSignup,
  keepSignupCode,
  startSignup,
} from '@sluice/database/accounts/signups';
import { listUsers } from '@sluice/database/accounts/users';
import { findVendorCustomer } from '@sluice/database/billing/vendor-customers';

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
