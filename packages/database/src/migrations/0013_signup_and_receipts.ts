/** Signups, partners and receipts. Also answers that are kept for calls that are sent again. */
import { sql, type Kysely } from 'kysely';
import type { Migration } from 'kysely/migration';

export const signupAndReceipts: Migration = {
  async up(database: Kysely<unknown>): Promise<void> {
    // Before there is an account, so without a tenant.
    await sql`
      create table signups (
        signup_id bigint generated always as identity primary key,
        email text not null,
        ip text not null,
        started_at timestamptz not null,
        -- Never the code. Null until it is mailed, and where the address has an account already.
        code_hmac bytea,
        code_expires_at timestamptz,
        attempt_count int not null default 0,
        used_at timestamptz
      )`.execute(database);
    await sql`create index signups_by_email on signups (lower(email), signup_id)`.execute(database);
    await sql`create index signups_by_ip on signups (ip, started_at)`.execute(database);

    await sql`
      create table partners (
        partner_id text primary key,
        name text,
        website text,
        logo_url text,
        status text not null default 'pending' check (status in ('pending', 'approved', 'rejected')),
        created_at timestamptz not null,
        decided_at timestamptz
      )`.execute(database);
    await sql`
      create index partners_approved on partners (name) where status = 'approved' and name is not null`.execute(
      database,
    );

    await sql`
      create table receipts (
        account_id bigint not null references accounts,
        receipt_id text not null,
        number text not null,
        issued_at timestamptz not null,
        billed_to text not null,
        -- [{description, quantity, amount}] in minor units.
        lines jsonb not null,
        total bigint not null check (total >= 0),
        currency text not null,
        payment_method text,
        primary key (account_id, receipt_id)
      )`.execute(database);

    await sql`
      create table idempotency_keys (
        -- Whose key it is: a credential, or nobody known.
        principal text not null,
        -- Of the key with method and path; the key itself is not kept.
        key_hash bytea not null,
        fingerprint bytea not null,
        started_at timestamptz not null,
        -- The call that runs now; another may take over after that.
        locked_until timestamptz,
        -- Status, headers and body, sealed with the key.
        answer bytea,
        primary key (principal, key_hash)
      )`.execute(database);
    await sql`create index idempotency_keys_by_age on idempotency_keys (started_at)`.execute(
      database,
    );
  },
};
