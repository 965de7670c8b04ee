/**
 * Client certificate, private authority and OAuth2 client on the wire.
 *
 * They are write-only. The visible part identifies the one in force, and cannot be sent back.
 */
import { z } from 'zod';
import { text } from '../http/fields.ts';
import { reachableAddress } from '../http/url-field.ts';
import {
  AUTHORITY_PEM_LENGTH_MAX,
  CERTIFICATE_PEM_LENGTH_MAX,
  PRIVATE_KEY_PEM_LENGTH_MAX,
} from './client-certificates.ts';
import { HIDDEN } from './webhook-headers.ts';

const CLIENT_ID_LENGTH_MAX = 500;
const CLIENT_SECRET_LENGTH_MAX = 2_000;
const SCOPE_LENGTH_MAX = 1_000;
const HINT_REFUSED = 'is the hint that is shown in place of the secret; send the secret';

const clientAuthentication = z.enum(['basic', 'body']);

/** As a body gives them; null takes one back. */
export const credentialFields = {
  client_certificate: z
    .object({
      certificate: text(CERTIFICATE_PEM_LENGTH_MAX),
      private_key: text(PRIVATE_KEY_PEM_LENGTH_MAX),
    })
    .nullable()
    .meta({
      description:
        'Shown to the endpoint. PEM; certificates between it and its authority follow the first. The key has no passphrase. Unused if the endpoint is an http URL.',
    }),
  certificate_authority: text(AUTHORITY_PEM_LENGTH_MAX).nullable().meta({
    description:
      "PEM of the authorities that the endpoint's certificate may come from; null for the well-known ones.",
  }),
  oauth2: z
    .object({
      token_url: reachableAddress,
      client_id: text(CLIENT_ID_LENGTH_MAX).min(1),
      client_secret: text(CLIENT_SECRET_LENGTH_MAX)
        .min(1)
        .refine((secret) => !secret.startsWith(HIDDEN), { error: HINT_REFUSED })
        .meta({ description: 'Not the hint, which is shown in its place.' }),
      client_authentication: clientAuthentication.default('basic'),
      scope: text(SCOPE_LENGTH_MAX).min(1).nullish(),
      audience: text(SCOPE_LENGTH_MAX).min(1).nullish(),
    })
    .meta({ id: 'OAuth2' })
    .nullable()
    .meta({
      description:
        'Client credentials: the worker fetches an access token there and sends it to the endpoint. To an http URL it goes unencrypted.',
    }),
};

export const newCredentialFields = {
  client_certificate: credentialFields.client_certificate.default(null),
  certificate_authority: credentialFields.certificate_authority.default(null),
  oauth2: credentialFields.oauth2.default(null),
};

const shownCertificate = z
  .object({
    subject: z.string(),
    fingerprint_sha256: z.string(),
    expires_at: z.int(),
  })
  .meta({ id: 'Certificate' });

/** Of a webhook as it stands. */
export const shownCredentials = {
  client_certificate: shownCertificate.nullable(),
  certificate_authority: z.array(shownCertificate).nullable(),
  oauth2: z
    .object({
      token_url: z.string(),
      client_id: z.string(),
      client_secret: z.string().meta({ description: 'A hint: its last characters.' }),
      client_authentication: clientAuthentication,
      scope: z.string().nullable(),
      audience: z.string().nullable(),
    })
    .meta({ id: 'ShownOAuth2' })
    .nullable(),
};

export type CredentialsInBody = {
  readonly [Name in keyof typeof credentialFields]?:
    | z.infer<(typeof credentialFields)[Name]>
    | undefined;
};

export type ShownCredentials = z.infer<z.ZodObject<typeof shownCredentials>>;
