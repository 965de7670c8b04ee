/**
 * The email domains of identity providers. A domain is proved by a TXT record before it comes here
 * (`api/src/identity/domain-records.ts`), and again each day.
 *
 *   proved ─no such record→ missing once ─no such record, a day later→ taken out
 *      └─────────the record is there─────────┘
 *
 * A domain that is taken out ends the sessions of its addresses, in the same transaction. The record's text is kept, so
 * that it stays a proof if the secret changes from which such texts are made. Indexes: the primary key,
 * `identity_provider_domains_by_account`, `identity_provider_domains_by_check`, and the primary key of the sessions, which
 * begins with the account.
 */
import { sql } from 'kysely';
import type { DatabaseOrTransaction, Transaction } from '../connection/connection.ts';

/** Checks in a row without the record, after which a domain is taken out. */
const MISSING_COUNT_MAX = 2;
/** Until a check that came to no result is made again. */
const RETRY_HOURS = 1;

export interface DueDomain {
  readonly accountId: number;
  readonly domain: string;
  /** Of the record that proved it. Null: it was proved before texts were kept, or without a record. */
  readonly recordText: string | null;
}

/**
 * Puts the domains in place of those before. The new ones were proved just now. @returns false if one is another
 * account's.
 */
export async function replaceDomains(
  transaction: Transaction,
  accountId: number,
  domains: readonly string[],
  recordText: string | null,
): Promise<boolean> {
  const wanted = [...new Set(domains)];
  const { rows: removed } = await sql<{ domain: string }>`
    delete from identity_provider_domains
     where account_id = ${accountId} and not domain = any(${wanted}::text[]) returning domain`.execute(
    transaction,
  );
  await endSessionsOfDomains(
    transaction,
    accountId,
    removed.map(({ domain }) => domain),
  );
  // An account that is closed cannot give its domains up.
  await sql`
    delete from identity_provider_domains d using accounts a
     where d.domain = any(${wanted}::text[]) and a.account_id = d.account_id and a.account_id <> ${accountId}
       and a.status = 'closed'`.execute(transaction);
  await sql`
    insert into identity_provider_domains (account_id, domain, record_text)
    select ${accountId}, domain, ${recordText} from unnest(${wanted}::text[]) as domain
    on conflict do nothing`.execute(transaction);
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from identity_provider_domains where account_id = ${accountId}`.execute(
    transaction,
  );
  return rows[0]?.count === wanted.length;
}

/**
 * Takes domains whose proof is due, `limit` at most. They cannot be taken again for an hour, unless an outcome is
 * noted.
 */
export async function takeDueDomains(
  database: DatabaseOrTransaction,
  limit: number,
): Promise<DueDomain[]> {
  const { rows } = await sql<DueDomain>`
    update identity_provider_domains d set check_due_at = now() + make_interval(hours => ${RETRY_HOURS})
     where d.domain in (
           select domain from identity_provider_domains
            where check_due_at <= now() order by check_due_at limit ${limit} for update skip locked)
    returning d.account_id::int as "accountId", d.domain, d.record_text as "recordText"`.execute(
    database,
  );
  return rows;
}

/** The record was there; its text is kept. */
export async function noteDomainProved(
  database: DatabaseOrTransaction,
  { accountId, domain, recordText }: DueDomain,
): Promise<void> {
  await sql`
    update identity_provider_domains
       set check_due_at = now() + interval '1 day', missing_count = 0, record_text = ${recordText}
     where domain = ${domain} and account_id = ${accountId}`.execute(database);
}

/**
 * There was no such record. In a transaction that has locked the account's provider.
 *
 * @returns whether the domain is taken out.
 */
export async function countMissingRecord(
  transaction: Transaction,
  { accountId, domain }: Pick<DueDomain, 'accountId' | 'domain'>,
): Promise<boolean> {
  const { rows } = await sql<{ count: number }>`
    update identity_provider_domains
       set check_due_at = now() + interval '1 day', missing_count = missing_count + 1
     where domain = ${domain} and account_id = ${accountId} returning missing_count as count`.execute(
    transaction,
  );
  if ((rows[0]?.count ?? 0) < MISSING_COUNT_MAX) return false;
  await sql`
    delete from identity_provider_domains
     where domain = ${domain} and account_id = ${accountId}`.execute(transaction);
  await endSessionsOfDomains(transaction, accountId, [domain]);
  return true;
}

/** Sessions from before domains were kept end with the first domain that is taken out: theirs is not known. */
async function endSessionsOfDomains(
  transaction: Transaction,
  accountId: number,
  domains: readonly string[],
): Promise<void> {
  if (domains.length === 0) return;
  await sql`
    delete from console_sessions
     where account_id = ${accountId} and way = 'provider'
       and (email_domain is null or email_domain = any(${[...domains]}::text[]))`.execute(
    transaction,
  );
}
