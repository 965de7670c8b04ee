/** Rows that tests of the API insert: tenants, credentials, purchases, people, events, receipts. */
import { insertReceipt } from '@sluice/database/billing/receipts';
import type { Database } from '@sluice/database/connection/connection';
import type { Role } from '@sluice/domain/accounts/account';
import { hashSecret } from '@sluice/platform/secrets/secrets';
import { sql } from 'kysely';

export interface Tenant {
  readonly environmentId: number;
  readonly accountId: number;
  /** Of the app API. */
  readonly key: string;
  /** Of a service account that may do everything in the account. */
  readonly token: string;
  /** A Pipelines key for changes, which no call uses. */
  readonly spareCredentialId: number;
}

export async function insertTenant(database: Database, key: string): Promise<Tenant> {
  const { rows } = await sql<{ environmentId: number; accountId: number }>`
    with account as (insert into accounts (name) values (${key}) returning account_id)
    insert into environments (account_id, name, webhook_signing_key)
    select account_id, ${`workspace of ${key}`}, 'signing key' from account
    returning environment_id as "environmentId", account_id::int as "accountId"`.execute(database);
  const { environmentId, accountId } = rows[0]!;
  await insertKey(database, environmentId, 'app', key);
  const token = `sa_sandbox_${key}`;
  await insertToken(database, accountId, token);
  await insertKey(database, environmentId, 'pipelines', `spare_${key}`);
  const spare = await sql<{ credentialId: number }>`
    select credential_id::int as "credentialId" from api_credentials
     where account_id = ${accountId} and kind = 'pipelines'`.execute(database);
  return { environmentId, accountId, key, token, spareCredentialId: spare.rows[0]!.credentialId };
}

/** A token of a new service account. */
export async function insertToken(
  database: Database,
  accountId: number,
  token: string,
  given: {
    readonly role?: Role;
    readonly isReadOnly?: boolean;
    readonly scopes?: readonly string[];
    readonly ipAllowlist?: readonly string[];
    readonly expiresAt?: string;
  } = {},
): Promise<void> {
  const { role = 'account_admin', isReadOnly = false, scopes = ['usage:write'] } = given;
  const { ipAllowlist = [], expiresAt = null } = given;
  await sql`
    with service_account as (
      insert into service_accounts (account_id, name, role) values (${accountId}, 'test', ${role})
      returning account_id, service_account_id)
    insert into api_credentials
      (account_id, service_account_id, kind, name, secret_hash, secret_hint, is_read_only, scopes, ip_allowlist, expires_at)
    select account_id, service_account_id, 'service_account', 'test', ${hashSecret(token)}, ${token.slice(-4)},
           ${isReadOnly}, ${scopes}::text[], ${ipAllowlist}::text[], ${expiresAt}::timestamptz
      from service_account`.execute(database);
}

/** A purchase of add-ons that is pending. */
export async function insertPendingPurchase(
  database: Database,
  accountId: number,
  runId: string,
): Promise<void> {
  const content = { type: 'addons', skus: ['a'], contact: { name: 'a', email: 'a@example.com' } };
  await sql`
    insert into runs (account_id, run_id, lane, kind, rail, fingerprint, content, origin, created_at)
    values (${accountId}, ${runId}, 'addons', 'addons', 'card', '', ${JSON.stringify(content)},
            '{"actor": {"type": "system"}}', '2026-03-01T00:00:00Z')`.execute(database);
}

export async function insertKey(
  database: Database,
  environmentId: number,
  kind: 'app' | 'track' | 'pipelines',
  key: string,
  given: { readonly isReadOnly?: boolean; readonly ipAllowlist?: readonly string[] } = {},
): Promise<void> {
  const { isReadOnly = false, ipAllowlist = [] } = given;
  const hash = hashSecret(key);
  await sql`
    insert into api_credentials
      (account_id, environment_id, kind, name, site_id, secret_hash, secret_hint, is_read_only, ip_allowlist)
    select account_id, environment_id, ${kind}, 'test', ${kind === 'track' ? 'site' : null}::text, ${hash}::bytea,
           ${key.slice(-4)}, ${isReadOnly}, ${ipAllowlist}::text[]
      from environments where environment_id = ${environmentId}`.execute(database);
}

/** A person with the given identifiers and attributes; identifiers as the worker writes them. */
export async function insertPerson(
  database: Database,
  environmentId: number,
  person: {
    readonly personId: number;
    readonly id?: string;
    readonly email?: string;
    readonly attributes?: Record<string, unknown>;
    readonly unsubscribed?: boolean;
  },
): Promise<void> {
  const { personId, id = null, email = null, attributes = {}, unsubscribed = null } = person;
  await sql`
    insert into people (environment_id, person_id, id, email, unsubscribed, attributes, created_at, updated_at)
    values (${environmentId}, ${personId}, ${id}, ${email}, ${unsubscribed}, ${JSON.stringify(attributes)},
            '2026-02-01T00:00:00Z', '2026-02-02T00:00:00Z')`.execute(database);
  for (const [kind, value] of [
    ['id', id],
    ['email', email?.toLowerCase()],
  ]) {
    if (value == null) continue;
    await sql`
      insert into person_identifiers (environment_id, kind, value, person_id)
      values (${environmentId}, ${kind}, ${value}, ${personId})`.execute(database);
  }
}

export async function insertEvent(
  database: Database,
  environmentId: number,
  event: {
    readonly personId: number;
    readonly eventId: string;
    readonly occurredAt: string;
    readonly receivedAt?: string;
    readonly kind?: string;
    readonly name?: string | null;
    readonly data?: Record<string, unknown>;
  },
): Promise<void> {
  const { personId, eventId, occurredAt, kind = 'event', name = 'bought', data = {} } = event;
  const { receivedAt = '2026-03-01T00:00:00Z' } = event;
  await sql`
    insert into events (environment_id, person_id, event_id, kind, name, data, occurred_at, received_at, processed_at)
    values (${environmentId}, ${personId}, ${eventId}, ${kind}, ${name}, ${JSON.stringify(data)}, ${occurredAt},
            ${receivedAt}, ${receivedAt})`.execute(database);
  await sql`
    insert into event_ids (environment_id, event_id, received_at, source)
    values (${environmentId}, ${eventId}, ${receivedAt}, 'pipelines.track')
    on conflict do nothing`.execute(database);
}

/** With text that must be escaped. */
export async function insertTestReceipt(
  database: Database,
  accountId: number,
  receiptId: string,
): Promise<void> {
  await insertReceipt(database, accountId, {
    receiptId,
    number: 'R-1 <b>',
    issuedAt: new Date('2026-02-01T10:00:00Z'),
    billedTo: '<script>alert("billed")</script>\n1 Main & Sons',
    lines: [{ description: `<img src=x onerror='alert(1)'>`, quantity: 2, amount: 12345 }],
    total: 12345,
    currency: 'usd',
    paymentMethod: 'Visa "4242"',
  });
}
