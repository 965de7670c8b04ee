/**
 * Entries of the audit log as text of a file: NDJSON, or CSV (RFC 4180) that is safe to open.
 *
 * Somebody may have called a webhook like a formula, so cells are guarded (`value-rules/csv-line.ts`). CSV is for reading;
 * NDJSON keeps every character.
 *
 * Before: `audit-entry.ts`. After: `worker/src/maintenance/export-audit-logs.ts`.
 */
import { type CsvCell, csvLine } from '../value-rules/csv-line.ts';
import { wholeAuditLogToWire, type WholeAuditLogEntry } from './audit-entry.ts';

export const EXPORT_FORMATS = ['csv', 'ndjson'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

/** Column → its cell, in the order of the file. */
const COLUMNS: Readonly<Record<string, (entry: WholeAuditLogEntry) => CsvCell>> = {
  id: (entry) => entry.auditLogId,
  occurred_at: (entry) => entry.occurredAt.toISOString(),
  action: (entry) => entry.action,
  object_type: (entry) => entry.objectType,
  object_id: (entry) => entry.objectId,
  object_name: (entry) => entry.objectName,
  actor_type: (entry) => entry.actorType,
  user_id: (entry) => entry.userId,
  service_account_id: (entry) => entry.serviceAccountId,
  actor_name: (entry) => entry.actorName,
  actor_email: (entry) => entry.actorEmail,
  ip_addr: (entry) => entry.ipAddr,
  user_agent: (entry) => entry.userAgent,
  environment_id: (entry) => entry.environmentId,
  changed_attributes: (entry) => entry.changedAttributes.join(' '),
  changes: (entry) => JSON.stringify(entry.changes),
  credential_id: (entry) => entry.credentialId,
  session_id: (entry) => entry.sessionId,
  run_id: (entry) => entry.runId,
  portal_link_id: (entry) => entry.portalLinkId,
  request_id: (entry) => entry.requestId,
  prev_hash: (entry) => entry.previousHash,
  hash: (entry) => entry.hash,
};

/** The text before the first entry. */
export function exportHead(format: ExportFormat): string {
  return format === 'csv' ? csvLine(Object.keys(COLUMNS)) : '';
}

/** One entry, with the end of its line. */
export function exportLine(format: ExportFormat, entry: WholeAuditLogEntry): string {
  if (format === 'ndjson') return `${JSON.stringify(wholeAuditLogToWire(entry))}\n`;
  return csvLine(Object.values(COLUMNS).map((cellOf) => cellOf(entry)));
}
