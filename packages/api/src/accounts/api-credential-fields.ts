/** A credential on the wire. Also the fields of a new one (`account-conventions.md` §4.3). Pure. */
import { choose, hasMember, hasMemberAs, where, without } from '../http/conditions.ts';
import { isIP } from 'node:net';
import { CREDENTIAL_TYPES, type Credential } from '@sluice/database/accounts/api-credentials';
import { ROLES, SCOPES } from '@sluice/domain/accounts/account';
import { parseIsoMs } from '@sluice/domain/value-rules/iso-instant';
import { z } from 'zod';
import { int32, name } from './account-fields.ts';
import { instantOrNull } from './account-view.ts';
import { instant, text, UNIX_SECONDS_MAX } from '../http/fields.ts';

export const CREDENTIALS_PATH = '/v1/accounts/:account_id/api_credentials';
const ADDRESS_COUNT_MAX = 50;

const TYPES = ['app', 'tracking', 'pipelines', 'service_account'] as const;
/** The wire's words for our kinds. */
export const KINDS = {
  app: 'app',
  tracking: 'track',
  pipelines: 'pipelines',
  service_account: 'service_account',
} as const;

export const credential = z
  .object({
    id: z.int(),
    name: z.string(),
    type: z.enum(TYPES),
    environment_id: z.int().nullable(),
    service_account_id: z.int().nullable(),
    site_id: z.string().nullable().meta({ description: 'Of type tracking only.' }),
    token_hint: z.string().meta({ description: 'The last four characters of the secret.' }),
    role: z.enum(ROLES).nullable().meta({
      description: 'The rights of a service account; null for the other types.',
    }),
    scopes: z.array(z.string()),
    ip_allowlist: z.array(z.string()),
    read_only: z.boolean(),
    testing: z.boolean().meta({
      description: 'Of type pipelines: it opens identify calls only, until one was taken.',
    }),
    created_by_user_id: z.int().nullable(),
    last_used_at: instant.nullable().meta({ description: 'To the minute.' }),
    last_used_ip: z.string().nullable().meta({ description: 'Of tokens and app keys.' }),
    expires_at: instant.nullable(),
    revoked_at: instant.nullable(),
    created_at: instant,
  })
  .meta({ id: 'ApiCredential' });

export const credentialResponse = z
  .object({ api_credential: credential })
  .meta({ id: 'ApiCredentialResponse' });

export const madeResponse = z
  .object({
    api_credential: credential,
    secret: z.string().meta({ description: 'Shown this once.' }),
  })
  .meta({ id: 'ApiCredentialWithSecret' });

const addressBlock = text(50).refine(isAddressBlock, {
  error: 'must be an IP address or a CIDR block',
});

export const newCredentialInput = z
  .strictObject({
    name,
    type: z.enum(TYPES),
    environment_id: int32
      .optional()
      .meta({ description: 'Its workspace; not of a service account.' }),
    role: z.enum(ROLES).optional(),
    scopes: z.array(z.enum(SCOPES)).max(SCOPES.length).optional().meta({
      description: 'Rights that no role includes. Absent: no such rights.',
    }),
    ip_allowlist: z.array(addressBlock).max(ADDRESS_COUNT_MAX).optional().meta({
      description:
        'IP addresses and CIDR blocks that it may be used from. Absent or empty: from anywhere.',
    }),
    read_only: z
      .boolean()
      .optional()
      .meta({ description: 'True: for GET and searches alone. Absent: false.' }),
    expires_at: z
      .string()
      .transform((given, context): Date => {
        const ms = parseIsoMs(given, true);
        if (ms !== undefined && ms < (UNIX_SECONDS_MAX + 1) * 1_000) return new Date(ms);
        const message =
          ms === undefined
            ? 'must be a time with its zone, such as 2030-01-01T00:00:00Z'
            : 'must be before the year 10000, in UTC';
        context.addIssue({ code: 'custom', message });
        return z.NEVER;
      })
      .optional()
      .meta({
        type: 'string',
        format: 'date-time',
        description: 'RFC 3339 time at which the credential expires. Absent: never.',
      }),
  })
  .superRefine((given, context) => {
    const isServiceAccount = given.type === 'service_account';
    const refuse = (field: string, message: string): void =>
      context.addIssue({ code: 'custom', path: [field], message });
    if (isServiceAccount && given.environment_id !== undefined)
      refuse(
        'environment_id',
        'is not for a service account, which belongs to the whole account; leave it out',
      );
    if (!isServiceAccount && given.environment_id === undefined)
      refuse('environment_id', `is needed for the type ${given.type}`);
    for (const field of ['role', 'scopes'] as const) {
      if (!isServiceAccount && given[field] !== undefined)
        refuse(field, 'is for the type service_account only; leave it out');
    }
    // Write keys of Pipelines and Track are in pages and apps, which have every address, and only write.
    for (const field of ['ip_allowlist', 'read_only'] as const) {
      if (!isServiceAccount && given.type !== 'app' && given[field] !== undefined)
        refuse(field, 'is for the types service_account and app only; leave it out');
    }
  })
  .meta({
    id: 'NewApiCredentialInput',
    ...where(
      choose(hasMemberAs('type', { const: 'service_account' }), without('environment_id'), {
        allOf: [hasMember('environment_id'), without('role', 'scopes')],
      }),
      choose(
        hasMemberAs('type', { enum: ['tracking', 'pipelines'] }),
        without('ip_allowlist', 'read_only'),
      ),
    ),
    description:
      'With `environment_id` for the types app, tracking and pipelines. A service account may have a role (default `member`) and scopes. It and an app key may be bound to addresses and be read-only.',
    requestExamples: [
      { name: 'Shop', type: 'pipelines', environment_id: 1 },
      { name: 'Reports', type: 'app', environment_id: 1, read_only: true },
      {
        name: 'Finance',
        type: 'service_account',
        role: 'billing_admin',
        ip_allowlist: ['203.0.113.0/24'],
        expires_at: '2030-01-01T00:00:00Z',
      },
    ],
  });

export type NewCredentialInput = z.infer<typeof newCredentialInput>;

/** The rights of the new credential (`credential-reach.ts`). */
export const reachOf = (given: NewCredentialInput) => ({
  scopes: [...new Set(given.scopes)],
  ipAllowlist: given.ip_allowlist ?? [],
  expiresAt: given.expires_at ?? null,
});

function isAddressBlock(block: string): boolean {
  const [address = '', prefix, ...rest] = block.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  if (prefix === undefined) return true;
  return /^\d{1,3}$/.test(prefix) && Number(prefix) <= (family === 6 ? 128 : 32);
}

export const credentialToWire = (row: Credential): z.infer<typeof credential> => ({
  id: row.credentialId,
  name: row.name,
  type: CREDENTIAL_TYPES[row.kind],
  environment_id: row.environmentId,
  service_account_id: row.serviceAccountId,
  site_id: row.siteId,
  token_hint: row.secretHint,
  role: row.role,
  scopes: [...row.scopes],
  ip_allowlist: [...row.ipAllowlist],
  read_only: row.isReadOnly,
  testing: row.isTest,
  created_by_user_id: row.createdByUserId,
  last_used_at: instantOrNull(row.lastUsedAt),
  last_used_ip: row.lastUsedIp,
  expires_at: instantOrNull(row.expiresAt),
  revoked_at: instantOrNull(row.revokedAt),
  created_at: row.createdAt.toISOString(),
});
