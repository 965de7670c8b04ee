/** An account on the wire (`account-conventions.md` §4.1). Pure. */
import type { Account } from '@sluice/database/accounts/accounts';
import { z } from 'zod';
import { instant } from '../http/fields.ts';

export const addressShape = z
  .object({
    company: z.string().nullable(),
    line1: z.string(),
    line2: z.string().nullable(),
    city: z.string(),
    state: z.string().nullable(),
    postal_code: z.string().nullable(),
    country: z.string().meta({ description: 'ISO 3166-1 alpha-2.' }),
    tax_id: z.object({ type: z.string(), value: z.string() }).nullable(),
  })
  .meta({ id: 'Address' });

export const productState = z.object({
  product: z.string(),
  status: z.enum(['active', 'inactive']),
  activated_at: instant.nullable(),
});

const account = z
  .object({
    id: z.int(),
    name: z.string(),
    status: z.enum(['active', 'trialing', 'paused', 'past_due', 'closed']),
    data_center: z.enum(['us', 'eu']),
    sandbox: z.boolean(),
    plan: z.object({
      id: z.string(),
      name: z.string(),
      tier: z.enum(['builder', 'essentials', 'premium', 'enterprise']),
      status: z.enum(['active', 'trialing', 'paused', 'canceled']),
      trial_ends_at: instant.nullable(),
    }),
    billing_rail: z.enum(['card', 'invoiced']),
    currency: z.string(),
    timezone: z.string(),
    website: z.string().nullable(),
    billing_email: z.string().nullable(),
    two_factor_required: z.boolean(),
    products: z.array(productState),
    address: addressShape.nullable(),
    environments: z
      .array(z.object({ id: z.int(), name: z.string(), deleted_at: instant.nullable() }))
      .meta({ description: 'Deleted workspaces are included.' }),
    owner_user_id: z.int().nullable(),
    created_at: instant,
    updated_at: instant,
  })
  .meta({ id: 'Account' });

export const accountResponse = z.object({ account }).meta({ id: 'AccountResponse' });

/** @param currency - the catalogue's: an account is charged in no other. */
export function accountToWire(row: Account, currency: string): z.infer<typeof accountResponse> {
  return {
    account: {
      id: row.accountId,
      name: row.name,
      status: row.status,
      data_center: row.dataCenter,
      sandbox: row.isSandbox,
      plan: {
        id: row.planId,
        name: row.planName,
        tier: row.planTier,
        status: row.planStatus,
        // It is kept for a trial that has led to another plan, but not shown (`account-plans.ts`).
        trial_ends_at: row.planStatus === 'trialing' ? instantOrNull(row.trialEndsAt) : null,
      },
      billing_rail: row.billingRail,
      currency,
      timezone: row.timezone,
      website: row.website,
      billing_email: row.billingEmail,
      two_factor_required: row.isTwoFactorRequired,
      products: row.products.map(({ product, isActive, activatedAt }) => ({
        product,
        status: isActive ? ('active' as const) : ('inactive' as const),
        activated_at: instantOrNull(activatedAt),
      })),
      address: row.address,
      environments: row.environments.map(({ environmentId, name, deletedAt }) => ({
        id: environmentId,
        name,
        deleted_at: instantOrNull(deletedAt),
      })),
      owner_user_id: row.ownerUserId,
      created_at: row.createdAt.toISOString(),
      updated_at: row.updatedAt.toISOString(),
    },
  };
}

/** As a date or, from inside JSON that Postgres made, as text. */
export const instantOrNull = (time: Date | string | null): string | null =>
  time === null ? null : new Date(time).toISOString();
