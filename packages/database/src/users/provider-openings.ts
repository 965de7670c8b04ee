/**
 * Sign-ins by the identity provider of an account.
 *
 *   begun ─the person comes back, in the browser that began─→ taken, once ─the provider's answer is valid─→ a session
 *         └ ten minutes, or another browser: ended
 *
 * A person is known by the provider's own name of them (`sub`), and only the first time by the email: so an address that
 * changes hands at the provider leads to no other person's user. A person who was removed is known under another address
 * too, and stays out until invited. A person without a user becomes one if the account allows it. The session belongs to
 * this account, even if the provider reports another, and an address of an active user of another account is refused.
 * Indexes: primary keys, `user_identities_by_subject`, `users_by_email_and_account`.
 */
import { domainOfEmail } from '@sluice/domain/accounts/identity-provider';
import { sql } from 'kysely';
import { recordChange } from '../changes/record-change.ts';
import type { Database, DatabaseOrTransaction, Transaction } from '../connection/connection.ts';
import { isDuplicateOf } from '../connection/statement-failure.ts';
import type { SessionStanding } from './console-sessions.ts';
import type { NewUserRole } from './identity-providers.ts';
import { activateUser, insertSession, recordSignIn, type SignInCall } from './session-openings.ts';

const MINUTES_MAX = 10;

/** The provider with which a sign-in was begun. */
export interface BegunWith {
  readonly accountId: number;
  readonly issuer: string;
  readonly clientId: string;
}

export interface BegunSignIn extends BegunWith {
  /** The screen that is shown after it (`domain/src/accounts/return-path.ts`). Null: the first one. */
  readonly returnPath: string | null;
}

interface SignInKey {
  readonly accountId: number;
  /** SHA-256 of the state, which the provider returns. */
  readonly stateHash: Buffer;
  /** SHA-256 of the cookie. */
  readonly browserHash: Buffer;
}

/** @returns false if the account has no provider any more. */
export async function beginProviderSignIn(
  database: DatabaseOrTransaction,
  { accountId, stateHash, browserHash, issuer, clientId, returnPath }: SignInKey & BegunSignIn,
): Promise<boolean> {
  const { rows } = await sql`
    insert into provider_sign_ins (account_id, state_hash, browser_hash, issuer, client_id, return_path)
    select account_id, ${stateHash}, ${browserHash}, ${issuer}, ${clientId}, ${returnPath}
      from identity_providers where account_id = ${accountId}
    returning 1`.execute(database);
  return rows.length > 0;
}

/**
 * Takes a sign-in that was begun, so that it is finished once.
 *
 * @returns undefined if it is over, was taken before, or was begun by another browser or with another account's
 *   provider: then it stays as it is.
 */
export async function takeProviderSignIn(
  database: DatabaseOrTransaction,
  { accountId, stateHash, browserHash }: SignInKey,
): Promise<BegunSignIn | undefined> {
  const { rows } = await sql<BegunSignIn>`
    delete from provider_sign_ins
     where account_id = ${accountId} and state_hash = ${stateHash} and browser_hash = ${browserHash}
       and started_at > now() - make_interval(mins => ${MINUTES_MAX})
    returning account_id::int as "accountId", issuer, client_id as "clientId",
              return_path as "returnPath"`.execute(database);
  return rows[0];
}

/** Deletes sign-ins that are over, `limit` at most. Index: `provider_sign_ins_by_start`. */
export async function clearProviderSignIns(
  database: DatabaseOrTransaction,
  limit: number,
): Promise<void> {
  await sql`
    delete from provider_sign_ins s using (
      select account_id, state_hash from provider_sign_ins
       where started_at < now() - make_interval(mins => ${MINUTES_MAX})
       order by started_at limit ${limit}) over
     where s.account_id = over.account_id and s.state_hash = over.state_hash`.execute(database);
}

/** Whom the provider names, checked. */
export interface ProviderPerson extends BegunWith {
  readonly subject: string;
  /** Verified, and of a domain of the provider. */
  readonly email: string;
  /** Encrypted, as the session keeps it. Null: it is not kept. */
  readonly idToken: string | null;
  readonly firstName: string;
  readonly lastName: string;
}

export type ProviderRefused =
  /** The account has another provider by now, or the user was made at the same moment. */
  | 'changed'
  | 'no_user'
  | 'removed'
  /** The address is another person's, as the provider names people. */
  | 'other_person'
  /** The address is an active user's of another account. */
  | 'elsewhere';

export type ProviderOpening =
  | { readonly outcome: 'opened'; readonly standing: SessionStanding }
  | {
      readonly outcome: 'refused';
      readonly reason: ProviderRefused;
      /** Whose address it is, in the account. */
      readonly userId?: number;
    };

/**
 * Opens a session for the person, who becomes a user if the account allows it. An invited user is active from then on,
 * and an account_admin makes the provider one that may be required.
 */
export async function openProviderSession(
  database: Database,
  person: ProviderPerson,
  sessionHash: Buffer,
  call: SignInCall,
  nowMs: number,
): Promise<ProviderOpening> {
  const { accountId } = person;
  const domain = domainOfEmail(person.email);
  try {
    return await database.transaction().execute(async (transaction) => {
      const provider = await lockProvider(transaction, person);
      if (!provider || !(await hasDomain(transaction, accountId, domain)))
        return refused('changed');
      const user = await findPerson(transaction, person);
      const userId = user?.userId ?? (await makeUser(transaction, person, provider, call, nowMs));
      if (userId === undefined) return refused('no_user');
      if (user?.status === 'deactivated') return refused('removed', userId);
      if (user?.isBoundToOther === true) return refused('other_person', userId);
      if (user?.status === 'invited')
        await activateUser(transaction, accountId, userId, call, nowMs);
      await bind(transaction, person, userId);
      if (user?.role === 'account_admin' && !provider.isTried)
        await sql`
          update identity_providers set admin_signed_in_at = now() where account_id = ${accountId}`.execute(
          transaction,
        );
      const owner = { accountId, userId, credentialId: null };
      const sessionId = await insertSession(
        transaction,
        owner,
        'provider',
        sessionHash,
        null,
        call,
      );
      await sql`
        update console_sessions set email_domain = ${domain}, id_token = ${person.idToken}
         where account_id = ${accountId} and session_hash = ${sessionHash}`.execute(transaction);
      if (!provider.countsAsTwoFactors) {
        // Each call of the session sees changes that happen beside this transaction.
        if (user?.isTwoFactorEnabled === true) return opened('needs_code');
        if (provider.isTwoFactorRequired) return opened('needs_setup');
      }
      const name = user?.email ?? person.email;
      await recordSignIn(
        transaction,
        { accountId, userId, sessionId, name },
        'provider',
        call,
        nowMs,
      );
      return opened('complete');
    });
  } catch (error) {
    if (isDuplicateOf(error, 'users_by_email')) return refused('elsewhere');
    const isOvertaken = ['user_identities_by_subject', 'users_by_email_and_account'].some((index) =>
      isDuplicateOf(error, index),
    );
    if (isOvertaken) return refused('changed');
    throw error;
  }
}

const opened = (standing: SessionStanding): ProviderOpening => ({ outcome: 'opened', standing });

const refused = (reason: ProviderRefused, userId?: number): ProviderOpening => ({
  outcome: 'refused',
  reason,
  ...(userId !== undefined && { userId }),
});

interface LockedProvider {
  readonly countsAsTwoFactors: boolean;
  readonly isTwoFactorRequired: boolean;
  readonly isTried: boolean;
  readonly newUserRole: NewUserRole | null;
  readonly newUserEnvironmentIds: readonly number[];
}

/** Sign-ins of one account wait for each other, and for a change of its provider. */
async function lockProvider(
  transaction: Transaction,
  { accountId, issuer, clientId }: BegunWith,
): Promise<LockedProvider | undefined> {
  const { rows } = await sql<LockedProvider>`
    select p.counts_as_two_factors as "countsAsTwoFactors", a.is_two_factor_required as "isTwoFactorRequired",
           p.admin_signed_in_at is not null as "isTried", p.new_user_role as "newUserRole",
           p.new_user_environment_ids as "newUserEnvironmentIds"
      from identity_providers p join accounts a on a.account_id = p.account_id
     where p.account_id = ${accountId} and p.issuer = ${issuer} and p.client_id = ${clientId} and a.status <> 'closed'
       for no key update of p`.execute(transaction);
  return rows[0];
}

/** A statement of its own after the lock: one that waited would still see a domain that was taken out meanwhile. */
async function hasDomain(
  transaction: Transaction,
  accountId: number,
  domain: string,
): Promise<boolean> {
  const { rows } = await sql`
    select from identity_provider_domains where domain = ${domain} and account_id = ${accountId}`.execute(
    transaction,
  );
  return rows.length > 0;
}

interface FoundUser {
  readonly userId: number;
  readonly email: string;
  readonly role: string;
  readonly status: 'active' | 'invited' | 'deactivated';
  readonly isTwoFactorEnabled: boolean;
  /** To another person of the same provider. */
  readonly isBoundToOther: boolean;
}

/**
 * The user who is bound to the person, else the one with the address. One who was removed comes last: an invitation lets
 * the person in again.
 */
async function findPerson(
  transaction: Transaction,
  { accountId, issuer, subject, email }: ProviderPerson,
): Promise<FoundUser | undefined> {
  const { rows } = await sql<FoundUser>`
    select u.user_id as "userId", u.email, u.role, u.status, u.is_two_factor_enabled as "isTwoFactorEnabled",
           coalesce(i.issuer = ${issuer} and i.subject <> ${subject}, false) as "isBoundToOther"
      from users u left join user_identities i on (i.account_id, i.user_id) = (u.account_id, u.user_id)
     where u.account_id = ${accountId} and u.user_id = (
           select k.user_id
             from (select b.user_id, 1 as place from user_identities b
                    where b.account_id = ${accountId} and b.issuer = ${issuer} and b.subject = ${subject}
                   union all
                   select e.user_id, 2 from users e
                    where e.account_id = ${accountId} and lower(e.email) = lower(${email})) f
             join users k on k.account_id = ${accountId} and k.user_id = f.user_id
            order by k.status = 'deactivated', f.place limit 1)
       for no key update of u`.execute(transaction);
  return rows[0];
}

/** @returns undefined if the account admits only people who are users already. */
async function makeUser(
  transaction: Transaction,
  { accountId, email, firstName, lastName }: ProviderPerson,
  { newUserRole, newUserEnvironmentIds }: LockedProvider,
  call: SignInCall,
  nowMs: number,
): Promise<number | undefined> {
  if (newUserRole === null) return undefined;
  const { rows } = await sql<{ userId: number; environmentIds: number[] }>`
    with made as (
      insert into users (account_id, email, first_name, last_name, role, status, is_sso, created_at, updated_at)
      values (${accountId}, ${email}, ${firstName}, ${lastName}, ${newUserRole}, 'active', true,
              ${new Date(nowMs)}, ${new Date(nowMs)})
      returning user_id
    ), joined as (
      insert into memberships (account_id, user_id, environment_id)
      select ${accountId}, made.user_id, e.environment_id
        from made, environments e
       where e.account_id = ${accountId} and e.environment_id = any(${[...newUserEnvironmentIds]}::int[])
         and e.deleted_at is null
      returning environment_id)
    select made.user_id as "userId",
           (select coalesce(array_agg(environment_id order by environment_id), '{}') from joined) as "environmentIds"
      from made`.execute(transaction);
  const { userId, environmentIds } = rows[0] as (typeof rows)[number];
  await recordChange(
    transaction,
    accountId,
    { ...call, actor: { type: 'user', userId } },
    {
      objectType: 'user',
      objectId: userId,
      objectName: email,
      before: null,
      after: {
        email,
        first_name: firstName,
        last_name: lastName,
        role: newUserRole,
        status: 'active',
        two_factor_enabled: false,
        environment_ids: environmentIds,
      },
    },
    nowMs,
  );
  return userId;
}

async function bind(
  transaction: Transaction,
  { accountId, issuer, subject }: ProviderPerson,
  userId: number,
): Promise<void> {
  // Of a user who was removed.
  await sql`
    delete from user_identities
     where account_id = ${accountId} and issuer = ${issuer} and subject = ${subject} and user_id <> ${userId}`.execute(
    transaction,
  );
  await sql`
    insert into user_identities (account_id, user_id, issuer, subject)
    values (${accountId}, ${userId}, ${issuer}, ${subject})
    on conflict (account_id, user_id) do update set issuer = excluded.issuer, subject = excluded.subject
      where user_identities.issuer <> excluded.issuer`.execute(transaction);
  await sql`
    update users set is_sso = true
     where account_id = ${accountId} and user_id = ${userId} and not is_sso`.execute(transaction);
}
