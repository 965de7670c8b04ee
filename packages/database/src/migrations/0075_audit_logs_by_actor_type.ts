/** Index of changes by the kind of actor that made them. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const auditLogsByActorType: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create index audit_logs_by_actor_type on audit_logs (account_id, actor_type, audit_log_id)`.execute(
      database,
    );
  },
};
