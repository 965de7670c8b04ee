/**
 * The identity provider of an account: OpenID, for its users' sign-in.
 * An account has one at most.
 * Its email domains are proved before they come here (`provider-domains.ts`), and each belongs to one open account:
 * before a sign-in, the domain of the address leads to the provider. A person who has signed in by it is bound to the
 * provider's own name of the person (`provider-openings.ts`). A provider is required only after an account_admin has
 * signed in by it: an account must not lock itself out by a wrong address. So issuer and client change only while it is
 * not required.
 * Each change ends the sessions that it invalidates, or that a removed provider opened: otherwise they could open again
 * later (`console-sessions.ts`). Its audit entry is in the same transaction, under the lock of the account's row. Indexes:
 * primary keys, `identity_provider_domains_by_account`, and the primary key of the sessions, which begins with the account.
 */
import { sql } from 'kysely';
import { type ChangeOrigin, recordChange } from '../changes/record-change.ts';
import { transactOnce } from '../changes/transact-once.ts';
import type { Database, DatabaseOrTransaction, Transaction } from '../connection/connection.ts';
import { countMissingRecord, type DueDomain, replaceDomains } from './provider-domains.ts';

/** The role of new users at their first sign-in; never more, even if the provider reports another. */
export type NewUserRole = 'member' | 'billing_admin';

/** As an account sets it. */
export interface ProviderSettings {
  readonly issuer: string;
  readonly clientId: string;
  /** Lower case, one at least. */
  readonly emailDomains: readonly string[];
  /** No other way leads into the console. */
  readonly isRequired: boolean;
  /** A sign-in by it needs no second factor of ours. */
  readonly countsAsTwoFactors: boolean;
  /** Null: people who are no users are refused. */
  readonly newUserRole: NewUserRole | null;
  readonly newUserEnvironmentIds: readonly number[];
}

export interface IdentityProvider extends ProviderSettings {
  readonly accountId: number;
  /** Encrypted. Null: its encryption key was lost, and it must be set again. */
  readonly clientSecret: string | null;
  readonly adminSignedInAt: Date | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
}

export type ProviderRefusal =
  | 'no_account'
  /** `client_secret` is left out, but the stored one is missing, or of another issuer or client. */
  | 'secret_missing'
  /** A domain is another account's. */
  | 'domain_taken'
  /** A domain was taken out meanwhile, and must be proved. */
  | 'domain_gone'
  /** No account_admin has signed in by it yet. */
  | 'not_tried'
  /** Another issuer or client, while it is required. */
  | 'is_required'
  | 'no_workspace';

export async function findIdentityProvider(
  database: DatabaseOrTransaction,
  accountId: number,
): Promise<IdentityProvider | undefined> {
  const { rows } = await sql<IdentityProvider>`
    select p.account_id::int as "accountId", p.issuer, p.client_id as "clientId", p.client_secret as "clientSecret",
           (select coalesce(array_agg(d.domain order by d.domain), '{}')
              from identity_provider_domains d where d.account_id = p.account_id) as "emailDomains",
           p.is_required as "isRequired", p.counts_as_two_factors as "countsAsTwoFactors",
           p.new_user_role as "newUserRole", p.new_user_environment_ids as "newUserEnvironmentIds",
           p.admin_signed_in_at as "adminSignedInAt", p.created_at as "createdAt", p.updated_at as "updatedAt"
      from identity_providers p where p.account_id = ${accountId}`.execute(database);
  return rows[0];
}

/**
 * The account whose provider an email domain leads to. It runs before the tenant is known. Index: the primary key.
 *
 * @param domain - lower case.
 */
export async function findProviderOfDomain(
  database: DatabaseOrTransaction,
  domain: string,
): Promise<Pick<IdentityProvider, 'accountId' | 'issuer' | 'isRequired'> | undefined> {
  const { rows } = await sql<Pick<IdentityProvider, 'accountId' | 'issuer' | 'isRequired'>>`
    select p.account_id::int as "accountId", p.issuer, p.is_required as "isRequired"
      from identity_provider_domains d
      join identity_providers p on p.account_id = d.account_id
      join accounts a on a.account_id = p.account_id
     where d.domain = ${domain} and a.status <> 'closed'`.execute(database);
  return rows[0];
}

/**
 * Domains that were proved just before, with the text of the record that proved them. Null: the caller asked for no
 * record.
 */
export interface DomainProof {
  readonly domains: readonly string[];
  readonly recordText: string | null;
}

/**
 * Puts the settings in place of those before.
 *
 * @param proof - of the domains that the provider did not have.
 * @param clientSecret - encrypted. Undefined: the present one stays.
 */
export async function putIdentityProvider(
  database: Database,
  accountId: number,
  settings: ProviderSettings,
  proof: DomainProof,
  clientSecret: string | undefined,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<IdentityProvider | ProviderRefusal> {
  try {
    return await transactOnce(database, origin.call, isChange, async (transaction) => {
      const before = await lockProvider(transaction, accountId);
      if (before === 'no_account') return before;
      const isOther = before?.issuer !== settings.issuer || before.clientId !== settings.clientId;
      if (clientSecret === undefined && (isOther || before.clientSecret === null))
        return 'secret_missing';
      if (isOther && before?.isRequired === true) return 'is_required';
      if (settings.isRequired && (isOther || before.adminSignedInAt === null)) return 'not_tried';
      if (!(await areWorkspaces(transaction, accountId, settings.newUserEnvironmentIds)))
        return 'no_workspace';
      const proved = new Set([...(before?.emailDomains ?? []), ...proof.domains]);
      if (!settings.emailDomains.every((each) => proved.has(each))) return 'domain_gone';
      await sql`
        insert into identity_providers
          (account_id, issuer, client_id, client_secret, is_required, counts_as_two_factors, new_user_role,
           new_user_environment_ids, admin_signed_in_at, created_at, updated_at)
        values (${accountId}, ${settings.issuer}, ${settings.clientId}, ${clientSecret ?? null}, ${settings.isRequired},
                ${settings.countsAsTwoFactors}, ${settings.newUserRole}, ${[...settings.newUserEnvironmentIds]}::int[],
                ${isOther ? null : before.adminSignedInAt}, ${new Date(nowMs)}, ${new Date(nowMs)})
        on conflict (account_id) do update
          set issuer = excluded.issuer, client_id = excluded.client_id,
              client_secret = coalesce(excluded.client_secret, identity_providers.client_secret),
              is_required = excluded.is_required, counts_as_two_factors = excluded.counts_as_two_factors,
              new_user_role = excluded.new_user_role, new_user_environment_ids = excluded.new_user_environment_ids,
              admin_signed_in_at = excluded.admin_signed_in_at,
              updated_at = excluded.updated_at`.execute(transaction);
      if (!(await replaceDomains(transaction, accountId, settings.emailDomains, proof.recordText)))
        throw new DomainTaken();
      const after = (await findIdentityProvider(transaction, accountId)) as IdentityProvider;
      const doesCountOtherwise =
        before !== undefined && before.countsAsTwoFactors !== after.countsAsTwoFactors;
      if (isOther || doesCountOtherwise) await endSessions(transaction, accountId, ['provider']);
      if (after.isRequired && before?.isRequired !== true)
        await endSessions(transaction, accountId, ['code', 'token']);
      await record(transaction, before ?? null, after, clientSecret !== undefined, origin, nowMs);
      return after;
    });
  } catch (error) {
    if (error instanceof DomainTaken) return 'domain_taken';
    throw error;
  }
}

/** Removes the provider, its sign-ins in progress, and its sessions. @returns false if there is no provider. */
export async function deleteIdentityProvider(
  database: Database,
  accountId: number,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<boolean> {
  return database.transaction().execute(async (transaction) => {
    const before = await lockProvider(transaction, accountId);
    if (before === undefined || before === 'no_account') return false;
    await sql`
      delete from identity_provider_domains where account_id = ${accountId}`.execute(transaction);
    await sql`delete from identity_providers where account_id = ${accountId}`.execute(transaction);
    await endSessions(transaction, accountId, ['provider']);
    await record(transaction, before, null, true, origin, nowMs);
    return true;
  });
}

/**
 * Notes that a domain's record was not found; the second time in a row the domain is taken out, and the sessions of its
 * addresses end. A provider without a domain cannot sign users in, and one that is required stays so.
 *
 * @returns whether the domain is taken out.
 */
export async function noteDomainMissing(
  database: Database,
  due: DueDomain,
  nowMs: number,
): Promise<boolean> {
  const { accountId, domain } = due;
  return database.transaction().execute(async (transaction) => {
    const before = await lockProvider(transaction, accountId);
    if (before === undefined || before === 'no_account') return false;
    if (!(await countMissingRecord(transaction, due))) return false;
    const emailDomains = before.emailDomains.filter((each) => each !== domain);
    const origin = { actor: { type: 'system' } } as const;
    await record(transaction, before, { ...before, emailDomains }, false, origin, nowMs);
    return true;
  });
}

/**
 * Lets the other ways into the console be used again. @returns false if the account has no provider that is required.
 */
export async function requireNoProvider(
  database: Database,
  accountId: number,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<boolean> {
  return database.transaction().execute(async (transaction) => {
    const before = await lockProvider(transaction, accountId);
    if (before === undefined || before === 'no_account' || !before.isRequired) return false;
    await sql`
      update identity_providers set is_required = false, updated_at = ${new Date(nowMs)}
       where account_id = ${accountId}`.execute(transaction);
    await record(transaction, before, { ...before, isRequired: false }, false, origin, nowMs);
    return true;
  });
}

/**
 * Forgets a client secret that no encryption key opens: the account sets it again.
 *
 * @param stored - only while it is still this one.
 * @returns false if another is stored.
 */
export async function forgetClientSecret(
  database: Database,
  accountId: number,
  stored: string,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<boolean> {
  return database.transaction().execute(async (transaction) => {
    const { rows } = await sql<{ issuer: string }>`
      update identity_providers set client_secret = null
       where account_id = ${accountId} and client_secret = ${stored} returning issuer`.execute(
      transaction,
    );
    const [provider] = rows;
    if (!provider) return false;
    await recordChange(
      transaction,
      accountId,
      origin,
      {
        objectType: 'identity_provider',
        objectId: accountId,
        objectName: provider.issuer,
        before: { client_secret: 'before' },
        after: { client_secret: null },
      },
      nowMs,
    );
    return true;
  });
}

class DomainTaken extends Error {}

const isChange = (outcome: IdentityProvider | ProviderRefusal): boolean =>
  typeof outcome === 'object';

async function lockProvider(
  transaction: Transaction,
  accountId: number,
): Promise<IdentityProvider | 'no_account' | undefined> {
  const { rows } = await sql`
    select from accounts where account_id = ${accountId} and status <> 'closed' for no key update`.execute(
    transaction,
  );
  if (rows.length === 0) return 'no_account';
  // A sign-in that runs holds the row until its session is there, and is ended below.
  await sql`
    select from identity_providers where account_id = ${accountId} for no key update`.execute(
    transaction,
  );
  return findIdentityProvider(transaction, accountId);
}

async function areWorkspaces(
  transaction: Transaction,
  accountId: number,
  environmentIds: readonly number[],
): Promise<boolean> {
  const wanted = [...new Set(environmentIds)];
  const { rows } = await sql<{ count: number }>`
    select count(*)::int as count from environments
     where account_id = ${accountId} and environment_id = any(${wanted}::int[]) and deleted_at is null`.execute(
    transaction,
  );
  return rows[0]?.count === wanted.length;
}

async function endSessions(
  transaction: Transaction,
  accountId: number,
  ways: readonly string[],
): Promise<void> {
  await sql`
    delete from console_sessions where account_id = ${accountId} and way = any(${[...ways]}::text[])`.execute(
    transaction,
  );
}

async function record(
  transaction: Transaction,
  before: IdentityProvider | null,
  after: IdentityProvider | null,
  isSecretChanged: boolean,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<void> {
  const { accountId, issuer } = (after ?? before) as IdentityProvider;
  await recordChange(
    transaction,
    accountId,
    origin,
    {
      objectType: 'identity_provider',
      objectId: accountId,
      objectName: issuer,
      before: before && audited(before, 'before'),
      after: after && audited(after, isSecretChanged ? 'after' : 'before'),
    },
    nowMs,
  );
}

/** @param secret - stands for the secret, which the log does not show: another text, if it was changed. */
const audited = (provider: IdentityProvider, secret: string) => ({
  issuer: provider.issuer,
  client_id: provider.clientId,
  client_secret: secret,
  email_domains: [...provider.emailDomains],
  required: provider.isRequired,
  counts_as_two_factors: provider.countsAsTwoFactors,
  new_user_role: provider.newUserRole,
  new_user_environment_ids: [...provider.newUserEnvironmentIds],
});
