/** Accounts as their owners see them. One statement a read, by primary keys that begin with the account. */
import type { Address } from '@sluice/domain/accounts/postal-address';
import { sql } from 'kysely';
import { PREPARED, type DatabaseOrTransaction } from '../connection/connection.ts';

export interface Account {
  readonly accountId: number;
  readonly name: string;
  readonly status: 'active' | 'trialing' | 'paused' | 'past_due' | 'closed';
  readonly dataCenter: 'us' | 'eu';
  readonly isSandbox: boolean;
  readonly planId: string;
  readonly planName: string;
  readonly planTier: 'builder' | 'essentials' | 'premium' | 'enterprise';
  readonly planStatus: 'active' | 'trialing' | 'paused' | 'canceled';
  readonly trialEndsAt: Date | null;
  readonly billingRail: 'card' | 'invoiced';
  readonly currency: string;
  readonly timezone: string;
  readonly website: string | null;
  readonly billingEmail: string | null;
  readonly isTwoFactorRequired: boolean;
  readonly address: Address | null;
  readonly ownerUserId: number | null;
  readonly createdAt: Date;
  readonly updatedAt: Date;
  /** By name. */
  readonly products: readonly {
    readonly product: string;
    readonly isActive: boolean;
    /** RFC 3339. */
    readonly activatedAt: string | null;
  }[];
  /** By id; deleted ones too. */
  readonly environments: readonly {
    readonly environmentId: number;
    readonly name: string;
    /** RFC 3339. */
    readonly deletedAt: string | null;
  }[];
}

const ACCOUNT = sql`${PREPARED}
  select a.account_id::int as "accountId", a.name, a.status, a.data_center as "dataCenter",
         a.is_sandbox as "isSandbox", a.plan_id as "planId", a.plan_name as "planName",
         a.plan_tier as "planTier", a.plan_status as "planStatus", a.trial_ends_at as "trialEndsAt",
         a.billing_rail as "billingRail", a.currency, a.timezone, a.website,
         a.billing_email as "billingEmail", a.is_two_factor_required as "isTwoFactorRequired",
         a.address, a.owner_user_id as "ownerUserId", a.created_at as "createdAt",
         a.updated_at as "updatedAt",
         (select coalesce(jsonb_agg(jsonb_build_object(
                   'product', p.product, 'isActive', p.is_active, 'activatedAt', p.activated_at)
                   order by p.product), '[]')
            from account_products p where p.account_id = a.account_id) as products,
         (select coalesce(jsonb_agg(jsonb_build_object(
                   'environmentId', e.environment_id, 'name', e.name, 'deletedAt', e.deleted_at)
                   order by e.environment_id), '[]')
            from environments e where e.account_id = a.account_id) as environments
    from accounts a`;

export async function findAccount(
  database: DatabaseOrTransaction,
  accountId: number,
): Promise<Account | undefined> {
  const { rows } = await sql<Account>`${ACCOUNT} where a.account_id = ${accountId}`.execute(
    database,
  );
  return rows[0];
}

/** The account, if the workspace is one of its own, also a deleted one. */
export async function findAccountByEnvironment(
  database: DatabaseOrTransaction,
  accountId: number,
  environmentId: number,
): Promise<Account | undefined> {
  const { rows } = await sql<Account>`${ACCOUNT} where a.account_id = ${accountId} and exists (
      select from environments e
       where e.account_id = a.account_id and e.environment_id = ${environmentId})`.execute(
    database,
  );
  return rows[0];
}
