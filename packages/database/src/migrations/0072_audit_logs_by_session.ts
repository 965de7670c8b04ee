/** The session that made a change in the console, and its index. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const auditLogsBySession: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`alter table audit_logs add column session_id bigint`.execute(database);
    await sql`
      create index audit_logs_by_session on audit_logs (account_id, session_id, audit_log_id)
       where session_id is not null`.execute(database);
    // The session that let the program in: the program collects its credentials later, by a call without a session.
    await sql`alter table device_logins add column session_id bigint`.execute(database);
  },
};
