/** The fields of an identity provider: as an account sets them, and as it reads them. */
import { isOfThisMachine } from '@sluice/domain/accounts/demo-calls';
import { z } from 'zod';
import { int32 } from '../accounts/account-fields.ts';
import { instant, text } from '../http/fields.ts';
import { reachableAddress } from '../http/url-field.ts';

const DOMAIN_COUNT_MAX = 20;
const WORKSPACE_COUNT_MAX = 1_000;
const NEW_USER_ROLES = ['member', 'billing_admin'] as const;

/**
 * As a provider gives it: the beginning of every address of its own. Written in one way, since rules go by it
 * (`judgeClaims`).
 */
const issuer = reachableAddress
  .superRefine((value, context) => {
    const url = URL.parse(value);
    if (!url) return;
    if (url.search !== '' || url.hash !== '')
      context.addIssue({ code: 'custom', message: 'must have no query and no fragment' });
    else if (url.pathname.includes('/.well-known/'))
      context.addIssue({
        code: 'custom',
        message: 'must be the issuer, without /.well-known/openid-configuration',
      });
    else if (url.protocol !== 'https:' && !isOfThisMachine(url.host))
      context.addIssue({
        code: 'custom',
        message: 'must begin with https://; http:// is for this machine alone',
      });
    else if (url.href !== value && url.href !== `${value}/`)
      context.addIssue({ code: 'custom', message: `must be written as ${url.href}` });
  })
  .meta({
    format: 'uri',
    pattern: '^https?://[^?#]*$',
    description: 'As the provider writes it. By HTTPS, or by HTTP on this machine.',
  });

const credential = (lengthMax: number) =>
  text(lengthMax)
    .trim()
    .min(1)

    .regex(/^[\x20-\x7e]+$/, 'must be of printable ASCII characters')
    // The pattern for the text before it is trimmed.
    .meta({ pattern: '^[ -~]*[!-~][ -~]*$' });

const emailDomain = text(253)
  .trim()
  .toLowerCase()
  .regex(
    /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])$/,
    'must be a domain, such as example.com',
  );

/** A new issuer or client needs a new secret (`identity-provider.ts`). */
export const providerInput = z
  .strictObject({
    issuer,
    client_id: credential(255),
    client_secret: credential(1024)
      .optional()
      .meta({ description: 'Absent: as it is. Required for a new issuer or client.' }),
    email_domains: z.array(emailDomain).min(1).max(DOMAIN_COUNT_MAX),
    required: z
      .boolean()
      .default(false)
      .meta({ description: 'True: users sign in by it, and in no other way.' }),
    counts_as_two_factors: z.boolean().default(false),
    new_user_role: z
      .enum(NEW_USER_ROLES)
      .nullable()
      .default(null)
      .meta({ description: 'Role of a user whom the provider vouches for; null makes no users.' }),
    new_user_environment_ids: z.array(int32).max(WORKSPACE_COUNT_MAX).default([]),
  })
  .meta({
    id: 'IdentityProviderSettings',
    requestExamples: [
      {
        issuer: 'https://login.example.com',
        client_id: 'sluice',
        client_secret: 'the secret of the client',
        email_domains: ['example.com'],
      },
    ],
  });

/** Without its secret. */
export const shownProvider = z.object({
  issuer: z.string(),
  client_id: z.string(),
  has_client_secret: z.boolean(),
  email_domains: z.array(z.string()),
  required: z.boolean(),
  counts_as_two_factors: z.boolean(),
  new_user_role: z.enum(NEW_USER_ROLES).nullable(),
  new_user_environment_ids: z.array(z.int()),
  admin_signed_in_at: instant.nullable().meta({
    description: 'Last sign-in of an `account_admin` by it; null until one.',
  }),
  created_at: instant,
  updated_at: instant,
});

/** With the values that a call to set one needs. */
export const providerAnswer = z
  .object({
    identity_provider: shownProvider.nullable(),
    redirect_uri: z.string().meta({ description: 'Registered at the provider.' }),
    domain_record: z
      .object({ name: z.string(), text: z.string() })
      .meta({ description: 'The TXT record that proves a domain.' }),
  })
  .meta({ id: 'IdentityProviderResponse' });
