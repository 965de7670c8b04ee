/** Brings the schema forward. Migrations have no way back: the next one corrects a mistake. */
import pg from 'pg';
import { sql } from 'kysely';
import { Migrator, type MigrationResult } from 'kysely/migration';
import { AppError } from '@sluice/domain/values/errors';
import type { Database } from '../connection/connection.ts';
import { isDistributed } from '../connection/tenant-statements.ts';
import { accounts } from '../migrations/0001_accounts.ts';
import { peopleAndEvents } from '../migrations/0002_people_and_events.ts';
import { webhooks } from '../migrations/0003_webhooks.ts';
import { lookupIndexes } from '../migrations/0004_lookup_indexes.ts';
import { webhookOperations } from '../migrations/0005_webhook_operations.ts';
import { installation } from '../migrations/0006_installation.ts';
import { parkedOperations } from '../migrations/0007_parked_operations.ts';
import { imports } from '../migrations/0008_imports.ts';
import { testKeys } from '../migrations/0008_test_keys.ts';
import { eventTraces } from '../migrations/0009_event_traces.ts';
import { webhookSecrets } from '../migrations/0010_webhook_secrets.ts';
import { webhookSendOptions } from '../migrations/0010_webhook_send_options.ts';
import { webhooksReplayed } from '../migrations/0010_webhooks_replayed.ts';
import { webhooksWatched } from '../migrations/0010_webhooks_watched.ts';
import { deliveryPartitions } from '../migrations/0011_delivery_partitions.ts';
import { accountSurface } from '../migrations/0012_account_surface.ts';
import { signupAndReceipts } from '../migrations/0013_signup_and_receipts.ts';
import { auditLogs } from '../migrations/0014_audit_logs.ts';
import { auditLogExports } from '../migrations/0015_audit_log_exports.ts';
import { billingRuns } from '../migrations/0016_billing_runs.ts';
import { credits } from '../migrations/0017_credits.ts';
import { vendorCustomers } from '../migrations/0019_vendor_customers.ts';
import { creditHolds } from '../migrations/0020_credit_holds.ts';
import { keptOutcomes } from '../migrations/0021_kept_outcomes.ts';
import { callCounts } from '../migrations/0022_call_counts.ts';
import { inboxPreviewUsage } from '../migrations/0023_inbox_preview_usage.ts';
import { schemaRequirements } from '../migrations/0024_schema_requirements.ts';
import { envelopeTraces } from '../migrations/0025_envelope_traces.ts';
import { importAndReplayTraces } from '../migrations/0026_import_and_replay_traces.ts';
import { peopleCounts } from '../migrations/0027_people_counts.ts';
import { creditRefunds } from '../migrations/0028_credit_refunds.ts';
import { finishedRecords } from '../migrations/0029_finished_records.ts';
import { credentialsInForce } from '../migrations/0030_credentials_in_force.ts';
import { cardChanges } from '../migrations/0031_card_changes.ts';
import { mergeGate } from '../migrations/0032_merge_gate.ts';
import { setAsideRuns } from '../migrations/0033_set_aside_runs.ts';
import { endpointVersions } from '../migrations/0034_endpoint_versions.ts';
import { replayEndpointVersions } from '../migrations/0035_replay_endpoint_versions.ts';
import { bankPayments } from '../migrations/0037_bank_payments.ts';
import { closedAccounts } from '../migrations/0038_closed_accounts.ts';
import { importsWaitForRoom } from '../migrations/0039_imports_wait_for_room.ts';
import { closedOnPlan } from '../migrations/0040_closed_on_plan.ts';
import { peopleInOrder } from '../migrations/0041_people_in_order.ts';
import { cardOnFile } from '../migrations/0042_card_on_file.ts';
import { visitors } from '../migrations/0043_visitors.ts';
import { deletedIdentifiers } from '../migrations/0044_deleted_identifiers.ts';
import { importFileForms } from '../migrations/0045_import_file_forms.ts';
import { issueCredentials } from '../migrations/0046_issue_credentials.ts';
import { importHolds } from '../migrations/0047_import_holds.ts';
import { workerProcesses } from '../migrations/0048_worker_processes.ts';
import { laneMerges } from '../migrations/0049_lane_merges.ts';
import { consoleSessions } from '../migrations/0050_console_sessions.ts';
import { secondFactors } from '../migrations/0051_second_factors.ts';
import { auditLogsByCredential } from '../migrations/0052_audit_logs_by_credential.ts';
import { addressesOfActiveUsers } from '../migrations/0053_addresses_of_active_users.ts';
import { incomingEvents } from '../migrations/0054_incoming_events.ts';
import { portalLinks } from '../migrations/0055_portal_links.ts';
import { processHeartbeats } from '../migrations/0056_process_heartbeats.ts';
import { partitionUpkeep } from '../migrations/0057_partition_upkeep.ts';
import { mergeGateLock } from '../migrations/0058_merge_gate_lock.ts';
import { partitionLooks } from '../migrations/0059_partition_looks.ts';
import { eventTypes } from '../migrations/0060_event_types.ts';
import { applications } from '../migrations/0061_applications.ts';
import { feeds } from '../migrations/0062_feeds.ts';
import { endpointOperations } from '../migrations/0063_endpoint_operations.ts';
import { minuteStatistics } from '../migrations/0064_minute_statistics.ts';
import { failingCountsFrom } from '../migrations/0065_failing_counts_from.ts';
import { endpointCredentials } from '../migrations/0066_endpoint_credentials.ts';
import { identityProviders } from '../migrations/0067_identity_providers.ts';
import { providerSessions } from '../migrations/0068_provider_sessions.ts';
import { archivedEventTypes } from '../migrations/0069_archived_event_types.ts';
import { deviceLogins } from '../migrations/0070_device_logins.ts';
import { secretsByKey } from '../migrations/0071_secrets_by_key.ts';
import { auditLogsBySession } from '../migrations/0072_audit_logs_by_session.ts';
import { signInBrowsers } from '../migrations/0073_sign_in_browsers.ts';
import { formerOwners } from '../migrations/0074_former_owners.ts';
import { auditLogsByActorType } from '../migrations/0075_audit_logs_by_actor_type.ts';
import { settledByWorker } from '../migrations/0076_settled_by_worker.ts';
import { cataloguePlans } from '../migrations/0077_catalogue_plans.ts';
import { visitorsByObject } from '../migrations/0078_visitors_by_object.ts';
import type { MigrationName } from './schema-names.ts';
import {
  assertUsable,
  judgeSchema,
  readSchemaState,
  recordingDemand,
  type SchemaStep,
} from './schema-version.ts';

type SchemaSteps = Readonly<Record<string, SchemaStep>>;

/** A landed one is never edited, renamed or removed. */
export const MIGRATIONS: Readonly<Record<MigrationName, SchemaStep>> = {
  '0001_accounts': accounts,
  '0002_people_and_events': peopleAndEvents,
  '0003_webhooks': webhooks,
  '0004_lookup_indexes': lookupIndexes,
  '0005_webhook_operations': webhookOperations,
  '0006_installation': installation,
  '0007_parked_operations': parkedOperations,
  '0008_imports': imports,
  '0008_test_keys': testKeys,
  '0009_event_traces': eventTraces,
  '0010_webhook_secrets': webhookSecrets,
  '0010_webhook_send_options': webhookSendOptions,
  '0010_webhooks_replayed': webhooksReplayed,
  '0010_webhooks_watched': webhooksWatched,
  '0011_delivery_partitions': deliveryPartitions,
  '0012_account_surface': accountSurface,
  '0013_signup_and_receipts': signupAndReceipts,
  '0014_audit_logs': auditLogs,
  '0015_audit_log_exports': auditLogExports,
  '0016_billing_runs': billingRuns,
  '0017_credits': credits,
  '0019_vendor_customers': vendorCustomers,
  '0020_credit_holds': creditHolds,
  '0021_kept_outcomes': keptOutcomes,
  '0022_call_counts': callCounts,
  '0023_inbox_preview_usage': inboxPreviewUsage,
  '0024_schema_requirements': schemaRequirements,
  '0025_envelope_traces': envelopeTraces,
  '0026_import_and_replay_traces': importAndReplayTraces,
  '0027_people_counts': peopleCounts,
  '0028_credit_refunds': creditRefunds,
  '0029_finished_records': finishedRecords,
  '0030_credentials_in_force': credentialsInForce,
  '0031_card_changes': cardChanges,
  '0032_merge_gate': mergeGate,
  '0033_set_aside_runs': setAsideRuns,
  '0034_endpoint_versions': endpointVersions,
  '0035_replay_endpoint_versions': replayEndpointVersions,
  '0037_bank_payments': bankPayments,
  '0038_closed_accounts': closedAccounts,
  '0039_imports_wait_for_room': importsWaitForRoom,
  '0040_closed_on_plan': closedOnPlan,
  '0041_people_in_order': peopleInOrder,
  '0042_card_on_file': cardOnFile,
  '0043_visitors': visitors,
  '0044_deleted_identifiers': deletedIdentifiers,
  '0045_import_file_forms': importFileForms,
  '0046_issue_credentials': issueCredentials,
  '0047_import_holds': importHolds,
  '0048_worker_processes': workerProcesses,
  '0049_lane_merges': laneMerges,
  '0050_console_sessions': consoleSessions,
  '0051_second_factors': secondFactors,
  '0052_audit_logs_by_credential': auditLogsByCredential,
  '0053_addresses_of_active_users': addressesOfActiveUsers,
  '0054_incoming_events': incomingEvents,
  '0055_portal_links': portalLinks,
  '0056_process_heartbeats': processHeartbeats,
  '0057_partition_upkeep': partitionUpkeep,
  '0058_merge_gate_lock': mergeGateLock,
  '0059_partition_looks': partitionLooks,
  '0060_event_types': eventTypes,
  '0061_applications': applications,
  '0062_feeds': feeds,
  '0063_endpoint_operations': endpointOperations,
  '0064_minute_statistics': minuteStatistics,
  '0065_failing_counts_from': failingCountsFrom,
  '0066_endpoint_credentials': endpointCredentials,
  '0067_identity_providers': identityProviders,
  '0068_provider_sessions': providerSessions,
  '0069_archived_event_types': archivedEventTypes,
  '0070_device_logins': deviceLogins,
  '0071_secrets_by_key': secretsByKey,
  '0072_audit_logs_by_session': auditLogsBySession,
  '0073_sign_in_browsers': signInBrowsers,
  '0074_former_owners': formerOwners,
  '0075_audit_logs_by_actor_type': auditLogsByActorType,
  '0076_settled_by_worker': settledByWorker,
  '0077_catalogue_plans': cataloguePlans,
  '0078_visitors_by_object': visitorsByObject,
};

/**
 * Runs the missing migrations, all in one transaction; concurrent callers wait for one another. A schema that is ahead
 * and can be used (an older version was started again) is left as it is.
 *
 * @param onBegin - called with the name of each migration before it runs: one on a large table takes its time.
 * @returns the names that were run.
 * @throws AppError MIGRATION_MISMATCH when one failed, or the schema needs newer code.
 */
export async function migrate(
  database: Database,
  steps: SchemaSteps = MIGRATIONS,
  onBegin: (name: string) => void = () => {},
): Promise<string[]> {
  const known = Object.keys(steps);
  const state = await readSchemaState(database);
  const verdict = judgeSchema(known, state);
  if (verdict.outcome === 'ahead') assertUsable(verdict);
  const isAhead = state.applied.some((name) => !known.includes(name));
  if (isAhead && verdict.outcome === 'usable') return [];
  const migrations = Object.fromEntries(
    Object.entries(steps).map(([name, step]) => {
      const up: SchemaStep['up'] = (transaction) => {
        onBegin(name);
        return step.up(transaction);
      };
      return [name, recordingDemand(name, { ...step, up })];
    }),
  );
  // A migration changes many tables in one transaction, which Citus then does over one connection to each node.
  if (await isDistributed(database))
    await sql`set citus.multi_shard_modify_mode = 'sequential'`.execute(database);
  const migrator = new Migrator({
    db: database,
    provider: { getMigrations: () => Promise.resolve(migrations) },
  });
  const { error, results } = await migrator.migrateToLatest();
  if (error !== undefined) {
    const failed = results?.find((result) => result.status === 'Error');
    const reason = (error as Error).message;
    throw new AppError(
      'MIGRATION_MISMATCH',
      failed
        ? `migration ${failed.migrationName} failed (${reason}); correct the cause, then run npm run migrate again`
        : `this version cannot use the database (${reason}); ${isPermission(error) ? 'let the user of DATABASE_URL own the database (alter database … owner to …)' : 'if a newer version migrated it, start that version'}`,
      { cause: error },
    );
  }
  return (results ?? []).map((result: MigrationResult) => result.migrationName);
}

/** SQLSTATE `insufficient_privilege`: the owner of a database may make its tables and schemas, others may not (Postgres 15). */
const isPermission = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code === '42501';
