/**
 * Applications: the customers of a workspace, each with endpoints of its own (`webhooks/applications.ts`). An endpoint is a
 * webhook; indexes keep the workspace's own webhooks, which every commit batch looks at, apart from the many of its customers.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const applications: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    await sql`
      create table applications (
        environment_id int not null,
        application_id text collate "C" not null,
        name text not null,
        created_at timestamptz not null default now(),
        primary key (environment_id, application_id)
      )`.execute(database);
    await sql`
      alter table webhooks add column application_id text collate "C"`.execute(database);
    await sql`
      create index webhooks_of_workspace on webhooks (environment_id, webhook_id) where application_id is null`.execute(
      database,
    );
    await sql`
      create index webhooks_of_applications on webhooks (environment_id, application_id, webhook_id)
       where application_id is not null and deleted_at is null`.execute(database);
    await sql`drop index webhooks_of_incoming`.execute(database);
    await sql`
      create index webhooks_of_incoming on webhooks (environment_id)
       where takes_incoming and not disabled and application_id is null`.execute(database);
    await sql`drop index webhooks_filtered`.execute(database);
    await sql`
      create index webhooks_filtered on webhooks (environment_id)
       where attribute_filters is not null and application_id is null`.execute(database);
    await sql`alter table portal_links add column application_id text collate "C"`.execute(
      database,
    );
  },
};
