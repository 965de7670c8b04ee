/**
 * Changes of an account's own settings, with their audit entries. Each change and its entry are one transaction.
 *
 * The account's row is locked first, so that the state before is the one that is changed.
 */
import type { Address } from '@sluice/domain/accounts/postal-address';
import { sql } from 'kysely';
import { type Account, findAccount } from './accounts.ts';
import { type ChangeOrigin, recordChange } from '../changes/record-change.ts';
import type { Database, Transaction } from '../connection/connection.ts';
import { transactOnce } from '../changes/transact-once.ts';
import { updateProviderLater } from '../billing/provider-customers.ts';

export interface AccountSettings {
  readonly name: string;
  readonly timezone: string;
  readonly website: string | null;
  readonly billingEmail: string | null;
  readonly ownerUserId: number;
}

/** Changes the given settings and leaves the rest. `no_such_owner`: not an active user of the account. */
export async function updateAccount(
  database: Database,
  accountId: number,
  settings: Partial<AccountSettings>,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<Account | 'no_such_owner' | undefined> {
  const changed = await changeAccount(database, accountId, origin, nowMs, async (transaction) => {
    if (settings.ownerUserId !== undefined) {
      const { rows } = await sql`
        select from users
         where account_id = ${accountId} and user_id = ${settings.ownerUserId} and status = 'active'
           for key share`.execute(transaction);
      if (rows.length === 0) return 'no_such_owner';
    }
    await sql`
      update accounts
         set name = coalesce(${settings.name ?? null}, name),
             timezone = coalesce(${settings.timezone ?? null}, timezone),
             website = case when ${settings.website !== undefined} then ${settings.website ?? null} else website end,
             billing_email = case when ${settings.billingEmail !== undefined}
                                  then ${settings.billingEmail ?? null} else billing_email end,
             owner_user_id = coalesce(${settings.ownerUserId ?? null}::int, owner_user_id),
             updated_at = ${new Date(nowMs)}
       where account_id = ${accountId}`.execute(transaction);
    return undefined;
  });
  return changed === 'no_such_owner' ? changed : changed?.account;
}

/** Puts a whole address in place of the one before. */
export async function updateAddress(
  database: Database,
  accountId: number,
  address: Address,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<Account | undefined> {
  const changed = await changeAccount(database, accountId, origin, nowMs, async (transaction) => {
    await sql`
      update accounts set address = ${JSON.stringify(address)}::jsonb, updated_at = ${new Date(nowMs)}
       where account_id = ${accountId}`.execute(transaction);
    return undefined;
  });
  return changed?.account;
}

/**
 * Ends the sessions with one factor, both ways: sessions that were over while two were required stay over afterwards
 * (`users/console-sessions.ts`). If the setting is already so, there is no change and no entry. Index of the sessions:
 * the primary key, which begins with the account.
 */
export async function requireTwoFactor(
  database: Database,
  accountId: number,
  isRequired: boolean,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<Account | undefined> {
  const changed = await changeAccount(database, accountId, origin, nowMs, async (transaction) => {
    const { rows } = await sql`
      update accounts set is_two_factor_required = ${isRequired}, updated_at = ${new Date(nowMs)}
       where account_id = ${accountId} and is_two_factor_required <> ${isRequired}
      returning 1`.execute(transaction);
    if (rows.length > 0)
      await sql`
        delete from console_sessions
         where account_id = ${accountId} and way <> 'demo' and not has_second_factor
           and not (way = 'provider' and exists (
                 select from identity_providers p where p.account_id = ${accountId} and p.counts_as_two_factors))`.execute(
        transaction,
      );
    return undefined;
  });
  return changed?.account;
}

/** Switches a product on; `wasActivated` is false if it was on already. */
export async function activateProduct(
  database: Database,
  accountId: number,
  product: string,
  origin: ChangeOrigin,
  nowMs: number,
): Promise<{ readonly account: Account; readonly wasActivated: boolean } | undefined> {
  const changed = await changeAccount(database, accountId, origin, nowMs, async (transaction) => {
    await sql`
      insert into account_products (account_id, product, is_active, activated_at)
      values (${accountId}, ${product}, true, ${new Date(nowMs)})
      on conflict (account_id, product) do update
        set is_active = true, activated_at = excluded.activated_at
        where not account_products.is_active`.execute(transaction);
    return undefined;
  });
  return changed && { account: changed.account, wasActivated: changed.isChanged };
}

interface ChangedAccount {
  readonly account: Account;
  /** False: it was so already. */
  readonly isChanged: boolean;
}

/**
 * If `change` returns a refusal, that is returned, and the account stays unchanged. Undefined if there is no such
 * account.
 */
async function changeAccount<Refusal = never>(
  database: Database,
  accountId: number,
  origin: ChangeOrigin,
  nowMs: number,
  change: (transaction: Transaction) => Promise<Refusal | undefined>,
): Promise<ChangedAccount | Refusal | undefined> {
  const isChange = (outcome: ChangedAccount | Refusal | undefined): boolean =>
    typeof outcome === 'object';
  return transactOnce(database, origin.call, isChange, async (transaction) => {
    const { rows } = await sql`
      select from accounts where account_id = ${accountId} for no key update`.execute(transaction);
    if (rows.length === 0) return undefined;
    const before = await findAccount(transaction, accountId);
    const refusal = await change(transaction);
    if (refusal !== undefined) return refusal;
    const account = await findAccount(transaction, accountId);
    if (!before || !account) return undefined;
    const auditLogId = await recordChange(
      transaction,
      accountId,
      origin,
      {
        objectType: 'account',
        objectId: accountId,
        objectName: account.name,
        before: auditedAccount(before),
        after: auditedAccount(account),
      },
      nowMs,
    );
    if (auditLogId !== undefined && isOnInvoices(before, account))
      await updateProviderLater(
        transaction,
        accountId,
        `account ${accountId} change ${auditLogId}`,
        nowMs,
      );
    return { account, isChanged: auditLogId !== undefined };
  });
}

/** Whether the change shows on the account's invoices, which the payment provider writes. */
const isOnInvoices = (before: Account, after: Account): boolean =>
  before.name !== after.name ||
  before.billingEmail !== after.billingEmail ||
  JSON.stringify(before.address) !== JSON.stringify(after.address);

/** As the audit log keeps it. */
export function auditedAccount(account: Account) {
  return {
    name: account.name,
    status: account.status,
    data_center: account.dataCenter,
    sandbox: account.isSandbox,
    plan: account.planId,
    billing_rail: account.billingRail,
    currency: account.currency,
    timezone: account.timezone,
    website: account.website,
    billing_email: account.billingEmail,
    two_factor_required: account.isTwoFactorRequired,
    owner_user_id: account.ownerUserId,
    address: account.address,
    products: account.products.filter(({ isActive }) => isActive).map(({ product }) => product),
  };
}
