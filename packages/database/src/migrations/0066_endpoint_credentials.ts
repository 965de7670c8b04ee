/**
 * Credentials of a webhook for its endpoint, and its access token.
 *
 * The credentials prove the sender (client certificate, OAuth2) and name the authority that the webhook trusts. The
 * token is the one in force.
 */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const endpointCredentials: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    // `EndpointCredentials` of domain/src/delivery/webhook.ts, as JSON, encrypted.
    await sql`alter table webhooks add column endpoint_credentials text`.execute(database);
    // Read and written by its primary key alone.
    await sql`
      create table webhook_tokens (
        environment_id int not null,
        webhook_id int not null,
        -- Of the last worker that fetched one: a worker whose time was over writes nothing.
        fencing int not null,
        -- Somebody fetches one until then at the latest.
        fetching_until timestamptz,
        -- Encrypted; null before the first.
        token text,
        -- The claim that fetched it.
        token_fencing int,
        -- Of the webhook, as it was when the token was fetched.
        endpoint_version int,
        usable_until timestamptz,
        primary key (environment_id, webhook_id),
        foreign key (environment_id, webhook_id) references webhooks on delete cascade
      )`.execute(database);
  },
};
