/**
 * An entry of the audit log, as it is read. It is shown by the API and as a line of an export (`account-conventions.md`
 * §4.4). Both have one shape: a line of an NDJSON export is the API's answer for that entry. Its hash can be computed
 * again from it.
 *
 * Before: `database/src/audit/audit-log-reads.ts`.
 */
import type { AttributeChange, AuditActorType } from './audit-change.ts';
import type { AuditAction } from './audit-registry.ts';

/** As the list shows it. */
export interface AuditLogEntry {
  readonly auditLogId: number;
  readonly occurredAt: Date;
  readonly action: AuditAction;
  readonly objectType: string;
  readonly objectId: string;
  readonly objectName: string | null;
  readonly environmentId: number | null;
  readonly actorType: AuditActorType;
  readonly userId: number | null;
  readonly serviceAccountId: number | null;
  /** Of the user, the service account, the link to the portal or the credential; null if all of them are unknown. */
  readonly actorName: string | null;
  readonly actorEmail: string | null;
  readonly ipAddr: string | null;
  readonly userAgent: string | null;
  readonly credentialId: number | null;
  readonly requestId: string | null;
  readonly changedAttributes: readonly string[];
}

/** With all that is kept of it. */
export interface WholeAuditLogEntry extends AuditLogEntry {
  /** The number of the session, which does not grant access; null outside of the console. */
  readonly sessionId: number | null;
  readonly portalLinkId: string | null;
  readonly runId: string | null;
  readonly changes: readonly AttributeChange[];
  /** Lower-case hexadecimal, as the other. */
  readonly previousHash: string;
  readonly hash: string;
}

/** An entry on the wire. */
export function auditLogToWire(entry: AuditLogEntry) {
  return {
    id: entry.auditLogId,
    occurred_at: entry.occurredAt.toISOString(),
    action: entry.action,
    object_type: entry.objectType,
    object_id: entry.objectId,
    object_name: entry.objectName,
    actor: {
      type: entry.actorType,
      user_id: entry.userId,
      service_account_id: entry.serviceAccountId,
      name: entry.actorName,
      email: entry.actorEmail,
    },
    ip_addr: entry.ipAddr,
    user_agent: entry.userAgent,
    credential_id: entry.credentialId,
    environment_id: entry.environmentId,
    changed_attributes: [...entry.changedAttributes],
    request_id: entry.requestId,
  };
}

/** A whole entry on the wire. */
export function wholeAuditLogToWire(entry: WholeAuditLogEntry) {
  return {
    ...auditLogToWire(entry),
    changes: [...entry.changes],
    // Locations of addresses are not looked up.
    context: {
      location: null,
      credential_id: entry.credentialId,
      session_id: entry.sessionId,
      run_id: entry.runId,
      portal_link_id: entry.portalLinkId,
    },
    hash: entry.hash,
    prev_hash: entry.previousHash,
  };
}
