/** Index of changes by the key that made them. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const auditLogsByCredential: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create index audit_logs_by_credential on audit_logs (account_id, credential_id, audit_log_id)
       where credential_id is not null`.execute(database);
  },
};
